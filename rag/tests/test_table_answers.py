"""Questions that tables answer: computed first, with the rows as citations; else as without."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.tests.factories import CollectionFactory
from rag import tools
from rag.context import RagContext
from rag.events import Citation, Event, Metadata, Retrieval, answer_text
from rag.services.answers import answer
from rag.services.questions import Question
from rag.tests.asking import document, reader

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

BIKES = """# Bikes

| Model | Category | Price (EUR) |
| --- | --- | --- |
| Ferry | Cargo | 4,690 |
| Dune | Mountain | 5,250 |
| City Go | City | 1,490 |
"""


@pytest.fixture
def context() -> RagContext:
    context, collection = reader()
    document(collection, "bikes.md", BIKES, rendering="markdown")
    return context


def ask(question: str, context: RagContext, **options: Any) -> list[Event]:
    return list(answer(Question(question, **options), context=context))


def test_a_computed_answer_comes_with_its_rows(context: RagContext) -> None:
    events = ask("How many bikes cost more than 4,000?", context)
    text = answer_text(events)
    assert text.startswith("**2** (Rows)\n\nComputed from 2 rows of bikes.md where Price (EUR)")
    cited = [event for event in events if isinstance(event, Citation)]
    assert [each.quote for each in cited] == [
        "| Ferry | Cargo | 4,690 |",
        "| Dune | Mountain | 5,250 |",
    ]
    for each in cited:
        assert text[each.at :].startswith(f"[{each.passage.number}]")
    (found,) = (event for event in events if isinstance(event, Retrieval))
    assert found.confidence == "high"
    assert isinstance(events[0], Metadata)


def test_the_answer_is_in_the_language_of_the_question(context: RagContext) -> None:
    text = answer_text(ask("Wie hoch ist der durchschnittliche Preis?", context))
    assert text.startswith("**3.810 EUR** (Durchschnitt von Price (EUR))")


def test_other_questions_are_answered_from_passages(context: RagContext) -> None:
    text = answer_text(ask("When does the firm leave Mill Street?", context))
    assert "14 March" in text
    assert "Computed" not in text


def test_under_a_filter_nothing_is_computed(context: RagContext) -> None:
    """It may leave some rows of a table out."""
    narrowed = RagContext(
        user=context.user, workspace=context.workspace, filter={"media_type": "text/plain"}
    )
    assert "Computed" not in answer_text(ask("How many bikes cost more than 4,000?", narrowed))


def test_the_tool_computes_and_cites(context: RagContext) -> None:
    said = tools.call(
        "query_tables", {"question": "Which bike is the most expensive?"}, context=context
    )
    assert not said.is_error
    assert "| **5,250 EUR** (Greatest Price (EUR))" in said.text
    assert '[1] "bikes' in said.text.casefold() or '[1] "Bikes' in said.text
    assert "| Model: Dune; Category: Mountain; Price (EUR): 5,250" in said.text


def test_the_tool_says_what_it_does_not_understand(context: RagContext) -> None:
    said = tools.call(
        "query_tables", {"question": "How many folding bikes cost more than 900?"}, context=context
    )
    assert 'Not understood: "folding"' in said.text
    assert "count of rows where Price (EUR) > 900" in said.text


def test_the_api_computes(api: APIClient, alice: Membership) -> None:
    collection = CollectionFactory(workspace=alice.workspace, slug="bikes")
    document(collection, "bikes.md", BIKES, rendering="markdown")
    asked = {"question": "Average price by category", "collections": ["bikes"]}
    answer = api.post("/api/v1/tables/ask/", asked, format="json").json()
    assert answer["is_computed"]
    assert answer["groups"] == [
        {"name": "Cargo", "value": 4690.0, "count": 1},
        {"name": "City", "value": 1490.0, "count": 1},
        {"name": "Mountain", "value": 5250.0, "count": 1},
    ]
    assert answer["unit"] == "EUR"
    first = answer["rows"][0]
    assert first["cells"] == ["Ferry", "Cargo", "4,690"]
    assert BIKES[first["start"] : first["end"]] == "| Ferry | Cargo | 4,690 |"


def test_the_api_says_what_is_not_sure(api: APIClient, alice: Membership) -> None:
    collection = CollectionFactory(workspace=alice.workspace, slug="bikes")
    document(collection, "bikes.md", BIKES, rendering="markdown")
    asked = {"question": "How many folding bikes cost more than 900?"}
    answer = api.post("/api/v1/tables/ask/", asked, format="json").json()
    assert not answer["is_computed"]
    assert answer["readings"] == ["count of rows where Price (EUR) > 900"]
    assert answer["unknown"] == ["folding"]
    assert api.post("/api/v1/tables/ask/", {}, format="json").status_code == 400


def test_tools_that_search_show_the_row_that_is_named_first(context: RagContext) -> None:
    for name in ("hybrid_query", "search_words", "similarity_search"):
        text = tools.call(name, {"query": "City Go price"}, context=context).text
        _, _, shown = text.partition("Rows that fit best:\n")
        assert shown.startswith("| Model City Go: Category City, Price 1,490 EUR\nText:\n| "), text


def test_a_row_that_is_named_is_quoted_in_words(context: RagContext) -> None:
    events = ask("Which category has the City Go?", context)
    text = answer_text(events)
    assert "Model City Go: Category City, Price 1,490 EUR [1]" in text
    cited = [event for event in events if isinstance(event, Citation)]
    assert cited[0].quote == "| City Go | City | 1,490 |"
