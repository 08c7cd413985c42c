"""`manage.py ask`."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from inference.tests.stub_server import Reply
from rag.tests.asking import chat_server, reader

pytestmark = pytest.mark.django_db

QUESTION = "When does the firm leave Mill Street?"


def ask(*arguments: str, workspace: str) -> str:
    out = StringIO()
    call_command("ask", *arguments, "--workspace", workspace, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_it_prints_the_answer_and_its_sources() -> None:
    context, _ = reader()
    told = ask(QUESTION, "--collection", "office", workspace=context.workspace.slug)
    assert "14 March" in told
    assert "[1] The move (office)" in told


def test_it_tells_all_of_it_as_json() -> None:
    context, _ = reader()
    told = json.loads(ask(QUESTION, "--json", workspace=context.workspace.slug))
    assert told["question"] == QUESTION
    assert "14 March" in told["answer"]
    assert told["citations"][0]["quote"] in told["answer"]
    assert told["passages"][0]["document_key"] == "move.md"
    assert (told["confidence"], told["verdict"]["refused"]) == ("high", False)


def test_what_cannot_be_ends_it_with_a_message() -> None:
    context, _ = reader()
    slug = context.workspace.slug
    with pytest.raises(CommandError, match="nowhere") as failure:
        ask(QUESTION, "--collection", "nowhere", workspace=slug)
    assert failure.value.returncode == 2
    with pytest.raises(CommandError, match="no-such-model"):
        ask(QUESTION, "--model", "no-such-model", workspace=slug)


def test_a_model_that_fails_ends_it_with_a_message(settings: Any) -> None:
    context, _ = reader()
    with chat_server(settings) as server:
        server.first(Reply({"error": "busy"}, status=503))
        with pytest.raises(CommandError, match="does not respond at the moment"):
            ask(QUESTION, workspace=context.workspace.slug)
