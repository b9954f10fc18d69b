"""Ratings from verdicts against a fixed reference, and how reliable their judges are."""
