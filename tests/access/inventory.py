"""What doors there are, read off the site itself."""

import re
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.urls import URLPattern, get_resolver, resolve

_IN_BRACES = re.compile(r"\{(\w+)\}")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def routes() -> set[str]:
    """Every pattern of the URL resolver, as a match calls it."""
    return set(_routes(get_resolver().url_patterns, ""))


def _routes(patterns: list[Any], before: str) -> Iterator[str]:
    for each in patterns:
        route = before + str(each.pattern)
        if isinstance(each, URLPattern):
            yield route
        else:
            yield from _routes(each.url_patterns, route)


def route_of(path: str) -> str:
    """The pattern that a path is answered by."""
    return resolve(path.partition("?")[0]).route


def operations() -> set[tuple[str, str]]:
    """Method and pattern of each operation that the API describes."""
    from drf_spectacular.generators import SchemaGenerator

    described = SchemaGenerator().get_schema(request=None, public=True)
    return {
        (method.upper(), route_of(_IN_BRACES.sub(_sample, path)))
        for path, methods in described["paths"].items()
        for method in methods
        if method.upper() in METHODS
    }


def _sample(match: re.Match[str]) -> str:
    return "1" if match[1].endswith("id") else "a"


def mcp_methods() -> set[str]:
    """What the server of the Model Context Protocol answers."""
    from rag.mcp.server import build_server

    return set(build_server(lambda request, cancelled: None)._request_handlers)  # type: ignore[arg-type,return-value]


def admin_models() -> dict[str, Any]:
    """Each model's admin."""
    assert get_resolver().url_patterns  # which registers them
    return {model._meta.label_lower: each for model, each in admin.site._registry.items()}


def owned_models() -> list[type[Model]]:
    """Every table whose rows have a workspace."""
    return [model for model in apps.get_models() if _has_workspace(model)]


def _has_workspace(model: type[Model]) -> bool:
    return any(field.name == "workspace" for field in model._meta.concrete_fields)
