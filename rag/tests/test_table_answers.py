"""Questions that tables answer: computed first, with the rows as citations; else as without."""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.models import Collection, Document
from documents.services import delete_document
from documents.tests.factories import CollectionFactory
from inference.interfaces import ChatMessage
from rag import tools
from rag.anthropic.messages import Message as AnthropicMessage
from rag.api.chat import ChatAnswerSerializer, ChatSerializer, answer_object, build_question
from rag.context import RagContext
from rag.events import Citation, Event, Metadata, Retrieval, Tables, answer_text
from rag.models import Message
from rag.openai.chat import Completion
from rag.services.answers import answer
from rag.services.chat import chat
from rag.services.questions import Question
from rag.tests.asking import chat_server, document, reader
from search.log import open_questions
from search.models import SearchLog
from tables.models import Table

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


@pytest.mark.parametrize(
    ("narrowed", "value"),
    [
        ({"document": "bikes.md"}, "**2** (Rows)"),
        ({"title": {"$ne": "Bikes"}}, None),
        ({"heading": "Notes"}, None),  # takes one passage of two
    ],
)
def test_under_a_filter_whole_documents_are_computed(
    context: RagContext, narrowed: dict[str, Any], value: str | None
) -> None:
    """One that leaves out single passages may leave out rows of a table."""
    collection = Collection.objects.get(slug="office")
    notes = "These are words below another heading. " * 100
    document(collection, "bikes.md", f"{BIKES}\n## Notes\n\n{notes}", rendering="markdown")
    document(collection, "more.md", BIKES.replace("Ferry", "Heron"), rendering="markdown")
    filtered = replace(context, filter=narrowed)
    text = answer_text(ask("How many bikes cost more than 4,000?", filtered))
    assert text.startswith(value) if value else "Computed" not in text


def tables_of(events: list[Event]) -> Tables:
    (found,) = (event for event in events if isinstance(event, Tables))
    return found


def test_programs_get_the_value_with_groups_and_rows(context: RagContext) -> None:
    computed = tables_of(ask("Average price by category", context)).computed
    assert computed is not None
    assert computed["measure"] == "Average of Price (EUR)"
    assert [(each["name"], each["worded"]) for each in computed["groups"]] == [
        ("Cargo", "4,690 EUR"),
        ("City", "1,490 EUR"),
        ("Mountain", "5,250 EUR"),
    ]
    first = computed["rows"][0]
    assert first["cells"] == ["Ferry", "Cargo", "4,690"]
    start = BIKES.index("| Ferry")
    end = start + len("| Ferry | Cargo | 4,690 |")
    assert first["url"].endswith(f"&quote={start}-{end}#passage")


def test_nothing_that_fits_is_none(context: RagContext) -> None:
    text = answer_text(ask("How many bikes cost more than 9,000?", context))
    assert text.startswith("**0** (Rows)")


def test_a_chat_model_is_not_asked_for_a_number_that_is_computed(
    context: RagContext, settings: Any
) -> None:
    with chat_server(settings) as server:
        events = ask("How many bikes cost more than 4,000?", context)
        assert not server.requests
    assert answer_text(events).startswith("**2** (Rows)")
    assert isinstance(events[0], Metadata)
    assert events[0].generator == "computed"


def test_readings_come_beside_the_passages_and_one_is_computed(context: RagContext) -> None:
    events = ask("How many folding bikes cost more than 900?", context)
    offered = tables_of(events)
    assert offered.computed is None
    assert offered.unknown == ("folding",)
    (reading,) = offered.readings
    assert reading["text"] == "Rows where Price (EUR) > 900"
    chosen = ask(reading["text"], context, reading=reading["reading"])
    assert answer_text(chosen).startswith("**3** (Rows)")
    computed = tables_of(chosen).computed
    assert computed is not None
    assert computed["is_chosen"]


def test_a_question_that_refers_to_earlier_ones_is_not_computed(context: RagContext) -> None:
    history = [ChatMessage("user", "Which bikes are there?"), ChatMessage("assistant", "Three.")]
    events = ask("How many of them cost more than 4,000?", context, history=history)
    assert "Computed" not in answer_text(events)


def test_the_log_says_which_tables_were_computed(context: RagContext) -> None:
    ask("How many bikes cost more than 4,000?", context)
    row = SearchLog.objects.get()
    table = Table.objects.get()
    assert (row.mode, row.tables, row.total) == ("tables", [table.pk], 2)
    assert (row.documents, row.confidence, row.source) == ([table.document_id], "high", "chat")
    ask("How many bikes cost more than 9,000?", context)
    assert open_questions(workspace_id=context.workspace.pk) == []


