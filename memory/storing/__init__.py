"""Writing what is remembered: whole, once, in the history where it belongs."""
