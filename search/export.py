"""Lists of hits to take along: as CSV for a spreadsheet, as JSON for a program."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from io import StringIO
from typing import Annotated, Any, Literal

from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext

from common.errors import InvalidInput
from common.replicas import reads_from_replica
from common.text import spreadsheet_text
from search.filters import to_json
from search.query_options import SearchQuery
from search.ranked_results import build_page, rank_results, sort_hits
from search.results import Hit, Scope, read_passages

ExportFormat = Literal["csv", "json"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = ("csv", "json")
#: Most hits in an export, whatever the page size.
MAX_EXPORTED_HITS = 1000
#: Hits whose texts are read at a time.
BATCH_SIZE = 100

CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}

HitLink = Callable[[Hit], str]


@dataclass(frozen=True, slots=True)
class ExportedHit:
    """A hit in an export; the fields are the columns of a CSV file."""

    rank: int
    title: str
    headings: Annotated[str, "From the outermost on, with ` > ` between."]
    page: int | None
    location: Annotated[str, "For people: `page 3`, `12:34` of a recording, or nothing."]
    text: str
    collection: str
    media_type: str
    language: str
    dated: str
    source: str
    source_url: str
    link: Annotated[str, "Its document's address in the API."]
    relevance: float
    similarity: float | None
    lexical: float | None
    fused: float
    rerank: float | None
    document_id: int
    document_key: str
    chunk_id: int
    chunk_key: str
    summary: str
    token_count: int
    metadata: dict[str, Any]


COLUMNS = tuple(field.name for field in fields(ExportedHit))
#: Fields of a hit that have another name there.
_FIELDS = {"collection": "collection_slug", "source_url": "url"}


@reads_from_replica
def export_hits(query: SearchQuery, *, scope: Scope, kind: str, link: HitLink) -> Iterator[bytes]:
    """The first 1,000 hits of a search, from one ranking, as pieces of a file of this format.
    `link` returns a hit's URL. Texts are read while it is written.

    Raises InvalidInput for an unknown format, and what `services.search` raises, before any byte
    is written.
    """
    if kind not in EXPORT_FORMATS:
        raise InvalidInput(
            gettext("There is no export format “{kind}”. Use {names}.").format(
                kind=kind, names=", ".join(EXPORT_FORMATS)
            ),
            field="as",
        )
    listing = rank_results(query, scope=scope, last=MAX_EXPORTED_HITS, k=BATCH_SIZE)
    hits = sort_hits(listing)[:MAX_EXPORTED_HITS]

    def rows() -> Iterator[dict[str, Any]]:
        fresh = replace(listing, passages=read_passages)  # as they are by then
        for start in range(0, len(hits), BATCH_SIZE):
            page = hits[start : start + BATCH_SIZE]
            for hit in build_page(fresh, page, first_rank=start + 1, snippets=False, rows=False):
                row: dict[str, Any] = {
                    name: getattr(hit, _FIELDS.get(name, name), None) for name in COLUMNS
                }
                for name in ("similarity", "lexical", "fused", "rerank"):
                    if row[name] is not None:
                        row[name] = round(row[name], 6) + 0.0  # −0.0 becomes 0.0
                row["headings"], row["link"] = " > ".join(hit.heading_path), link(hit)
                row["relevance"] = round(hit.relevance, 4)
                yield row

    if kind == "csv":
        return csv_chunks(rows())
    head = {
        "query": query.q,
        "mode": query.mode,
        "sort": query.sort,
        "filter": to_json(scope.filter),
        "total": len(hits),
        "exported_at": timezone.now().isoformat(timespec="seconds"),
    }
    return json_chunks(head, rows())


def download(pieces: Iterator[bytes], *, kind: str) -> StreamingHttpResponse:
    """An export as a streaming download."""
    return StreamingHttpResponse(
        pieces,
        content_type=CONTENT_TYPES[kind],
        headers={
            "Content-Disposition": f'attachment; filename="search.{kind}"',
            "Cache-Control": "private, no-store",
        },
    )


def csv_chunks(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """RFC 4180 in UTF-8 with a byte order mark, by which spreadsheets know the encoding."""

    def line(cells: Iterable[Any]) -> bytes:
        text = StringIO()
        csv.writer(text).writerow(cells)
        return text.getvalue().encode(errors="replace")

    yield "\ufeff".encode() + line(COLUMNS)
    for row in rows:
        cells = []
        for value in row.values():
            if isinstance(value, dict):
                cells.append(json.dumps(value, ensure_ascii=False) if value else "")
            else:
                cells.append(spreadsheet_text(value) if isinstance(value, str) else value)
        yield line(cells)


def json_chunks(head: dict[str, Any], rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """One JSON object: `head`, and its `hits`."""
    yield _json(head)[:-1] + b', "hits": ['
    for number, row in enumerate(rows):
        yield (b",\n" if number else b"\n") + _json(row)
    yield b"\n]}\n"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
