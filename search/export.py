"""Lists of hits to take along: as CSV for a spreadsheet, as JSON for a program."""

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any, Literal

from django.http import StreamingHttpResponse
from django.utils import timezone

from common.errors import InvalidInput
from common.replicas import reads_from_replica
from search.asked import SearchQuery
from search.filters import to_json
from search.listing import Listed, Listing, make_listing, page_of
from search.passages import read_passages
from search.results import Hit, Scope
from search.sorting import in_order

Kind = Literal["csv", "json"]
KINDS: tuple[Kind, ...] = ("csv", "json")
#: As many hits are exported, whatever the pages of the search held.
MOST_HITS = 1000
#: Texts are read for so many at a time.
BATCH = 100

CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
#: What spreadsheets take for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")

Link = Callable[[Hit], str]


@dataclass(frozen=True, slots=True)
class Export:
    """A list that is ranked already; its texts are read when they are written."""

    listing: Listing
    hits: tuple[Listed, ...]
    link: Link

    def rows(self) -> Iterator[dict[str, Any]]:
        """The hits with what an export says of them."""
        listing = replace(self.listing, passages=read_passages)  # as they are by then
        for start in range(0, len(self.hits), BATCH):
            page = self.hits[start : start + BATCH]
            for hit in page_of(listing, page, first_rank=start + 1, snippets=False):
                yield _row(hit, self.link(hit))


@reads_from_replica
def export_hits(query: SearchQuery, *, scope: Scope, link: Link) -> Export:
    """The first 1,000 hits of a search, from one ranking. `link` tells a hit's address.

    Raises what `services.search` raises, before a byte is written.
    """
    listing = make_listing(query, scope=scope, last=MOST_HITS, k=BATCH)
    return Export(listing, in_order(listing, query.sort)[:MOST_HITS], link)


def download(export: Export, *, kind: str) -> StreamingHttpResponse:
    """The export as a file that is written while it is sent; raises InvalidInput."""
    if kind not in KINDS:
        raise InvalidInput(f"There is no export as “{kind}”. Use {', '.join(KINDS)}.", field="as")
    pieces = csv_pieces(export) if kind == "csv" else json_pieces(export)
    return StreamingHttpResponse(
        pieces,
        content_type=CONTENT_TYPES[kind],
        headers={
            "Content-Disposition": f'attachment; filename="search.{kind}"',
            "Cache-Control": "private, no-store",
        },
    )


def _row(hit: Hit, link: str) -> dict[str, Any]:
    return {
        "rank": hit.rank,
        "title": hit.title,
        "headings": " > ".join(hit.heading_path),
        "page": hit.page,
        "text": hit.text,
        "collection": hit.collection_slug,
        "media_type": hit.media_type,
        "language": hit.language,
        "dated": hit.dated,
        "source": hit.source,
        "source_url": hit.url,
        "link": link,
        "relevance": round(hit.relevance, 4),
        "similarity": _rounded(hit.similarity),
        "lexical": _rounded(hit.lexical),
        "fused": _rounded(hit.fused),
        "rerank": _rounded(hit.rerank),
        "document_id": hit.document_id,
        "document_key": hit.document_key,
        "chunk_id": hit.chunk_id,
        "chunk_key": hit.chunk_key,
        "summary": hit.summary,
        "token_count": hit.token_count,
        "metadata": hit.metadata,
    }


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 6) + 0.0  # −0.0 becomes 0.0


COLUMNS = (
    "rank",
    "title",
    "headings",
    "page",
    "text",
    "collection",
    "media_type",
    "language",
    "dated",
    "source",
    "source_url",
    "link",
    "relevance",
    "similarity",
    "lexical",
    "fused",
    "rerank",
    "document_id",
    "document_key",
    "chunk_id",
    "chunk_key",
    "summary",
    "token_count",
    "metadata",
)


def csv_pieces(export: Export) -> Iterator[bytes]:
    """RFC 4180 in UTF-8. It begins with the mark by which spreadsheets know the encoding."""
    yield "\ufeff".encode() + _line(COLUMNS)
    for row in export.rows():
        yield _line([_cell(row[name]) for name in COLUMNS])


def _line(cells: Any) -> bytes:
    line = StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode(errors="replace")


def _cell(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets an apostrophe, which it does not show."""
    if isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def json_pieces(export: Export) -> Iterator[bytes]:
    """One object: the question, and its `hits`."""
    query, scope = export.listing.query, export.listing.scope
    head = {
        "query": query.text,
        "mode": query.mode,
        "sort": query.sort,
        "filter": to_json(scope.filter),
        "total": len(export.hits),
        "exported_at": timezone.now().isoformat(timespec="seconds"),
    }
    yield _json(head)[:-1] + b', "hits": ['
    for number, row in enumerate(export.rows()):
        yield (b",\n" if number else b"\n") + _json(row)
    yield b"\n]}\n"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
