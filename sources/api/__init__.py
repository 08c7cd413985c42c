"""API of sources."""
