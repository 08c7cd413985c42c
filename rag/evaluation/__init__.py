"""Measuring answers on sets of questions with gold passages."""
