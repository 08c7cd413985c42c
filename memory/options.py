"""Options of a search in memory, and of putting memory before a chat model."""

from typing import Annotated, Any

from django.utils.translation import gettext
from pydantic import BeforeValidator, Field

from common.errors import InvalidInput
from common.options import Options
from memory.retrieval import Mode

MAX_RESULTS = 100
MAX_QUERY_CHARACTERS = 4000


def _question(query: Any) -> Any:
    """Without characters that PostgreSQL cannot store."""
    if not isinstance(query, str):
        return query
    question = query.replace("\0", " ").encode(errors="replace").decode().strip()
    if not question:
        raise InvalidInput(gettext("Enter a question or some words."), field="q")
    return question


Threshold = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description="Least relevance, which means the same for every question. Default: the"
        " site's.",
    ),
]


class RecallOptions(Options):
    """How a user's memory is searched."""

    threshold: Threshold = None
    recency: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Weight of freshness in the order: 0 none, 1 full. Default: the site's.",
    )
    mode: Mode = Field(
        default="hybrid",
        description="`lexical` finds by words, `vector` by meaning, `hybrid` by both.",
    )


class MemoryQuery(RecallOptions):
    """A question to a user's memory."""

    q: Annotated[str, BeforeValidator(_question)] = Field(
        max_length=MAX_QUERY_CHARACTERS, description="Words or a question."
    )
    k: int = Field(default=5, ge=1, le=MAX_RESULTS, description="Hits, at most.")


class InjectionOptions(Options):
    """Limits of what is put before a chat model."""

    max_context: int = Field(
        default=3,
        ge=0,
        le=20,
        description="Contexts, at most: the best, as far as they reach the threshold.",
    )
    max_facts: int = Field(default=10, ge=0, le=20, description="Facts, at most.")
    threshold: Threshold = None
    max_tokens: int | None = Field(
        default=None,
        ge=0,
        le=100_000,
        description="Limit for everything that is added, approximately. Default: the site's.",
    )
