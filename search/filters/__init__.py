"""The filter language: one tree from JSON or text, one piece of SQL for every arm. Pure."""

from search.filters.sql import compile_filter
from search.filters.syntax import metadata_filter, read_filter, to_json, to_text
from search.filters.tree import (
    ALL,
    And,
    Comparison,
    FilterError,
    Node,
    all_of,
    chosen_fields,
    chosen_values,
    is_chosen,
    one_of,
    without_field,
)

__all__ = [
    "ALL",
    "And",
    "Comparison",
    "FilterError",
    "Node",
    "all_of",
    "chosen_fields",
    "chosen_values",
    "compile_filter",
    "is_chosen",
    "metadata_filter",
    "one_of",
    "read_filter",
    "to_json",
    "to_text",
    "without_field",
]
