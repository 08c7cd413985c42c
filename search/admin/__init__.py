"""Curation of searching: what was asked, and what people think of the answers."""

from search.admin import evaluations, judgements, log

__all__ = ["evaluations", "judgements", "log"]
