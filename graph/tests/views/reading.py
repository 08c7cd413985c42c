"""Reading the explorer as its visitor, and its drawing, do."""

from typing import Any

from django.test import Client

from documents.tests.views.reading import parse


def explored(client: Client, **params: Any) -> Any:
    """The document of the explorer's page."""
    return parse(client.get("/graph/", params))


def listed(tree: Any) -> list[str]:
    """The names in the list, in order."""
    return [link.text_content() for link in tree.iterfind(".//tr[@data-row]/th/a")]


def drawn(client: Client, **params: Any) -> tuple[set[str], set[tuple[str, str, str]]]:
    """Names of the nodes that are drawn, and the links as source, relation and target."""
    elements = client.get("/graph/elements/", params).json()["elements"]
    names = {node["data"]["id"]: node["data"]["name"] for node in elements["nodes"]}
    links = (edge["data"] for edge in elements["edges"])
    return set(names.values()), {
        (names[link["source"]], link["rel"], names[link["target"]]) for link in links
    }
