"""Sources as they stand beside an answer."""

from typing import Any

from rag.views.turns import source_views


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
