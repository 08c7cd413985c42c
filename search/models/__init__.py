"""The tables of searching: what was asked, and what people think of the answers."""

from search.models.judgement import Judgement
from search.models.log import SearchLog

__all__ = ["Judgement", "SearchLog"]
