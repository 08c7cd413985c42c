"""Pipelines over the API and in `manage.py pipelines`."""

import json
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from accounts.models import Role
from documents.tests.factories import MembershipFactory
from inference.tests.stub_server import StubServer, chat_reply, chat_stream
from rag.context import RagContext
from rag.models import Pipeline, Trace
from rag.pipelines.validation import templates
from rag.services.pipelines import create_pipeline
from rag.tests.asking import chat_server, reader
from tests.kit import client_of

pytestmark = pytest.mark.django_db
PIPELINES = "/api/v1/pipelines/"
TRACES = "/api/v1/traces/"
QUESTION = "When does the firm leave Mill Street?"


@pytest.fixture
def client(alice: Any) -> APIClient:
    return client_of(alice.user)


def definition(id: str = "mine", **fields: Any) -> dict[str, Any]:
    return {**templates()["rag"].to_json(), "id": id, **fields}


def send(client: APIClient, method: str, address: str, body: Any = None, **headers: Any) -> Any:
    return getattr(client, method)(address, body, format="json", headers=headers)


def test_a_pipeline_is_kept_read_changed_and_deleted(client: APIClient, alice: Any) -> None:
    made = send(client, "post", PIPELINES, definition())
    assert (made.status_code, made.json()["version"]) == (201, 1)
    assert made.json()["definition"] == definition()
    assert made.json()["is_template"] is False

    assert client.get(f"{PIPELINES}mine/").json() == made.json()

    same = send(client, "put", f"{PIPELINES}mine/", definition())
    assert (same.status_code, same.json()["version"]) == (200, 1)
    changed = send(client, "put", f"{PIPELINES}mine/", definition(name="Other"))
    assert (changed.json()["name"], changed.json()["version"]) == ("Other", 2)
    assert changed["ETag"] != made["ETag"]
    assert Pipeline.objects.get().changed_by == alice.user

    assert send(client, "delete", f"{PIPELINES}mine/").status_code == 204
    assert client.get(f"{PIPELINES}mine/").status_code == 404


def test_templates_are_listed_stand_behind_ones_own_and_stay(client: APIClient) -> None:
    listed = client.get(PIPELINES).json()["results"]
    assert {each["id"] for each in listed} == set(templates())
    assert all(each["is_template"] for each in listed)
    assert client.get(f"{PIPELINES}rag/").json()["definition"] == templates()["rag"].to_json()
    for method in ("put", "delete"):
        assert send(client, method, f"{PIPELINES}rag/", definition("rag")).status_code == 409

    send(client, "post", PIPELINES, definition("rag", name="Our own"))
    assert client.get(f"{PIPELINES}rag/").json()["name"] == "Our own"
    ids = [each["id"] for each in client.get(PIPELINES).json()["results"]]
    assert ids.count("rag") == 1


def test_every_fault_of_a_definition_is_told_with_its_place(client: APIClient) -> None:
    broken = definition(colour="red")
    broken["nodes"] = [
        {"id": "retriever", "type": "worker", "tools": ["rm"], "model": {"name": "none-such"}},
        {"id": "generator", "type": "wizard"},
    ]
    for address, method in ((PIPELINES, "post"), (f"{PIPELINES}check/", "post")):
        refused = send(client, method, address, broken)
        assert refused.status_code == 400
        told = {each["attr"]: each["detail"] for each in refused.json()["errors"]}
        assert set(told) == {
            "colour",
            "nodes.0.tools.0",
            "nodes.0.model.name",
            "nodes.1.type",
        }
        assert "similarity_search" in told["nodes.0.tools.0"]
    assert not Pipeline.objects.exists()


def test_a_definition_is_checked_without_being_kept(client: APIClient) -> None:
    checked = send(client, "post", f"{PIPELINES}check/", definition())
    assert checked.json() == {"definition": definition()}
    assert not Pipeline.objects.exists()
    assert send(client, "post", PIPELINES, definition("check")).status_code == 400


