"""Bradley-Terry ratings: fits, bootstraps, style control, wide boards, leaderboards."""
