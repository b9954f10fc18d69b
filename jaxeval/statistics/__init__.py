"""Quantiles of draws, intervals of proportions, agreement of raters."""
