"""Agreement of judges with people, of people with each other, and of judges with each other."""
