"""A chat model that writes SQL for questions to tables: in the API, the tool and the chat."""

from collections.abc import Iterator
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.tests.factories import CollectionFactory
from inference.tests.stub_server import StubServer, chat_reply
from model_servers.models import ModelUsage
from model_servers.token_limits import count_tokens
from rag import tools
from rag.context import RagContext
from rag.events import Citation, answer_text
from rag.services.answers import answer
from rag.services.questions import EXTRACTIVE, Question
from rag.tests.asking import chat_server, document, reader
from rag.tests.test_table_answers import BIKES

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

QUESTION = "How many folding bikes cost more than 900?"
SQL = """SELECT "Model", "Price (EUR)" FROM bikes WHERE "Price (EUR)" > 900 ORDER BY 2 LIMIT 2"""


@pytest.fixture
def server(settings: Any) -> Iterator[StubServer]:
    with chat_server(settings) as running:
        running.first(chat_reply(f"```sql\n{SQL}\n```"))
        yield running


@pytest.fixture
def context() -> RagContext:
    context, collection = reader()
    document(collection, "bikes.md", BIKES, rendering="markdown")
    return context


def test_the_chat_answers_with_the_result_and_its_rows(
    server: StubServer, context: RagContext
) -> None:
    events = list(answer(Question(QUESTION), context=context))
    text = answer_text(events)
    assert "| City Go | 1,490 EUR |" in text
    assert "Computed from bikes.md." in text
    assert "```sql\nSELECT" in text
    cited = [event for event in events if isinstance(event, Citation)]
    assert [each.quote for each in cited] == [
        "| City Go | City | 1,490 |",
        "| Ferry | Cargo | 4,690 |",
    ]
    assert len(server.requests) == 1


def test_the_tokens_are_counted_as_those_of_tables(server: StubServer, context: RagContext) -> None:
    list(answer(Question(QUESTION), context=context))
    used = ModelUsage.objects.get(workspace=context.workspace)
    assert (used.purpose, used.calls, used.user_id) == ("tables", 1, context.user_id)


def test_who_asks_for_quotations_asks_no_model(server: StubServer, context: RagContext) -> None:
    text = answer_text(list(answer(Question(QUESTION, model=EXTRACTIVE), context=context)))
    assert "sql" not in text
    assert server.requests == []


def test_the_tool_shows_the_sql(server: StubServer, context: RagContext) -> None:
    said = tools.call("query_tables", {"question": QUESTION}, context=context)
    assert not said.is_error
    assert "| | City Go | 1,490 EUR |" in said.text
    assert 'FROM "bikes"' in said.text
    assert "| Model: City Go; Category: City; Price (EUR): 1,490" in said.text


@pytest.mark.parametrize("is_off", ["setting", "scope", "tokens", "model"])
def test_without_leave_no_model_is_asked(
    server: StubServer, context: RagContext, settings: Any, is_off: str
) -> None:
    """Where it is switched off, for keys that may only read, without tokens or without a model."""
    match is_off:
        case "setting":
            settings.TABLES_WITH_MODEL = False
        case "scope":
            context = RagContext(context.user, context.workspace, scopes=frozenset({"read"}))
        case "tokens":
            settings.MODEL_TOKENS_PER_USER = "1/day"
            count_tokens(10, workspace_id=context.workspace.pk, user_id=context.user_id)
        case "model":
            settings.INFERENCE = {**settings.INFERENCE, "chat": {}}
    said = tools.call("query_tables", {"question": QUESTION}, context=context)
    assert 'Not understood: "folding"' in said.text
    assert server.requests == []


def test_the_api_gives_sql_and_rows(server: StubServer, api: APIClient, alice: Membership) -> None:
    collection = CollectionFactory(workspace=alice.workspace, slug="bikes")
    document(collection, "bikes.md", BIKES, rendering="markdown")
    alone = {"question": QUESTION, "with_model": False}
    answer = api.post("/api/v1/tables/ask/", alone, format="json").json()
    assert (answer["is_computed"], answer["with_model"], answer["sql"]) == (False, False, "")
    assert answer["unknown"] == ["folding"]

    answer = api.post("/api/v1/tables/ask/", {"question": QUESTION}, format="json").json()
    assert (answer["is_computed"], answer["with_model"]) == (True, True)
    assert answer["sql"].startswith('SELECT\n  "Model",')
    assert answer["result_columns"] == ["Model", "Price (EUR)"]
    assert answer["result_rows"] == [["City Go", 1490.0], ["Ferry", 4690.0]]
    assert answer["unit"] == "EUR"
    assert [row["cells"][0] for row in answer["rows"]] == ["City Go", "Ferry"]
    assert answer["text"].startswith("| Model | Price (EUR) |")
