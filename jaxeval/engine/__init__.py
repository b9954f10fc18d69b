"""Estimators that anybody brings: a statistic of weighted rows, resampled, or with groups left out."""
