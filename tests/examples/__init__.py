"""Runs what the documentation shows: on a site of its own, with real servers, workers and files."""
