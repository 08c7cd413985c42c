"""Sources as they stand beside an answer."""

from dataclasses import replace
from typing import Any

from rag.events import Citation, passage_data
from rag.tests import answering
from rag.views.turns import source_views
from reading.location import WORKBOOK


def passage(text: str, *, headings: tuple[str, ...] = ()) -> dict[str, Any]:
    where = {"url": "/documents/notes/1/", "page": None, "start": 0, "end": len(text)}
    of = {"title": "The move", "document_key": "move.md", "collection": "office"}
    return {"number": 1, "text": text, "heading_path": list(headings), **of, **where}


def test_a_teaser_is_words_and_a_title_is_said_once() -> None:
    text = "# The move\n\nThe [firm](firm.md) leaves `Mill Street`."
    (source,) = source_views(
        [passage(text, headings=("The move", "When"))],
        [{"number": 1, "start": 12, "end": 20}],
        collections={"office": "Office"},
    )
    assert source["teaser"] == "The firm leaves Mill Street."
    assert source["place"] == "Office · When"
    assert "".join(part["text"] for part in source["parts"]) == text


def test_what_is_not_cited_has_no_teaser() -> None:
    (source,) = source_views([passage("Words.")], [], collections={})
    assert source["teaser"] == ""


def test_a_source_is_where_its_first_quotation_is() -> None:
    text = "| Item | Price |\n| - | - |\n| Desk | 90 |\n| Lamp | 20 |"
    found = replace(
        answering.passage(text, start=40), page=7, media_type=WORKBOOK, heading_path=("Prices",)
    )
    at = 40 + text.index("| Lamp")
    citation = Citation(found, at=0, start=at, end=40 + len(text), quote=text[at - 40 :]).data()
    assert (passage_data(found)["location"], citation["location"]) == ("Prices!A7", "Prices!A8")
    (source,) = source_views([passage_data(found)], [citation], collections={})
    assert source["place"] == "shelf · Prices · Prices!A8"
    (source,) = source_views([passage("Words.") | {"page": 3}], [], collections={})
    assert source["place"] == "office · page 3"  # an answer from before there were locations
