"""The SQL of an embedding space: its expression, its operator and its index."""

from dataclasses import dataclass

OPERATORS = {"cosine": "<=>", "l2": "<->", "ip": "<#>"}
OPERATOR_CLASSES = {
    "cosine": "vector_cosine_ops",
    "l2": "vector_l2_ops",
    "ip": "vector_ip_ops",
}
HNSW_DEFAULTS = {"m": 16, "ef_construction": 64}


@dataclass(frozen=True, slots=True)
class SpaceSql:
    """Fragments that a query and the index must share to the letter, or the index is not used."""

    space_id: int
    dimensions: int
    metric: str = "cosine"

    @property
    def index_name(self) -> str:
        """Name of the partial index."""
        return f"chunk_space_{int(self.space_id)}_index"

    @property
    def operand(self) -> str:
        """The indexed expression."""
        return f"embedding::vector({int(self.dimensions)})"

    @property
    def predicate(self) -> str:
        """The index's predicate."""
        return f"space_id = {int(self.space_id)}"

    @property
    def operator(self) -> str:
        """The distance operator: smaller is nearer for each of pgvector's."""
        return OPERATORS[self.metric]

    def create_index(self, *, m: int = 16, ef_construction: int = 64) -> str:
        """`CREATE INDEX` of the space's HNSW index."""
        return (
            f"CREATE INDEX IF NOT EXISTS {self.index_name} ON documents_chunk"
            f" USING hnsw (({self.operand}) {OPERATOR_CLASSES[self.metric]})"
            f" WITH (m = {int(m)}, ef_construction = {int(ef_construction)})"
            f" WHERE {self.predicate}"
        )

    def drop_index(self) -> str:
        """`DROP INDEX` of it."""
        return f"DROP INDEX IF EXISTS {self.index_name}"
