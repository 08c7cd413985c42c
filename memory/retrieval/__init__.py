"""Finding what a user is remembered by, in one SQL statement."""
