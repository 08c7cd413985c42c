"""Wrong settings of the graph are said by `check`, and collections without a model to read them."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from documents.tests.factories import CollectionFactory
from graph import checks
from graph.checks import check_chat, check_settings
from model_servers.tests.servers import choose_own
from tests.kit import use_models

STUB = "inference.backends.chat_openai.OpenAIChat"


def test_good_settings_say_nothing() -> None:
    assert check_settings(None) == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("GRAPH_MAX_PROPS_BYTES", 0, "graph.E001"),
        ("GRAPH_EXTRACTION_PASSAGES", -1, "graph.E001"),
        ("GRAPH_EXTRACTION_MAX_ATTEMPTS", 0, "graph.E001"),
        ("GRAPH_EXTRACTION_SECONDS", 0.0, "graph.E002"),
        ("GRAPH_EXTRACTION_RETRY_SECONDS", float("nan"), "graph.E002"),
        ("GRAPH_EXTRACTION_TEMPERATURE", -0.1, "graph.E003"),
        ("GRAPH_EXTRACTION_TEMPERATURE", float("inf"), "graph.E003"),
    ],
)
def test_a_bad_setting_is_named(settings: Any, name: str, value: Any, expected: str) -> None:
    setattr(settings, name, value)
    (message,) = check_settings(None)
    assert message.id == expected
    assert message.msg == f"RAGSITE_{name} is {value}."
    assert message.hint


def test_every_number_of_the_graph_is_checked() -> None:
    source = Path(checks.__file__).resolve().parents[1] / "ragsite" / "settings.py"
    numbers = re.findall(r'env\.(?:int|float)\("RAGSITE_(GRAPH_\w+)"', source.read_text())
    assert len(numbers) > 5
    assert set(numbers) == {*checks._AT_LEAST_ONE, *checks._POSITIVE, *checks._NOT_NEGATIVE}


@pytest.mark.django_db
def test_collections_that_no_model_can_read_are_named(settings: Any) -> None:
    CollectionFactory(slug="by-rules")
    assert check_chat(None, databases=["default"]) == []

    for number in range(7):
        CollectionFactory(slug=f"law-{number}", graph="llm")
    assert check_chat(None) == []
    (message,) = check_chat(None, databases=["default"])
    assert message.id == "graph.W001"
    assert "law-0, law-1, law-2, law-3, law-4, …" in message.msg
    assert "by-rules" not in message.msg

    options = {"base_url": "http://127.0.0.1:9", "model": "any"}
    use_models(settings, chat={"BACKEND": STUB, "OPTIONS": options})
    assert check_chat(None, databases=["default"]) == []


@pytest.mark.django_db
def test_before_its_migration_nothing_is_asked() -> None:
    CollectionFactory(graph="llm")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE documents_collection RENAME COLUMN graph TO graf")
    assert check_chat(None, databases=["default"]) == []
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE documents_collection RENAME TO collections")
    assert check_chat(None, databases=["default"]) == []


@pytest.mark.django_db
@pytest.mark.usefixtures("connected")
def test_collections_of_a_workspace_that_chose_a_model_are_not_named() -> None:
    mine = CollectionFactory(slug="mine", graph="llm")
    CollectionFactory(slug="theirs", graph="llm")
    choose_own(mine.workspace, "http://localhost:1/v1")
    (message,) = check_chat(None, databases=["default"])
    assert "to read theirs for" in message.msg
