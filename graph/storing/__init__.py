"""Rows of the graph written and removed: the work below services and tasks."""
