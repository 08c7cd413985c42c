"""Measuring retrieval quality on sets with judgements."""
