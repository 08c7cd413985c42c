"""What the site's API answers, as documents and errors. Without Django."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from common.errors import InvalidInput, RagsiteError
from rag.document import Document, Filter, passage_metadata


class SiteRefused(RagsiteError):
    """The site answered that it does not do this; `code` and `status` are its own."""

    def __init__(self, message: str, *, code: str, status: int) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class SiteUnreachable(RagsiteError):
    """No answer came, or none that is the site's."""

    code = "unreachable"
    status = 503


def read(response: httpx2.Response) -> Any:
    """The JSON of an answer. Raises SiteRefused and SiteUnreachable."""
    try:
        body = response.json()
    except ValueError:
        body = None
    if response.is_success and isinstance(body, dict):
        return body
    if isinstance(body, dict) and "detail" in body:
        code = str(body.get("code", "error"))
        raise SiteRefused(str(body["detail"]), code=code, status=response.status_code)
    raise SiteUnreachable(
        f"{response.request.url} answered {response.status_code}, but not as the site does. Is the"
        " address right?"
    )


def both(one: Filter, other: Filter) -> Filter:
    """What fits both filters. Raises InvalidInput where they are not of one form."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, str) and isinstance(other, str):
        if not any(text.lstrip().startswith("{") for text in (one, other)):
            return f"({one}); ({other})"
    elif isinstance(one, Mapping) and isinstance(other, Mapping):
        return {"$and": [one, other]}
    raise InvalidInput("Give both filters as text, or both as objects.", field="filter")


def given(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Without what was left out."""
    return {name: value for name, value in asked.items() if value is not None}


def parts(whole: Sequence[Any], size: int) -> list[list[Any]]:
    """Pieces of at most `size`."""
    return [list(whole[start : start + size]) for start in range(0, len(whole), size)]


def of_hit(hit: Mapping[str, Any], site: str) -> Document:
    """A passage that a search found."""
    document, scores, collection = hit["document"], hit["scores"], hit["collection"]["slug"]
    page = _page(site, collection, document["id"], hit["chunk_id"])
    return Document(
        content=hit["text"],
        metadata=passage_metadata(
            hit["metadata"],
            summary=hit["summary"],
            token_count=hit["token_count"],
            rerank_score=scores["rerank"],
        ),
        id=hit["chunk_key"] or document["key"],
        document_key=document["key"],
        title=document["title"],
        collection=collection,
        url=document["source_url"] or page,
        score=scores["fused"] if scores["rerank"] is None else scores["rerank"],
        similarity=scores["similarity"],
        chunk=hit["chunk_id"],
        heading_path=tuple(hit["heading_path"]),
        page=hit["page"],
        start=hit["start"],
        end=hit["end"],
    )


def _page(site: str, collection: str, document: int, chunk: int) -> str:
    return f"{site}/documents/{collection}/{document}/?chunk={chunk}#passage"


def of_match(match: Mapping[str, Any], collection: str, site: str) -> Document:
    """A document that a store's search found."""
    return Document(
        content=match["text"],
        metadata=match["metadata"],
        id=match["id"],
        document_key=match["id"],
        title=match["title"],
        collection=collection,
        url=_page(site, collection, match["document"], match["chunk"]),
        score=match["score"],
        similarity=match["similarity"],
        chunk=match["chunk"],
    )


def of_item(item: Mapping[str, Any], collection: str) -> Document:
    """A whole document."""
    return Document(
        content=item["text"],
        metadata=item["metadata"],
        id=item["id"],
        document_key=item["id"],
        title=item["title"],
        collection=collection,
    )
