"""Ranked hits in, a checked answer out (built by a later issue)."""
