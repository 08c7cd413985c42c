"""What a line of the log says beside its message: for which request or task it was written."""
