"""What a search reads of passages and documents, and what it answers with. Begin with
`SearchResult` and `read_passages`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, Any, Literal, Self, get_args

from common.fusion_options import Method
from common.replicas import read_connection
from common.sql import bigint_array, fetch_rows
from documents.models.chunk import text_in_context
from graph.retrieval import NamedStop
from reading.location import PAGE_LABEL, location
from search.filters import ALL, Node, to_json
from search.filters.sql import CREATED_DAY_SQL, DATE_KEYS, DOCUMENT_DATE_SQL, ORIGIN_SQL

Mode = Literal["hybrid", "lexical", "vector", "graph"]
MODES: tuple[Mode, ...] = get_args(Mode)
Expansion = Literal["parent", "none", "siblings", "section", "graph"]

Sort = Literal["relevance", "newest", "oldest", "title"]
SORTS: tuple[Sort, ...] = get_args(Sort)

Versions = Literal["current", "all"]
VERSIONS: tuple[Versions, ...] = ("current", "all")


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a search may look. Created by `search.query_options.scope_for`, which adds workspace
    and access; every arm uses it.

    `principals` are the user's names in access lists; None is the site itself (commands,
    evaluation). `filter` can only narrow. `versions`: current ones, or all. `visible_ids` are
    the collections that may be searched, `collection_ids` those that are.
    """

    workspace_id: int
    collection_ids: tuple[int, ...]
    principals: tuple[str, ...] | None = None
    filter: Node = ALL
    versions: Versions = "current"
    visible_ids: tuple[int, ...] = ()
    excluded_document_ids: tuple[int, ...] = ()

    @property
    def is_filtered(self) -> bool:
        """Whether a filter narrows whole collections."""
        return self.filter != ALL


@dataclass(frozen=True, slots=True)
class Snippet:
    """The part of a chunk's text that is displayed.

    `highlights` are (start, end) offsets into `text`, ascending and disjoint.
    """

    text: str
    start: Annotated[int, "Its offset in the hit's `text`."]
    highlights: tuple[tuple[int, int], ...] = ()
    cut_before: Annotated[bool, "Whether text was left out before it."] = False
    cut_after: Annotated[bool, "Whether text was left out behind it."] = False


@dataclass(frozen=True, slots=True)
class HitRow:
    """A row of a table that answers best."""

    ordinal: Annotated[int, "Its place in the table, from 0."]
    start: Annotated[int, "Offset of its first character in the document's text."]
    cells: Annotated[tuple[str, ...], "As written, one for each of the table's `columns`."]
    matched: Annotated[tuple[int, ...], "Places, from 0, of the cells that the question names."]


@dataclass(frozen=True, slots=True)
class HitTable:
    """The table of a hit's best rows."""

    id: int
    name: Annotated[str, "The sheet, or the heading above the table; or empty."]
    columns: Annotated[tuple[str, ...], "Names, in their order."]
    rows: Annotated[tuple[HitRow, ...], "The best of the passage, 3 at most, the best one first."]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A hit with the text around it."""

    text: str
    start: Annotated[int, "Its offset in the document's text."]
    end: int


@dataclass(slots=True)
class Passage:
    """A chunk with its document's fields. `dated` is the document's date, ISO and as precise as
    its metadata say, or else the day it was added. `summary` and `token_count` are the author's;
    without one the latter is the embedder's. Chunks with equal `parent` are parts of one larger
    passage of the document.
    """

    chunk_id: int
    chunk_key: str
    ordinal: int
    text: str
    context: str
    page: int | None
    parent: int | None
    start: int
    end: int
    summary: str
    token_count: int
    media_type: str
    space_id: int
    collection_id: int
    collection_slug: str
    collection_name: str
    document_id: int
    document_key: str
    version: int
    is_current: bool
    title: str
    source: str
    url: str
    rendering: str
    language: str
    updated_at: datetime
    dated: str
    heading_path: tuple[str, ...]
    metadata: Mapping[str, Any]

    @property
    def pk(self) -> int:
        """The chunk's primary key, named as on `Chunk`."""
        return self.chunk_id

    @property
    def itself(self) -> Self:
        """For parts of an answer that group some of the fields."""
        return self

    @property
    def embedded_text(self) -> str:
        """Title, headings and text, as compared by trigrams."""
        return text_in_context(self.context, self.text)

    @property
    def location(self) -> str:
        """Where the passage is: `page 3`, `12:34` of a recording, `Prices!A12`."""
        return self._location_at(0)

    def _location_at(self, offset: int) -> str:
        return location(
            self.media_type,
            self.page,
            heading_path=self.heading_path,
            text=self.text,
            at=offset,
            label=self.metadata.get(PAGE_LABEL),
        )

    def values(self) -> dict[str, Any]:
        """The fields of a passage by name, for a hit that is made of it."""
        return {name: getattr(self, name) for name in _PASSAGE_FIELDS}


