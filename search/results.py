"""What a search answers with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from common.fusion_options import Method
from graph.retrieval import Named
from search.filters import ALL, Node

Mode = Literal["lexical", "vector", "hybrid", "graph"]
MODES: tuple[Mode, ...] = ("hybrid", "lexical", "vector", "graph")
Expansion = Literal["none", "siblings", "section", "parent", "graph"]
EXPANSIONS: tuple[Expansion, ...] = ("parent", "none", "siblings", "section", "graph")

Sort = Literal["relevance", "newest", "oldest", "title"]
SORTS: tuple[Sort, ...] = ("relevance", "newest", "oldest", "title")

Versions = Literal["current", "all"]
VERSIONS: tuple[Versions, ...] = ("current", "all")


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a search may look. Built by `search.services.scope_for`, so that workspace and
    access cannot be forgotten; every arm compiles the same one.

    `principals` are the names under which access lists know the asker; None is the site itself
    (commands, evaluation). `filter` narrows what they leave, and cannot widen it. Of `versions`
    other than the current one are only asked for by name. `visible_ids` are the collections that
    could have been named, of which `collection_ids` are those that were; `but` are documents that
    are not to be found.
    """

    workspace_id: int
    collection_ids: tuple[int, ...]
    principals: tuple[str, ...] | None = None
    filter: Node = ALL
    versions: Versions = "current"
    visible_ids: tuple[int, ...] = ()
    but: tuple[int, ...] = ()

    @property
    def is_filtered(self) -> bool:
        """Whether something narrower than whole collections is asked for."""
        return self.filter != ALL


@dataclass(frozen=True, slots=True)
class Snippet:
    """The window of a chunk's text that is shown.

    `start` is the window's offset in the chunk's text; `highlights` are (start, end) offsets into
    `text`, ascending and disjoint. `cut_before`/`cut_after`: text was left out on that side.
    """

    text: str
    start: int
    highlights: tuple[tuple[int, int], ...] = ()
    cut_before: bool = False
    cut_after: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A hit with what stands around it, as one text; offsets are the document's."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RelatedPassage:
    """A passage that hangs together with a hit, the chunk `expanded_from`: it stands beside it, or
    both name the same. `path` leads there; offsets are the document's."""

    chunk_id: int
    expanded_from: int
    path: tuple[Named, ...]
    text: str
    ordinal: int
    start: int
    end: int
    document_id: int
    document_key: str
    title: str
    collection_slug: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One passage, with every score that was computed for it kept apart. Higher is better.

    `similarity` -1..1, `lexical` BM25 ≥ 0, `graph` 0..1, `fused`, `rerank` 0..1; None where an arm
    did not see it. Where the graph led to it, `path` says how. `ranks` are 1-based places in the
    arms' own lists; `contributions` sum to `fused`, by which alone it would be at `fused_rank`.
    `summary` is the author's, empty where the chunk came without; `token_count` is the author's, or
    else the embedder's. `surroundings` are there where they were asked for, and where the chunk is
    a part of a larger passage; chunks with the same `parent` are parts of one. `relevance` 0..1 is
    for a bar: the score that ordered the list, over the list's best. `related` is there where it
    was asked for.
    `dated` is the day that the document is of, ISO and as precise as its own metadata say, or else
    the day on which it was brought.
    """

    rank: int
    chunk_id: int
    chunk_key: str
    ordinal: int
    text: str
    context: str
    heading_path: tuple[str, ...]
    page: int | None
    parent: int | None
    start: int
    end: int
    summary: str
    token_count: int
    document_id: int
    document_key: str
    version: int
    is_current: bool
    title: str
    source: str
    url: str
    media_type: str
    rendering: str
    language: str
    collection_id: int
    collection_slug: str
    collection_name: str
    updated_at: datetime
    dated: str
    metadata: Mapping[str, Any]
    similarity: float | None
    lexical: float | None
    fused: float
    fused_rank: int
    rerank: float | None
    ranks: Mapping[str, int]
    contributions: Mapping[str, float]
    relevance: float
    snippet: Snippet
    surroundings: Surroundings | None = None
    more_in_document: int = 0
    graph: float | None = None
    path: tuple[Named, ...] = ()
    related: tuple[RelatedPassage, ...] = ()


@dataclass(frozen=True, slots=True)
class ArmReport:
    """How one arm worked; `candidates` is what it listed.

    `method` is bm25, or trigram where no word of the question stood anywhere and words like them
    were searched for; of vectors exact or ann (approximate); of the graph paths.
    """

    name: str
    method: str
    candidates: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Facet:
    """A value that hits have, and how many of the hits have it.

    Counted without what was chosen in the same facet, so that other values stay to be chosen.
    `filter` is the condition, in text form, that keeps only these; empty where the search has a
    parameter of its own for it.
    """

    value: str
    label: str
    count: int
    selected: bool = False
    filter: str = ""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page of hits and how it came about.

    `total` is the length of the ranked list (passages, or documents when grouped; at most a few
    hundred), of which `hits` are those from `offset` on; with `is_cut` it is only the best of what
    may fit. `degraded` names arms that should have
    worked and did not (“vector” when the embedder is down, “rerank” when the reranker is); `notes`
    are sentences for a person. `reranked` hits were read again by `reranker`. `suggestion` is the
    query with its misspelt words mended, where some stand nowhere and others like them do.
    `can_rerank`: whether a reranker is set up that could read the best hits.
    `backgrounds` are, by id of each space that was asked, how similar the question is to just any
    passage.
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
    def is_corrected(self) -> bool:
        """Whether `suggestion` was searched for, because the query's own words stand nowhere."""
        return any(arm.method == "trigram" for arm in self.arms)

    @property
    def by_words_only(self) -> bool:
        """Whether no model at all could be asked, though one should have been."""
        return "vector" in self.degraded and all(arm.name != "vector" for arm in self.arms)

    @property
    def milliseconds(self) -> float:
        """Time from the question to the page, in milliseconds."""
        return self.timings.get("total", 0.0)
