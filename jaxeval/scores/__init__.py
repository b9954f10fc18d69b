"""Scores of models on items: leaderboards, paired comparisons and repeated trials."""
