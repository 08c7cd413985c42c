"""A question in, ranked hits out."""
