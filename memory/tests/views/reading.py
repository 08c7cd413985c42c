"""Reading a page of memory as its visitor does."""

from typing import Any

from documents.tests.views.reading import parse, words
from memory.models import Fact


def paths(home: Fact) -> list[str]:
    """Every page that has something of `home` and its turn, or of the memory as a whole."""
    turn = f"/memory/contexts/{home.source_id}/"
    return [
        "/memory/",
        "/memory/facts/home_city/",
        "/memory/facts/home_city/forget/",
        "/memory/contexts/",
        "/memory/contexts/?find=moved",
        turn,
        f"{turn}forget/",
        "/memory/reading/",
        "/memory/storage/",
        "/memory/storage/export/",
        "/memory/storage/erase/",
    ]


def shown(answer: Any) -> str:
    """The text of the page's main part."""
    return words(parse(answer).find(".//main"))


def listed(answer: Any) -> list[tuple[str, str]]:
    """The facts of a page, each with its value."""
    rows = parse(answer).iterfind(".//li[@class='fact']")
    return [(words(row.find("h3")), words(row.find(".//p[@class='value']"))) for row in rows]


def body(answer: Any) -> str:
    """The text of an answer, streamed or not."""
    return b"".join(answer).decode() if answer.streaming else answer.text


def turns(tree: Any) -> list[str]:
    """What was said in each turn of a page."""
    return [words(row) for row in tree.iterfind(".//li[@class='turn']//h3")]
