"""Accuracies judged by LLMs, corrected by labelled items."""
