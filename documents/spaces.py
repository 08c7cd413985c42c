"""The SQL of an embedding space: its expression, its operators and its index.

Limits and operator classes are pgvector's (0.8): https://github.com/pgvector/pgvector
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from common.errors import InvalidInput

METRICS = ("cosine", "l2", "ip")
#: What other systems call them.
METRIC_ALIASES = {
    **dict.fromkeys(("cos", "cosine_distance", "cosine_similarity"), "cosine"),
    **dict.fromkeys(("euclidean", "euclidean_distance", "l2_distance"), "l2"),
    **dict.fromkeys(("dot", "dot_product", "dotproduct", "inner", "inner_product"), "ip"),
}
INDEX_TYPES = ("hnsw", "ivfflat", "none")
#: The most dimensions that an index takes, coarser and coarser.
MAX_DIMENSIONS = {"full": 2000, "half": 4000, "binary": 64_000}
PRECISIONS = tuple(MAX_DIMENSIONS)

OPERATORS = {"cosine": "<=>", "l2": "<->", "ip": "<#>"}
HNSW_DEFAULTS = {"m": 16, "ef_construction": 64}
#: What each index type understands: at building, and at searching.
INDEX_OPTIONS = {
    "hnsw": frozenset({"m", "ef_construction", "ef_search"}),
    "ivfflat": frozenset({"lists", "probes"}),
    "none": frozenset[str](),
}
#: Those of searching; they may be changed while the index stays as it is.
SEARCH_OPTIONS = ("ef_search", "probes")
#: pgvector's own limits of each option.
OPTION_BOUNDS = {
    "m": (2, 100),
    "ef_construction": (4, 1000),
    "ef_search": (1, 1000),
    "lists": (1, 32_768),
    "probes": (1, 32_768),
}
#: pgvector's advice: a list for every thousand rows up to a million, then their square root.
ROWS_A_LIST = 1000
MANY_ROWS = 1_000_000
#: Fewer lists than this are all looked at.
MINIMUM_PROBES = 10
#: How many candidates are taken by their bits for each row that is wanted, before the full vectors
#: decide. Measured on 6,000 MiniLM vectors: see docs/decisions/0013.
BINARY_OVERSAMPLING = 5
#: And never fewer than this: the nearest ten need them however few rows are wanted.
BINARY_CANDIDATES = 400


def metric_named(name: str) -> str:
    """Which of METRICS is meant, by whatever name and in any case. Raises InvalidInput."""
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    metric = METRIC_ALIASES.get(plain, plain)
    if metric not in METRICS:
        raise InvalidInput(
            f"There is no metric “{name}”. Use {', '.join(METRICS)}.", field="metric"
        )
    return metric


@dataclass(frozen=True, slots=True)
class SpaceSql:
    """Fragments that a query and the index must share to the letter, or the index is not used."""

    space_id: int
    dimensions: int
    metric: str = "cosine"
    index_type: str = "hnsw"
    precision: str = "full"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def index_name(self) -> str:
        """Name of the partial index."""
        return f"chunk_space_{int(self.space_id)}_index"

    @property
    def parameter(self) -> str:
        """What a statement calls the question's vector in this space."""
        return f"vector_{int(self.space_id)}"

    @property
    def predicate(self) -> str:
        """The index's predicate."""
        return f"space_id = {int(self.space_id)}"

    def distance(self, query: str) -> str:
        """The exact distance to the vector that the SQL `query` gives: smaller is nearer."""
        return f"({self._full('embedding')}) {OPERATORS[self.metric]} {self._full(query)}"

    def indexed_distance(self, query: str) -> str:
        """The distance by which the index is ordered: at its precision."""
        return f"({self._coarse('embedding')}) {self._operator} ({self._coarse(query)})"

    def similarity(self, query: str) -> str:
        """-1..1, higher is nearer, for every metric: the cosine. Of vectors of length 1, as models
        make them, L2 and the inner product say the same; those that callers bring may have any."""
        return f"1 - (({self._full('embedding')}) {OPERATORS['cosine']} {self._full(query)})"

    def create_index(self, *, rows: int = 0, concurrently: bool = False) -> str:
        """`CREATE INDEX`; `rows` is how many vectors there are, by which IVFFlat cuts its lists."""
        without_lock = "CONCURRENTLY " if concurrently else ""
        return (
            f"CREATE INDEX {without_lock}IF NOT EXISTS {self.index_name} ON documents_chunk"
            f" USING {self.index_type} (({self._coarse('embedding')}) {self._operator_class})"
            f" WITH ({self._storage(rows)}) WHERE {self.predicate}"
        )

    def drop_index(self, *, concurrently: bool = False) -> str:
        """`DROP INDEX` of it."""
        return f"DROP INDEX {'CONCURRENTLY ' if concurrently else ''}IF EXISTS {self.index_name}"

    def probes(self, rows: int) -> int:
        """How many of an IVFFlat index's lists a search looks at: the root of all, at least 10."""
        lists = int(self.options.get("lists") or default_lists(rows))
        return int(self.options.get("probes") or max(MINIMUM_PROBES, round(sqrt(lists))))

    def _full(self, vector: str) -> str:
        return f"{vector}::vector({int(self.dimensions)})"

    def _coarse(self, vector: str) -> str:
        size = int(self.dimensions)
        return {
            "full": self._full(vector),
            "half": f"{vector}::halfvec({size})",
            "binary": f"binary_quantize({self._full(vector)})::bit({size})",
        }[self.precision]

    @property
    def _operator(self) -> str:
        return "<~>" if self.precision == "binary" else OPERATORS[self.metric]

    @property
    def _operator_class(self) -> str:
        if self.precision == "binary":
            return "bit_hamming_ops"
        return f"{'halfvec' if self.precision == 'half' else 'vector'}_{self.metric}_ops"

    def _storage(self, rows: int) -> str:
        if self.index_type == "ivfflat":
            return f"lists = {int(self.options.get('lists') or default_lists(rows))}"
        wanted = {name: self.options.get(name, value) for name, value in HNSW_DEFAULTS.items()}
        return ", ".join(f"{name} = {int(value)}" for name, value in wanted.items())


