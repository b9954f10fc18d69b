"""Evaluators beside gold scores: rank agreement, and what an improvement means."""
