"""Which reference ranks models as all the votes do."""
