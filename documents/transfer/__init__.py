"""Collections as files: one JSON object a line, optionally with vectors, written and read as
streams."""
