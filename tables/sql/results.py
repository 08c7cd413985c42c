"""What a SELECT that a language model wrote gave. Light: imports no parser."""

from dataclasses import dataclass

#: A value of a result: dates and intervals are texts.
Cell = str | float | bool | None


@dataclass(frozen=True, slots=True)
class WrittenQuery:
    """A SELECT that `model` wrote for a question in `language`, as it was run, and what it gave:
    `rows` of cells under `columns`, the first ones where `is_cut`. It reads `table_ids`."""

    sql: str
    model: str
    language: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_cut: bool = False
    table_ids: tuple[int, ...] = ()
