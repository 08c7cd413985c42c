"""Reading JSON that came over the broker, which anybody who reaches it may have written."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inference.base import MalformedAnswer

VERSIONS = "Do the site and the worker run the same version?"


def read_fields(data: bytes) -> Mapping[str, Any]:
    """Raises MalformedAnswer unless it is a JSON object."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(f"what came over the broker is no JSON. {VERSIONS}") from error
    if not isinstance(fields, dict):
        raise MalformedAnswer(f"what came over the broker is no JSON object. {VERSIONS}")
    return fields


def field(fields: Mapping[str, Any], name: str, kind: Any) -> Any:
    """The value of that name. Raises MalformedAnswer unless it is a `kind`."""
    value = fields.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MalformedAnswer(f"what came over the broker has no proper {name!r}. {VERSIONS}")
    return value


def list_field(fields: Mapping[str, Any], name: str, kind: Any) -> Sequence[Any]:
    """The values of that name. Raises MalformedAnswer unless each is a `kind`."""
    values = field(fields, name, list)
    if not all(isinstance(value, kind) for value in values):
        raise MalformedAnswer(f"what came over the broker has no proper {name!r}. {VERSIONS}")
    return tuple(values)
