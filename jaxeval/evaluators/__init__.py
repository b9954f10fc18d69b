"""Evaluators compared with gold scores: how alike they rank models, and what an improvement means."""
