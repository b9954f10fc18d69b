"""Judgments as they come, read from files and tables, checked, and encoded once."""