def test_a_conversation_keeps_and_forgets_what_was_computed(context: RagContext) -> None:
    list(chat(Question("Total price by category"), context=context))
    message = Message.objects.get(role=Message.Role.ASSISTANT)
    assert message.tables["computed"]["groups"][0]["name"] == "Cargo"
    delete_document(document=Document.objects.get(key="bikes.md", is_current=True))
    message.refresh_from_db()
    assert (message.state, message.tables) == (Message.State.REMOVED, None)


def test_the_page_shows_groups_as_a_picture_with_its_table(client: Client) -> None:
    context, collection = reader()
    document(collection, "bikes.md", BIKES, rendering="markdown")
    client.force_login(context.user)
    asked = client.post("/chat/", {"question": "Average price by category"}, follow=True)
    page = asked.content.decode()
    assert page.count("<rect") == 3
    assert 'role="img" aria-labelledby="plot-' in page
    assert '<td class="number">4,690 EUR</td>' in page
    assert "Computed from tables" in page
    address = re.search(r'href="(/tables/rows/\?reading=[^"]+)"', page)
    assert address
    assert "Average of Price (EUR), by Category" in client.get(address[1]).text


def test_a_reading_is_chosen_on_the_page(client: Client) -> None:
    context, collection = reader()
    document(collection, "bikes.md", BIKES, rendering="markdown")
    client.force_login(context.user)
    question = "How many folding bikes cost more than 900?"
    page = client.post("/chat/", {"question": question}, follow=True)
    reading = re.search(r'name="reading" value="([^"]+)"', page.text)
    assert reading
    assert "“folding”" in page.text
    address = page.redirect_chain[-1][0].partition("#")[0]
    chosen = client.post(address, {"question": "", "reading": reading[1]}, follow=True)
    assert '<strong dir="auto">3</strong>' in chosen.text
    assert Message.objects.filter(content="Rows where Price (EUR) > 900").exists()
    spoiled = client.post(address, {"question": "", "reading": "none"}, follow=True)
    assert spoiled.status_code == 400


def test_clients_of_openai_and_anthropic_get_the_value(context: RagContext) -> None:
    events = ask("How many bikes cost more than 4,000?", context)
    for answer_format in (Completion(model="any"), AnthropicMessage(model="any")):
        extras = answer_format.to_object(events)["ragsite"]
        assert extras["generator"] == "computed"
        assert extras["tables"]["computed"]["value"] == 2.0


def test_chat_over_the_api_gives_readings_and_values(context: RagContext) -> None:
    events = ask("How many folding bikes cost more than 900?", context)
    offered = ChatAnswerSerializer(answer_object(events)).data
    assert offered["tables"]["computed"] is None
    (reading,) = offered["tables"]["readings"]
    taken = ChatSerializer(data={"message": "As I chose.", "reading": reading["reading"]})
    assert taken.is_valid(), taken.errors
    question = build_question(taken.validated_data)
    chosen = ChatAnswerSerializer(answer_object(list(answer(question, context=context)))).data
    assert chosen["tables"]["computed"]["value"] == 3.0
    assert chosen["generator"] == "computed"


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
    assert "Rows where Price (EUR) > 900" in said.text


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
    (reading,) = answer["readings"]
    assert reading["text"] == "Rows where Price (EUR) > 900"
    assert answer["unknown"] == ["folding"]
    chosen = api.post("/api/v1/tables/ask/", {"reading": reading["reading"]}, format="json").json()
    assert (chosen["value"], chosen["count"]) == (3.0, 3)
    spoiled = {"reading": reading["reading"][:-1]}
    assert api.post("/api/v1/tables/ask/", spoiled, format="json").status_code == 400
    assert api.post("/api/v1/tables/ask/", {}, format="json").status_code == 400


def test_tools_that_search_show_the_row_that_is_named_first(context: RagContext) -> None:
    for name in ("hybrid_query", "search_words", "similarity_search"):
        text = tools.call(name, {"query": "City Go price"}, context=context).text
        _, _, shown = text.partition("Rows that fit best:\n")
        assert shown.startswith("| Model City Go: Category City, Price 1,490 EUR\nText:\n| "), text


def test_a_row_that_is_named_is_quoted_in_words(context: RagContext) -> None:
    events = ask("Tell me about the City Go", context)
    text = answer_text(events)
    assert "Model City Go: Category City, Price 1,490 EUR [1]" in text
    cited = [event for event in events if isinstance(event, Citation)]
    assert cited[0].quote == "| City Go | City | 1,490 |"
