"""The filter language: one tree from JSON or text, one piece of SQL for every arm. Pure."""

from search.filters.choosing import chosen, chosen_fields, is_chosen, loosened, toggled
from search.filters.json_writing import to_json
from search.filters.limits import FilterError
from search.filters.reading import metadata_filter, read_filter
from search.filters.sql import compile_filter
from search.filters.text_writing import to_text
from search.filters.tree import ALL, And, Comparison, Node, Not, Or, all_of, one_of

__all__ = [
    "ALL",
    "And",
    "Comparison",
    "FilterError",
    "Node",
    "Not",
    "Or",
    "all_of",
    "chosen",
    "chosen_fields",
    "compile_filter",
    "is_chosen",
    "loosened",
    "metadata_filter",
    "one_of",
    "read_filter",
    "to_json",
    "to_text",
    "toggled",
]
