"""What is drawn in a bootstrap: units of equal rows, items, and the tables that they are drawn from."""
