"""Judgments in all their forms: read from files and tables, checked, and encoded once."""
