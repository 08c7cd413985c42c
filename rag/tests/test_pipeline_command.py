"""`manage.py pipelines`."""

import json
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from inference.tests.stub_server import StubServer, chat_reply
from rag.context import RagContext
from rag.models import Trace
from rag.pipelines.validation import templates
from rag.services.pipelines import create_pipeline
from rag.tests.asking import reader

pytestmark = pytest.mark.django_db


def told(*arguments: str, code: int = 0) -> Any:
    """What the command prints as JSON."""
    out = StringIO()
    ends = pytest.raises(SystemExit, match=str(code)) if code else nullcontext()
    with ends:
        call_command("pipelines", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_pipelines_and_templates_are_listed_and_shown() -> None:
    context, _ = reader()
    rag = templates()["rag"].to_json()
    create_pipeline(context=context, definition={**rag, "id": "own"})
    workspace = f"--workspace={context.workspace.slug}"
    listed = told("list", workspace)
    assert [each["id"] for each in listed] == ["own", *templates()]
    assert [each["id"] for each in told("templates")] == [*templates()]
    assert told("show", "own", workspace)["id"] == "own"
    assert told("show", "rag", workspace) == rag


def test_a_definition_in_a_file_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(templates()["rag"].to_json()))
    assert told("validate", str(file)) == {"valid": True, "faults": []}
    file.write_text(json.dumps({"id": "p", "nodes": [{"id": "a", "type": "wizard"}]}))
    wrong = told("validate", str(file), code=3)
    assert [fault["path"] for fault in wrong["faults"]] == ["nodes.0.type", "entry_node"]
    file.write_text("{")
    with pytest.raises(CommandError, match="no JSON"):
        call_command("pipelines", "validate", str(file))
    with pytest.raises(CommandError, match="No such file"):
        call_command("pipelines", "validate", str(tmp_path / "none.json"))


@pytest.mark.django_db(transaction=True)
def test_code_that_cannot_be_parsed_ends_with_1_and_the_attempt(
    context: RagContext, server: StubServer, capsys: Any
) -> None:
    broken = [chat_reply(f"```python\nprint({number}\n```") for number in range(3)]
    server.first(chat_reply("No conventions."), *broken)
    out = StringIO()
    with pytest.raises(SystemExit, match="1"):
        call_command(
            *("pipelines", "run", "codegen", "Print 2"),
            f"--workspace={context.workspace.slug}",
            stdout=out,
        )
    assert "print(2" in capsys.readouterr().out
    assert "unparsable_code: The code cannot be parsed after 3 rounds" in out.getvalue()
    assert "line 1: '(' was never closed" in out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_a_pipeline_is_run_and_its_sources_are_named(capsys: Any) -> None:
    context, _ = reader()
    workspace = f"--workspace={context.workspace.slug}"
    question = "When does the firm leave Mill Street?"
    out = StringIO()
    call_command("pipelines", "run", "rag", question, workspace, stdout=out)
    printed = capsys.readouterr()
    assert "14 March" in printed.out
    assert "retriever: ended" in printed.err
    assert "[1] The move (office: move.md)" in out.getvalue()
    assert f"trace {Trace.objects.get().pk}" in out.getvalue()

    events = told("run", "rag", question, workspace)
    assert [events[0]["event"], events[-1]["event"]] == ["metadata", "done"]
    with pytest.raises(CommandError, match="CHAT_BACKEND"):
        call_command("pipelines", "run", "simple-chat", "Hi", workspace)
    with pytest.raises(CommandError, match="no user “nobody”"):
        call_command("pipelines", "run", "rag", "Hi", workspace, "--user=nobody")
