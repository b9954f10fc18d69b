"""Where evaluations are run: what other programs find by their entry points."""
