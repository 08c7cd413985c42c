"""Curation of searching: what was asked, and what people think of the answers."""

from search.admin import judgements, log

__all__ = ["judgements", "log"]