_PASSAGE_FIELDS = tuple(each.name for each in fields(Passage))


@dataclass(slots=True, kw_only=True)
class RelatedPassage(Passage):
    """A passage related to the hit `expanded_from`: adjacent, or mentioning the same. `path` leads
    there.
    """

    expanded_from: int
    path: tuple[NamedStop, ...]


@dataclass(slots=True, kw_only=True)
class Hit(Passage):
    """One passage with all its scores. Higher is better.

    `similarity` -1..1, `lexical` BM25 ≥ 0, `graph` 0..1, `fused`, `rerank` 0..1; None where an
    arm did not list it. `ranks` are 1-based ranks in the arms' lists; `contributions` sum to
    `fused`, which ranks it at `fused_rank`. Hits are ordered by `score`: `fused` times
    `rerank_factor`, above 1 where the reranker prefers a hit, 1 where it was not read. `path`: how
    the graph reached it. `surroundings` and `related` are set on request, `surroundings` also for
    parts of a larger passage. `table` has the rows that fit best where the question names a cell,
    or where most of its words are in one row. `relevance` 0..1 is the score over the best score.
    """

    rank: int
    similarity: float | None
    lexical: float | None
    fused: float
    fused_rank: int
    rerank: float | None
    rerank_factor: float = 1.0
    ranks: Mapping[str, int]
    contributions: Mapping[str, float]
    relevance: float
    snippet: Snippet
    table: HitTable | None = None
    surroundings: Surroundings | None = None
    more_in_document: int = 0
    graph: float | None = None
    path: tuple[NamedStop, ...] = ()
    related: tuple[RelatedPassage, ...] = ()

    @property
    def score(self) -> float:
        """The fused score, times what the reranker makes of it."""
        return self.fused * self.rerank_factor

    @property
    def location(self) -> str:
        """Where its best row is, or the line of the snippet with most of the words."""
        if self.table is not None:
            return self._location_at(self.table.rows[0].start - self.start)
        starts = [start for start, _ in self.snippet.highlights]
        # Which line each word is on, by where that begins.
        lines = Counter(self.snippet.text.rfind("\n", 0, start) + 1 for start in starts)
        best = lines.most_common(1)
        return self._location_at(self.snippet.start + (best[0][0] if best else 0))


@dataclass(frozen=True, slots=True)
class ArmReport:
    """How one arm ran."""

    name: Annotated[str, "`lexical`, `vector` or `graph`."]
    method: Annotated[
        str,
        "`bm25`, or `trigram` where words like those of the question were searched for; of vectors"
        " `exact` or `ann` (approximate); of the graph `paths`.",
    ]
    candidates: Annotated[int, "How many passages it listed."]
    weight: Annotated[float, "Its share in the fusion."] = 1.0


