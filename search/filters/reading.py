"""Filters from outside, in whatever form they come."""

from collections.abc import Mapping
from typing import Any

from search.filters.fields import METADATA, Field, check_text
from search.filters.json_reading import parse_json, read_json
from search.filters.limits import MAX_DEPTH, FilterError, too_deep
from search.filters.text_reading import read_text
from search.filters.tree import Node, Operator, all_of, depth, equals
from search.filters.values import check_value


def read_filter(value: Any) -> Node:
    """The tree of a filter: a mapping in JSON form, or text that holds JSON or the text form.

    None and blank text filter nothing. Raises FilterError, whose message names the place of the
    fault and the cure.
    """
    node = _read("" if value is None else value)
    if depth(node) > MAX_DEPTH:
        raise too_deep()
    return node


def _read(value: Any) -> Node:
    if not isinstance(value, str):
        return read_json(value)
    return read_json(parse_json(value)) if value.lstrip().startswith("{") else read_text(value)


def metadata_filter(pairs: Mapping[str, Any]) -> Node:
    """Metadata that contain these pairs: the same values, all elements of a list, all pairs of an
    object within. Raises FilterError."""
    return _containing(pairs, ())


def _containing(pairs: Mapping[str, Any], above: tuple[str, ...]) -> Node:
    if len(above) > MAX_DEPTH:
        raise too_deep(".".join(above))
    return all_of(_pair((*above, key), value) for key, value in pairs.items())


def _pair(keys: tuple[str, ...], value: Any) -> Node:
    at = ".".join(keys)
    field = Field(METADATA, keys)
    check_text(at, at=at)
    match value:
        case Mapping() | list() | tuple() if not value:
            raise FilterError("There is no value in it. Give one.", at=at)
        case Mapping():
            return _containing(value, keys)
        case list() | tuple():
            return all_of(_pair(keys, element) for element in value)
        case None:
            return equals(field, None)
        case _:
            return equals(field, check_value(field, Operator.EQ, value, at=at))
