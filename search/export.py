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
from search.filters import to_json
from search.query_options import SearchQuery
from search.ranked_results import ListedHit, RankedResults, build_page, rank_results, sort_hits
from search.results import Hit, Scope, read_passages

ExportFormat = Literal["csv", "json"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = ("csv", "json")
#: Most hits in an export, whatever the page size.
MAX_EXPORTED_HITS = 1000
#: Hits whose texts are read at a time.
BATCH_SIZE = 100

CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
#: What spreadsheets take for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")

HitLink = Callable[[Hit], str]


@dataclass(frozen=True, slots=True)
class Export:
    """A ranked list; its texts are read while it is written."""

    listing: RankedResults
    hits: tuple[ListedHit, ...]
    link: HitLink

    def rows(self) -> Iterator[dict[str, Any]]:
        """The hits as rows of the export."""
        listing = replace(self.listing, passages=read_passages)  # as they are by then
        for start in range(0, len(self.hits), BATCH_SIZE):
            page = self.hits[start : start + BATCH_SIZE]
            for hit in build_page(listing, page, first_rank=start + 1, snippets=False):
                yield _row(hit, self.link(hit))


@reads_from_replica
def export_hits(query: SearchQuery, *, scope: Scope, link: HitLink) -> Export:
    """The first 1,000 hits of a search, from one ranking. `link` returns a hit's URL.

    Raises what `services.search` raises, before any byte is written.
    """
    listing = rank_results(query, scope=scope, last=MAX_EXPORTED_HITS, k=BATCH_SIZE)
    return Export(listing, sort_hits(listing, query.sort)[:MAX_EXPORTED_HITS], link)


def download(export: Export, *, kind: str) -> StreamingHttpResponse:
    """The export as a streaming download; raises InvalidInput for an unknown format."""
    if kind not in EXPORT_FORMATS:
        raise InvalidInput(
            f"There is no export as “{kind}”. Use {', '.join(EXPORT_FORMATS)}.", field="as"
        )
    pieces = csv_chunks(export) if kind == "csv" else json_chunks(export)
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


def csv_chunks(export: Export) -> Iterator[bytes]:
    """RFC 4180 in UTF-8 with a byte order mark, by which spreadsheets know the encoding."""
    yield "\ufeff".encode() + _line(COLUMNS)
    for row in export.rows():
        cells = []
        for name in COLUMNS:
            value = row[name]
            if isinstance(value, dict):
                value = json.dumps(value, ensure_ascii=False) if value else ""
            # What a spreadsheet would run as a formula gets an apostrophe in front.
            is_formula = isinstance(value, str) and value.startswith(_FORMULA)
            cells.append(f"'{value}" if is_formula else value)
        yield _line(cells)


def _line(cells: Any) -> bytes:
    line = StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode(errors="replace")


def json_chunks(export: Export) -> Iterator[bytes]:
    """One JSON object: the query, and its `hits`."""
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
