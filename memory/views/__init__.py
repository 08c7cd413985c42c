"""Pages of a user's memory: facts, turns of conversations, what is to be read, what is stored."""
