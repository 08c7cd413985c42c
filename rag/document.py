"""Documents as agents read and write them with either retriever. Without Django."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.errors import InvalidInput
from common.translation import gettext

#: As JSON or as text: docs/reference/filters.md.
Filter = Mapping[str, Any] | str | None


@dataclass(frozen=True, slots=True)
class Document:
    """A document to store, a stored document, or a passage that was found.

    `content` and `metadata` are the caller's own; a found passage also has `token_count` in its
    metadata, and `summary` and `rerank_score` (0 to 1) if known. `access` is for storing: who
    alone may see it, such as `user:7`, a user name, an email address or a group's name. `id` names
    the document in its `collection`. For a passage imported as chunk JSON it is the chunk's own
    `chunk_id`; `document_key` is always the document's. The other fields are set on found passages:
    higher `score` is better, `similarity` is −1 to 1, offsets are in the document's text, and
    `location` says for people where that is, such as `page 3`, `Prices!A12` or `12:34`.
    """

    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    document_key: str = ""
    title: str = ""
    collection: str = ""
    url: str = ""
    score: float | None = None
    similarity: float | None = None
    chunk: int | None = None
    heading_path: tuple[str, ...] = ()
    page: int | None = None
    location: str = ""
    start: int | None = None
    end: int | None = None
    access: Sequence[str] | None = None


def passage_metadata(
    metadata: Mapping[str, Any], *, summary: str, token_count: int, rerank_score: float | None
) -> dict[str, Any]:
    """A passage's metadata, with the search's own values replacing keys of the same name."""
    return {
        **metadata,
        "token_count": token_count,
        **({"summary": summary} if summary else {}),
        **({} if rerank_score is None else {"rerank_score": rerank_score}),
    }


def resolve_rerank(
    rerank: bool | None, use_reranking: bool | None, default: bool | None = None
) -> bool | None:
    """Whether to rerank, given under either name. Raises InvalidInput if they contradict."""
    given = {choice for choice in (rerank, use_reranking) if choice is not None}
    if len(given) > 1:
        raise InvalidInput(
            gettext(
                "rerank and use_reranking are the same option, but have different"
                " values. Give only one of them."
            ),
            field="rerank",
        )
    return given.pop() if given else default
