"""API of tables."""
