"""The way of a file into the chunk table: sources → preparing → embedding → loading."""
