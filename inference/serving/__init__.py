"""Models for processes that have none: asked for, and answered, over the broker."""