@dataclass(frozen=True, slots=True)
class Facet:
    """A facet value with its number of hits."""

    value: Annotated[str, "What to filter by."]
    label: Annotated[str, "What to show."]
    count: Annotated[int, "How many hits have it, whatever else was picked in the same facet."]
    selected: Annotated[bool, "Whether the search asked for it."] = False
    filter: Annotated[
        str,
        "The filter, as text, that keeps only these; empty where the search has a parameter of its"
        " own.",
    ] = ""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page of hits and how it was made.

    `total` is the length of the ranked list (passages, or documents if grouped; a few hundred
    at most), `hits` those from `offset`; `is_cut`: more may match. `degraded` names what failed
    (“vector”: embedder, “rerank”: reranker); `notes` are sentences for the reader. `reranked`
    hits were scored by `reranker`; `can_rerank`: one is set up. `suggestion` is the query with
    spelling corrected. `backgrounds`: by space id, mean similarity of the query to any passage.
    """

    query: str
    mode: Mode
    hits: tuple[Hit, ...]
    total: int
    offset: int
    k: int
    arms: tuple[ArmReport, ...]
    facets: Mapping[str, tuple[Facet, ...]]
    timings: Mapping[str, float]
    degraded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    filter: Node = ALL
    reranker: str = ""
    reranked: int = 0
    suggestion: str = ""
    backgrounds: Mapping[int, float] = field(default_factory=dict)
    sort: Sort = "relevance"
    can_rerank: bool = False
    fusion: Method = "score"
    is_cut: bool = False

    @property
    def next_offset(self) -> int | None:
        """The offset of the next page; None on the last."""
        behind = self.offset + len(self.hits)
        return behind if self.hits and behind < self.total else None

    @property
    def filter_json(self) -> dict[str, Any]:
        """The filter in JSON form."""
        return to_json(self.filter)

    @property
    def is_corrected(self) -> bool:
        """Whether `suggestion` was searched, because no query word occurs anywhere."""
        return any(arm.method == "trigram" for arm in self.arms)

    @property
    def lexical_only(self) -> bool:
        """Whether vector search was wanted and no model worked."""
        return "vector" in self.degraded and all(arm.name != "vector" for arm in self.arms)

    @property
    def milliseconds(self) -> float:
        """Total duration of the search in milliseconds."""
        return self.timings.get("total", 0.0)


#: In the order of the fields of `Passage`.
_PASSAGES_SQL = f"""
    SELECT chunk.id, chunk.key, chunk.ordinal, chunk.text, chunk.context,
           chunk.page, chunk.parent, chunk.start, chunk."end", chunk.summary, chunk.token_count,
           chunk.media_type, chunk.space_id, collection.id, collection.slug,
           collection.name, document.id, document.key, document.version, document.is_current,
           coalesce(nullif(document.title, ''), nullif(document.source, ''), document.key),
           document.source, document.url, document.rendering, document.language,
           document.updated_at,
           coalesce(
               CASE WHEN document.metadata ?| %s::text[] THEN {DOCUMENT_DATE_SQL} END,
               {CREATED_DAY_SQL}),
           chunk.heading_path, chunk.metadata::text
    FROM unnest(%s::bigint[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT * FROM documents_chunk WHERE id = wanted.id OFFSET 0
    ) AS chunk
    CROSS JOIN LATERAL (
        SELECT * FROM documents_document WHERE id = chunk.document_id OFFSET 0
    ) AS document
    JOIN documents_collection AS collection ON collection.id = chunk.collection_id
"""  # noqa: S608  # of constants


def read_passages(chunk_ids: Sequence[int]) -> dict[int, Passage]:
    """Passages by chunk id; deleted ones are absent."""
    rows = fetch_rows(
        read_connection(), _PASSAGES_SQL, [list(DATE_KEYS), bigint_array(chunk_ids)], prepare=True
    )
    return {row[0]: Passage(*[*row[:-2], tuple(row[-2]), json.loads(row[-1])]) for row in rows}


class PassageCache:
    """Reads passages and caches them: those compared by text are mostly those shown."""

    def __init__(self) -> None:
        self._known: dict[int, Passage] = {}

    def __call__(self, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """Passages by chunk id; deleted ones are absent."""
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._known]
        if missing:
            self._known |= read_passages(missing)
        return {
            chunk_id: self._known[chunk_id] for chunk_id in chunk_ids if chunk_id in self._known
        }


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """Document fields for filters, facets and sorting.

    `language` is an ISO code, `origin` a host or folder, each '' if unknown. `dated` is ISO and
    as precise as known, or the day it was added.
    """

    title: str
    language: str
    origin: str
    dated: str

    @property
    def day(self) -> str:
        """`dated` as a full date, the earliest possible: for sorting."""
        return self.dated + "0000-01-01"[len(self.dated) :]


_DOCUMENT_INFO_SQL = f"""
    SELECT document.id, coalesce(nullif(document.title, ''), nullif(document.source, ''),
           document.key), document.language, {ORIGIN_SQL},
           coalesce({DOCUMENT_DATE_SQL}, {CREATED_DAY_SQL})
    FROM documents_document AS document WHERE document.id = ANY(%s)
"""  # noqa: S608  # of constants


def load_document_info(document_ids: Iterable[int]) -> dict[int, DocumentInfo]:
    """Document info by id; deleted documents are absent."""
    with read_connection().cursor() as cursor:
        cursor.execute(_DOCUMENT_INFO_SQL, [list(set(document_ids))])
        return {row[0]: DocumentInfo(*row[1:]) for row in cursor.fetchall()}
