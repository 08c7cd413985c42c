"""Finding what a user is remembered by: all rows are scored, and the best are listed."""
