"""Figures for Prometheus: what web processes count, and what the site holds."""
