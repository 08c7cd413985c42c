"""The SQL of an embedding space: expression, operators and index.

Limits and operator classes are pgvector's (0.8): https://github.com/pgvector/pgvector
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from common.errors import InvalidInput
from common.translation import format_number, gettext

METRICS = ("cosine", "l2", "ip")
#: Their names in other systems.
METRIC_ALIASES = {
    **dict.fromkeys(("cos", "cosine_distance", "cosine_similarity"), "cosine"),
    **dict.fromkeys(("euclidean", "euclidean_distance", "l2_distance"), "l2"),
    **dict.fromkeys(("dot", "dot_product", "dotproduct", "inner", "inner_product"), "ip"),
}
INDEX_TYPES = ("hnsw", "ivfflat", "none")
#: Maximum dimensions that an index takes, by precision.
MAX_DIMENSIONS = {"full": 2000, "half": 4000, "binary": 64_000}
PRECISIONS = tuple(MAX_DIMENSIONS)
#: Such indexes find the same ten nearest as full ones, in 0.57 times the space (decision 51).
DEFAULT_PRECISION = "half"

OPERATORS = {"cosine": "<=>", "l2": "<->", "ip": "<#>"}
HNSW_DEFAULTS = {"m": 16, "ef_construction": 64}
#: Options of each index type, for building and for searching.
INDEX_OPTIONS = {
    "hnsw": frozenset({"m", "ef_construction", "ef_search"}),
    "ivfflat": frozenset({"lists", "probes"}),
    "none": frozenset[str](),
}
#: Options of searching: they may change without a new index.
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
ROWS_PER_LIST = 1000
SQRT_LISTS_ABOVE_ROWS = 1_000_000
#: Indexes with fewer lists are searched completely.
MIN_PROBES = 10
#: Candidates by their bits for each wanted row, before the full vectors decide. Measured on 6,000
#: MiniLM vectors: see docs/decisions/0013.
BINARY_OVERSAMPLING = 5
#: Minimum of candidates: the nearest ten need them however few rows are wanted.
MIN_BINARY_CANDIDATES = 400


def resolve_metric(name: str) -> str:
    """The metric of METRICS with this name or alias, in any case. Raises InvalidInput."""
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    metric = METRIC_ALIASES.get(plain, plain)
    if metric not in METRICS:
        raise InvalidInput(
            gettext("There is no metric “{name}”. Use {names}.").format(
                name=name, names=", ".join(METRICS)
            ),
            field="metric",
        )
    return metric


@dataclass(frozen=True, slots=True)
class SpaceSql:
    """SQL fragments that a query and the index must share exactly, or the index is not used."""

    space_id: int
    dimensions: int
    metric: str = "cosine"
    index_type: str = "hnsw"
    precision: str = "full"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def index_name(self) -> str:
        """Name of the space's partial index."""
        return f"chunk_space_{int(self.space_id)}_index"

    @property
    def parameter(self) -> str:
        """Name of the statement parameter with the question's vector in this space."""
        return f"vector_{int(self.space_id)}"

    @property
    def predicate(self) -> str:
        """WHERE condition of the partial index."""
        return f"space_id = {int(self.space_id)}"

    def distance(self, query: str) -> str:
        """SQL of the exact distance to the vector `query` (SQL): smaller is nearer."""
        return f"({self._full('embedding')}) {OPERATORS[self.metric]} {self._full(query)}"

    def indexed_distance(self, query: str) -> str:
        """SQL of the distance that orders the index, at its precision."""
        operator = "<~>" if self.precision == "binary" else OPERATORS[self.metric]
        return f"({self._coarse('embedding')}) {operator} ({self._coarse(query)})"

    def similarity(self, query: str) -> str:
        """SQL of the cosine similarity, -1..1, for every metric. For vectors of length 1, as models
        make them, L2 and inner product rank the same; vectors of callers may have any length."""
        return f"1 - (({self._full('embedding')}) {OPERATORS['cosine']} {self._full(query)})"

    def create_index(self, *, rows: int = 0, concurrently: bool = False) -> str:
        """`CREATE INDEX`; `rows` is the number of vectors, from which the lists of IVFFlat
        follow."""
        without_lock = "CONCURRENTLY " if concurrently else ""
        vector_type = "halfvec" if self.precision == "half" else "vector"
        operators = f"{vector_type}_{self.metric}_ops"
        if self.precision == "binary":
            operators = "bit_hamming_ops"
        if self.index_type == "ivfflat":
            options = {"lists": self.options.get("lists") or default_lists(rows)}
        else:
            options = {name: self.options.get(name, value) for name, value in HNSW_DEFAULTS.items()}
        storage = ", ".join(f"{name} = {int(value)}" for name, value in options.items())
        return (
            f"CREATE INDEX {without_lock}IF NOT EXISTS {self.index_name} ON documents_chunk"
            f" USING {self.index_type} (({self._coarse('embedding')}) {operators})"
            f" WITH ({storage}) WHERE {self.predicate}"
        )

    def drop_index(self, *, concurrently: bool = False) -> str:
        """`DROP INDEX IF EXISTS` of the space's index."""
        return f"DROP INDEX {'CONCURRENTLY ' if concurrently else ''}IF EXISTS {self.index_name}"

    @property
    def links(self) -> int:
        """Links of a vector in an HNSW index."""
        return int(self.options.get("m") or HNSW_DEFAULTS["m"])

    def probes(self, rows: int) -> int:
        """How many lists of an IVFFlat index a search visits: the square root of all, at least
        10."""
        lists = int(self.options.get("lists") or default_lists(rows))
        return int(self.options.get("probes") or max(MIN_PROBES, round(sqrt(lists))))

    def _full(self, vector: str) -> str:
        return f"{vector}::vector({int(self.dimensions)})"

    def _coarse(self, vector: str) -> str:
        size = int(self.dimensions)
        return {
            "full": self._full(vector),
            "half": f"{vector}::halfvec({size})",
            "binary": f"binary_quantize({self._full(vector)})::bit({size})",
        }[self.precision]