def default_lists(rows: int) -> int:
    """Lists of an IVFFlat index over so many rows."""
    return max(1, round(rows / ROWS_A_LIST if rows <= MANY_ROWS else sqrt(rows)))


def checked_index(
    *, dimensions: int, index_type: str, precision: str | None, options: Mapping[str, Any]
) -> tuple[str, str, list[str]]:
    """Index type and precision for so many dimensions, and remarks on what was changed.

    An index has a limit of dimensions, beyond which PostgreSQL would read every row without a
    word. Where `precision` is None the finest one that can be indexed is taken; one that is named
    and cannot be is refused. Raises InvalidInput.
    """
    check_options(index_type, options)
    if index_type == "none":
        return index_type, precision or "full", []
    if precision is not None:
        if dimensions > MAX_DIMENSIONS[precision]:
            raise InvalidInput(
                f"An index of {precision} precision takes {MAX_DIMENSIONS[precision]:,} dimensions"
                f" at most, not {dimensions:,}. {_cure(dimensions)}",
                field="precision",
            )
        return index_type, precision, []
    fitting = [name for name in PRECISIONS if dimensions <= MAX_DIMENSIONS[name]]
    if not fitting:
        return "none", "full", [f"{dimensions:,} dimensions cannot be indexed: searched exactly."]
    remark = (
        f"{dimensions:,} dimensions are more than an index of full precision takes"
        f" ({MAX_DIMENSIONS['full']:,}): indexed with {fitting[0]} precision. The vectors are"
        " stored in full, and hits are ranked by them."
    )
    return index_type, fitting[0], [] if fitting[0] == "full" else [remark]


def _cure(dimensions: int) -> str:
    fitting = [name for name in PRECISIONS if dimensions <= MAX_DIMENSIONS[name]]
    return f"Use precision {fitting[0]}." if fitting else "Use index type none."


def check_options(index_type: str, options: Mapping[str, Any]) -> None:
    """Raise InvalidInput for options that an index of this type does not have, and for values that
    it does not take."""
    known = INDEX_OPTIONS[index_type]
    for name, value in options.items():
        if name not in known:
            allowed = ", ".join(sorted(known)) or "no options"
            raise InvalidInput(
                f"An index of type {index_type} knows no option “{name}”. It takes {allowed}.",
                field="options",
            )
        check_option(name, value, field="options")


def check_option(name: str, value: Any, *, field: str = "") -> None:
    """Raise InvalidInput, about `field` or the option, for a value that pgvector refuses."""
    least, most = OPTION_BOUNDS[name]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidInput(
            f"{name} must be a whole number from {least} to {most:,}.", field=field or name
        )


def similarity_by_space(row: str, spaces: Iterable[SpaceSql]) -> str:
    """How similar a row is to the question in the row's own space, of those that the question was
    embedded in; NULL in any other. `row` is the alias of its table."""
    cases = " ".join(
        f"WHEN {space.space_id} THEN {space.similarity(f'%({space.parameter})s')}"
        for space in spaces
    )
    return f"CASE {row}.space_id {cases} END" if cases else "NULL::float8"
