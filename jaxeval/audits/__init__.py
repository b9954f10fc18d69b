"""Can a leaderboard be believed? Each question of an audit is a function of its own."""
