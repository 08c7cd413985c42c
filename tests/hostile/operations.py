"""The operations of the description, each with a request of `tests/access` that is right."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.access.policy import Door
from tests.access.report import DOORS
from tests.access.walking import filled
from tests.description import api_description


@dataclass(frozen=True, slots=True)
class Operation:
    """`path` and `query` are of a right request; `body` is its JSON, None where none is taken.
    `fields` are the names that the body may have, `parameters` those of the query."""

    name: str
    method: str
    path: str
    query: str
    body: dict[str, Any] | None
    fields: tuple[str, ...]
    parameters: tuple[str, ...]
    statuses: frozenset[int]
    is_threaded: bool


def operations(ids: dict[str, Any]) -> Iterator[Operation]:
    """All of them, with the things of a world. Raises LookupError for one that no door leads to."""
    described = api_description()
    for path, methods in described["paths"].items():
        for method, told in methods.items():
            door = _door(path, method, described["paths"])
            address = urlsplit(filled(door.path, ids))
            content = told.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema")
            while schema is not None and "$ref" in schema:
                schema = described["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
            yield Operation(
                name=f"{method.upper()} {path}",
                method=method.upper(),
                path=unquote(address.path),
                query=address.query,
                body=None if schema is None else filled(door.body or {}, ids),
                fields=tuple(schema.get("properties", {})) if schema else (),
                parameters=tuple(
                    each["name"] for each in told.get("parameters", ()) if each["in"] == "query"
                ),
                statuses=frozenset(map(int, told["responses"])),
                is_threaded=door.is_threaded,
            )


def _door(path: str, method: str, paths: Any) -> Door:
    """The first one that leads to the operation, and to no other that says its path outright."""
    wanted = _pattern(path)
    for door in DOORS:
        at = urlsplit(door.path).path
        if door.method == method.upper() and not door.is_form and wanted.fullmatch(at):
            outright = {other for other in paths if _pattern(other).fullmatch(at)}
            if path == min(outright, key=lambda other: other.count("{")):
                return door
    raise LookupError(f"{method} {path}: no door of tests/access leads there")


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{.*?\\\}", "[^/]+", re.escape(path)))
