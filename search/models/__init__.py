"""The tables of searching: what was asked, what people think of the answers, how good they are."""

from search.models.evaluation import EvaluatedQuestion, Evaluation, Judgement
from search.models.log import SavedSearch, SearchLog

__all__ = ["EvaluatedQuestion", "Evaluation", "Judgement", "SavedSearch", "SearchLog"]
