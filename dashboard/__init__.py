"""Figures of a workspace over time, and its retrieval quality."""
