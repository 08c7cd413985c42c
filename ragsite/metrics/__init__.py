"""Prometheus metrics: of web processes, and of the site as a whole."""