def test_an_id_is_there_once_and_stays(client: APIClient) -> None:
    send(client, "post", PIPELINES, definition())
    assert send(client, "post", PIPELINES, definition()).status_code == 409
    renamed = send(client, "put", f"{PIPELINES}mine/", definition("other"))
    assert renamed.json()["errors"][0]["attr"] == "id"
    assert send(client, "put", f"{PIPELINES}none/", definition("none")).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_a_run_is_told_event_by_event_or_whole() -> None:
    context, _ = reader()
    client = client_of(context.user)
    streamed = send(client, "post", f"{PIPELINES}rag/run/", {"question": QUESTION})
    assert streamed["Content-Type"].startswith("text/event-stream")
    events = _events(b"".join(streamed.streaming_content))
    streamed.close()
    names = [name for name, _ in events]
    assert names[:2] == ["metadata", "node"]
    assert names[-1] == "done"
    trace = dict(events)["metadata"]["trace"]
    assert dict(events)["done"]["trace"] == trace

    whole = send(client, "post", f"{PIPELINES}rag/run/", {"question": QUESTION, "stream": False})
    assert whole.status_code == 200
    assert "14 March" in whole.json()["answer"]
    assert whole.json()["citations"]
    assert whole.json()["pipeline"] == "rag"

    detail = client.get(f"{TRACES}{whole.json()['trace']}/").json()
    assert detail["state"] == "done"
    assert detail["answer"] == whole.json()["answer"]
    assert [span["node"] for span in detail["spans"] if span["kind"] == "node"] == [
        "retriever",
        "generator",
    ]
    tool = next(span for span in detail["spans"] if span["kind"] == "tool")
    assert tool["type"] == "similarity_search"
    assert tool["parent"] == detail["spans"][0]["id"]


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_run_has_a_status_of_its_own(settings: Any) -> None:
    context, _ = reader()
    client = client_of(context.user, raise_request_exception=False)
    for stream in (True, False):
        body = {"question": "Hi", "stream": stream}
        without = send(client, "post", f"{PIPELINES}simple-chat/run/", body)
        assert (without.status_code, without.json()["code"]) == (409, "no_chat_model")
        assert send(client, "post", f"{PIPELINES}none/run/", body).status_code == 404
        nowhere = {**body, "collections": ["none"]}
        assert send(client, "post", f"{PIPELINES}rag/run/", nowhere).status_code == 404
        blank = send(client, "post", f"{PIPELINES}rag/run/", {**body, "question": " "})
        assert blank.json()["errors"][0]["attr"] == "question"
    with chat_server(settings) as server:
        server.first(chat_reply("the weather"))
        body = {"question": "Hi", "stream": False}
        failed = send(client, "post", f"{PIPELINES}router/run/", body)
        assert (failed.status_code, failed.json()["code"]) == (502, "unknown_route")
        server.first(chat_reply("chat"), chat_stream("Good day."))
        assert send(client, "post", f"{PIPELINES}router/run/", body).json()["answer"] == "Good day."


@pytest.mark.django_db(transaction=True)
def test_runs_are_their_users_alone() -> None:
    context, _ = reader()
    client = client_of(context.user)
    body = {"question": QUESTION, "stream": False}
    trace = send(client, "post", f"{PIPELINES}rag/run/", body).json()["trace"]
    colleague = MembershipFactory(workspace=context.workspace, role=Role.OWNER)
    other = client_of(colleague.user)
    assert other.get(TRACES).json()["results"] == []
    for method, address in (
        ("get", f"{TRACES}{trace}/"),
        ("delete", f"{TRACES}{trace}/"),
        ("post", f"{TRACES}{trace}/cancel/"),
    ):
        assert send(other, method, address).status_code == 404
    assert other.get(f"{TRACES}statistics/").json()["results"] == []

    (listed,) = client.get(TRACES, {"pipeline": "rag", "state": "done"}).json()["results"]
    assert listed["id"] == trace
    assert client.get(TRACES, {"state": "failed"}).json()["results"] == []
    ended = send(client, "post", f"{TRACES}{trace}/cancel/")
    assert (ended.status_code, ended.json()["code"]) == (409, "not_running")
    (figures,) = client.get(f"{TRACES}statistics/").json()["results"]
    assert (figures["name"], figures["runs"], figures["failed"]) == ("rag", 1, 0)
    assert [each["name"] for each in figures["nodes"]] == ["generator", "retriever"]
    assert figures["p50_ms"] == figures["p99_ms"] > 0
    assert send(client, "delete", f"{TRACES}{trace}/").status_code == 204
    assert not Trace.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_run_is_withheld_from_who_may_read_its_documents_no_longer() -> None:
    context, collection = reader()
    client = client_of(context.user)
    body = {"question": QUESTION, "stream": False}
    trace = send(client, "post", f"{PIPELINES}rag/run/", body).json()["trace"]
    stranger = MembershipFactory().user
    for document in collection.documents.all():
        document.access = [f"user:{stranger.pk}"]
        document.save()
    shown = client.get(f"{TRACES}{trace}/").json()
    assert shown["is_withheld"]
    assert (shown["answer"], shown["question"]) == ("", "")
    assert {span["output"] for span in shown["spans"]} == {""}


def _events(body: bytes) -> list[tuple[str, Any]]:
    found = []
    for block in body.decode().split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.splitlines())
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


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
