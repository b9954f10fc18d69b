"""Soft-Elo (arXiv:2606.13221): human-scale ratings of models that only LLM judges have seen."""
