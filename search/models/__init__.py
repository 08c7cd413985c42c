"""The tables of searching: what was asked, what people think of the answers, how good they are."""

from search.models.evaluation import EvaluatedQuestion, Evaluation
from search.models.judgement import Judgement
from search.models.log import SearchLog
from search.models.saved import SavedSearch

__all__ = ["EvaluatedQuestion", "Evaluation", "Judgement", "SavedSearch", "SearchLog"]