def default_lists(rows: int) -> int:
    """Number of lists of an IVFFlat index over this many rows."""
    return max(1, round(rows / ROWS_PER_LIST if rows <= SQRT_LISTS_ABOVE_ROWS else sqrt(rows)))


def checked_index(
    *, dimensions: int, index_type: str, precision: str | None, options: Mapping[str, Any]
) -> tuple[str, str, list[str]]:
    """Index type and precision for this many dimensions, and remarks on what was changed.

    Beyond an index's limit of dimensions PostgreSQL would silently read every row. If `precision`
    is None it is half, or binary where an index takes no more; an explicit one that cannot be
    indexed is refused. Raises InvalidInput.
    """
    check_options(index_type, options)
    if index_type == "none":
        return index_type, precision or "full", []
    fitting = [name for name in PRECISIONS if dimensions <= MAX_DIMENSIONS[name]]
    if precision is not None:
        if dimensions > MAX_DIMENSIONS[precision]:
            advice = (
                gettext("Use {precision} precision.").format(precision=fitting[0])
                if fitting
                else gettext("Use the index type none.")
            )
            raise InvalidInput(
                gettext(
                    "An index of {precision} precision can have at most {limit}"
                    " dimensions, not {dimensions}. {advice}"
                ).format(
                    precision=precision,
                    limit=format_number(MAX_DIMENSIONS[precision]),
                    dimensions=format_number(dimensions),
                    advice=advice,
                ),
                field="precision",
            )
        return index_type, precision, []
    if not fitting:
        return "none", "full", [f"{dimensions:,} dimensions cannot be indexed: searched exactly."]
    if DEFAULT_PRECISION in fitting:
        return index_type, DEFAULT_PRECISION, []
    remark = (
        f"{dimensions:,} dimensions are more than an index of {DEFAULT_PRECISION} precision takes"
        f" ({MAX_DIMENSIONS[DEFAULT_PRECISION]:,}): indexed with {fitting[0]} precision. The"
        " vectors are stored in full, and hits are ranked by them."
    )
    return index_type, fitting[0], [remark]


def check_options(index_type: str, options: Mapping[str, Any]) -> None:
    """Raise InvalidInput for options that an index of this type does not have, and for values out
    of bounds."""
    known = INDEX_OPTIONS[index_type]
    for name, value in options.items():
        if name not in known:
            allowed = ", ".join(sorted(known)) or gettext("none")
            raise InvalidInput(
                gettext(
                    "An index of type {index_type} has no option “{name}”. It has {names}."
                ).format(index_type=index_type, name=name, names=allowed),
                field="options",
            )
        check_option(name, value, field="options")


def check_option(name: str, value: Any, *, field: str = "") -> None:
    """Raise InvalidInput, about `field` or the option, for a value out of pgvector's bounds."""
    least, most = OPTION_BOUNDS[name]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidInput(
            gettext("{name} must be a whole number from {least} to {most}.").format(
                name=name, least=least, most=format_number(most)
            ),
            field=field or name,
        )


def similarity_by_space(row: str, spaces: Iterable[SpaceSql]) -> str:
    """SQL of a row's similarity to the question in the row's own space, if the question was
    embedded in it, else NULL. `row` is the alias of its table."""
    cases = " ".join(
        f"WHEN {space.space_id} THEN {space.similarity(f'%({space.parameter})s')}"
        for space in spaces
    )
    return f"CASE {row}.space_id {cases} END" if cases else "NULL::float8"
