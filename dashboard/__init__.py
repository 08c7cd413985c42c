"""Figures of a workspace over time, and how good its answers are."""
