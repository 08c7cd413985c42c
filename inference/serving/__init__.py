"""Models served by workers to processes without them, over the broker."""
