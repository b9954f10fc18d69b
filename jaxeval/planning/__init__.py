"""Which battles to judge next, and how many."""
