"""`manage.py memory` as a person and as a program use it."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Role, Workspace
from common.console import format_cell
from documents.tests.factories import MembershipFactory, WorkspaceFactory
from memory.models import Context, ExtractionItem, Fact, Pruning
from memory.scopes import UserScope
from memory.services import set_fact
from memory.tests.factories import NOW, make_scope, remember

pytestmark = pytest.mark.django_db
State = ExtractionItem.State


@pytest.fixture
def workspace() -> Workspace:
    return Workspace.objects.filter(slug="default").first() or WorkspaceFactory(slug="default")


@pytest.fixture
def scope(workspace: Workspace) -> UserScope:
    return make_scope("local", workspace=workspace)


def told(capsys: Any, *arguments: str) -> str:
    """What the command prints."""
    capsys.readouterr()
    call_command("memory", *arguments)
    return str(capsys.readouterr().out)


def data(capsys: Any, *arguments: str) -> Any:
    """What it prints as JSON."""
    return json.loads(told(capsys, *arguments, "--json"))


def test_a_question_finds_what_was_said(scope: UserScope, capsys: Any) -> None:
    pk = remember(scope, "My sister Clara plays the cello", "Lovely!", conversation="c1")
    remember(make_scope("bob"), "My sister Clara plays the cello")

    found = data(capsys, "search", "Who plays the cello?", "--mode", "lexical")

    (hit,) = found["hits"]
    assert (hit["id"], hit["user_message"], hit["conversation"]) == (
        pk,
        "My sister Clara plays the cello",
        "c1",
    )
    assert 0 < hit["relevance"] <= 1
    assert found["searched"] == 1
    page = told(capsys, "search", "cello", "--threshold", "0")
    assert "Clara" in page
    assert "1 found" in page
    assert "0 found" in told(capsys, "search", "cello", "--user", "carol")


def test_facts_are_set_shown_then_and_now_and_forgotten(scope: UserScope, capsys: Any) -> None:
    first = data(capsys, "set", "favouriteCity", "Paris", "--at", "2020-06-01T12:00Z")
    assert (first["fact"]["key"], first["changed"], first["superseded"]) == (
        "favourite_city",
        True,
        None,
    )
    assert "before: Paris" in told(capsys, "set", "favourite city", "Berlin")
    assert "known already" in told(capsys, "set", "favourite city", "Berlin")

    assert [row["value"] for row in data(capsys, "facts")] == ["Berlin"]
    then = data(capsys, "facts", "--as-of", "2021-01-01T00:00")
    assert [row["value"] for row in then] == ["Paris"]
    values = data(capsys, "history", "favouriteCity")
    assert [row["value"] for row in values] == ["Berlin", "Paris"]
    assert values[0]["valid_to"] is None
    assert "Berlin" in told(capsys, "facts")

    assert data(capsys, "forget", "FavouriteCity") == {"facts": 2, "contexts": 0}
    for action in ("forget", "history"):
        assert "Fact not found: favourite_city" in told(capsys, action, "favouriteCity")
    assert "0 facts" in told(capsys, "facts")


def test_contexts_are_forgotten_by_question_and_by_number(scope: UserScope, capsys: Any) -> None:
    remember(scope, "What is for dinner?", "Soup.")
    other = remember(scope, "Who cooks?")
    bobs = remember(make_scope("bob"), "Who cooks?")

    assert data(capsys, "forget", "--question", "What is for dinner?")["contexts"] == 1
    assert data(capsys, "forget", "--context", str(other), str(bobs))["contexts"] == 1
    assert Context.objects.get().pk == bobs


def test_a_users_memory_is_named_by_workspace_and_id(workspace: Workspace, capsys: Any) -> None:
    elsewhere = WorkspaceFactory(slug="elsewhere")
    where = ("--workspace", "elsewhere", "--user", "bob")
    data(capsys, "set", "city", "Basel", *where)

    row = Fact.objects.get()
    assert (row.workspace_id, row.user_id) == (elsewhere.pk, "bob")
    assert len(data(capsys, "facts", *where)) == 1
    assert data(capsys, "facts", "--user", "bob") == []


def test_a_member_is_named_by_the_user_name_and_the_answer_says_whose_memory_it_is(
    workspace: Workspace, capsys: Any
) -> None:
    demo = MembershipFactory(workspace=workspace, role=Role.OWNER, user__username="demo").user
    bob = MembershipFactory(workspace=workspace, user__username="bob").user
    assert "city is set, of demo" in told(capsys, "set", "city", "Basel", "--user", "demo")
    assert Fact.objects.get().user_id == f"user:{demo.pk}"
    assert f"1 fact of demo (user:{demo.pk})" in told(capsys, "facts", "--user", "demo")
    # the first owner is whom commands mean, though there is another account
    assert f"1 fact of demo (user:{demo.pk})" in told(capsys, "facts")
    assert f"0 facts of bob (user:{bob.pk})" in told(capsys, "facts", "--user", "bob")
    told(capsys, "set", "city", "Kiel", "--user", "id:bob")
    assert Fact.objects.get(value="Kiel").user_id == "bob"
    assert "0 facts of “guest”" in told(capsys, "facts", "--user", "guest")


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.jsonl.gz"])
def test_a_memory_is_exported_to_a_file(
    scope: UserScope, capsys: Any, tmp_path: Path, name: str
) -> None:
    remember(scope, "I like tea")
    set_fact(scope=scope, key="drink", value="tea ☕")
    file = tmp_path / name

    assert told(capsys, "export", "-o", str(file)) == ""

    read = gzip.open if name.endswith("gz") else open
    with read(file, "rt", encoding="utf-8") as lines:
        kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds == ["memory", "fact", "context"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_memory_is_exported_to_standard_output(scope: UserScope, capfdbinary: Any) -> None:
    set_fact(scope=scope, key="drink", value="tea ☕")
    call_command("memory", "export")
    printed = capfdbinary.readouterr()
    assert json.loads(printed.out.splitlines()[1])["value"] == "tea ☕"
    assert b"1 row" in printed.err


def test_nothing_is_erased_without_saying_yes(scope: UserScope, capsys: Any) -> None:
    remember(scope, "I like tea")
    set_fact(scope=scope, key="drink", value="tea")
    kept = remember(make_scope("bob"), "I like tea")

    with pytest.raises(CommandError, match=r"1 context and 1 fact would be.*--yes") as refused:
        call_command("memory", "erase")
    assert refused.value.returncode == 2
    assert Context.objects.count() == 2

    assert data(capsys, "erase", "--yes")["contexts"] == 1
    assert [row.pk for row in Context.objects.all()] == [kept]
    assert not Fact.objects.exists()


def test_pruning_and_usage_are_told(scope: UserScope, capsys: Any, settings: Any) -> None:
    for number in range(5):
        remember(scope, f"turn {number}")
    settings.MEMORY_USER_ROWS = 3

    (pruned,) = data(capsys, "prune")
    assert (pruned["user_id"], pruned["rows"], pruned["reason"]) == ("local", 2, "user")
    used = data(capsys, "usage")
    assert (used["rows"], used["max_rows"], used["facts"]) == (3, 3, 0)
    assert [row["rows"] for row in used["prunings"]] == [2]
    page = told(capsys, "usage")
    assert "contexts  3 of 3" in page
    assert "2 contexts" in page
    assert "Removed 0 contexts of 0 users." in told(capsys, "prune")
    settings.MEMORY_USER_ROWS = 1
    assert "Removed 2 contexts of 1 user." in told(capsys, "prune")
    assert Pruning.objects.count() == 2


def test_what_waits_is_embedded_here_and_now(scope: UserScope, capsys: Any) -> None:
    remember(scope, "I like tea")
    set_fact(scope=scope, key="drink", value="tea")

    assert data(capsys, "embed") == {"embedded": 2, "refused": 0}
    assert not Context.objects.unembedded().exists()
    assert data(capsys, "embed") == {"embedded": 0, "refused": 0}


def test_texts_that_the_model_refused_are_told_by_exit_code_1(
    scope: UserScope, capsys: Any
) -> None:
    remember(scope, "I like tea")
    Context.objects.update(embed_attempts=5)
    with pytest.raises(SystemExit) as end:
        call_command("memory", "embed", "--json")
    assert end.value.code == 1
    assert json.loads(capsys.readouterr().out) == {"embedded": 0, "refused": 1}


def test_the_queue_is_listed_with_what_was_given_up_first_and_tried_again(
    scope: UserScope, capsys: Any
) -> None:
    items = {
        state: ExtractionItem.objects.create(
            workspace_id=scope.workspace_id,
            user_id="bob" if state == State.WAITING else "local",
            key=f"chat {state}",
            state=state,
            attempts=5,
            error="No JSON." if state == State.DEAD else "",
        )
        for state in State.values
    }

    listed = data(capsys, "extractions")
    assert [row["state"] for row in listed] == [State.DEAD, State.RUNNING, State.WAITING]
    assert "messages" not in listed[0]
    assert [row["state"] for row in data(capsys, "extractions", "--user", "bob")] == ["waiting"]
    assert [row["state"] for row in data(capsys, "extractions", "--state", "idle")] == ["idle"]
    assert len(data(capsys, "extractions", "-n", "1")) == 1
    assert data(capsys, "extractions", "--workspace", "default", "--state", "dead")
    assert "No JSON." in told(capsys, "extractions")

    running = str(items[State.RUNNING].pk)
    assert data(capsys, "extractions", "--retry", running) == {"retried": 0}
    assert data(capsys, "extractions", "--retry", "--user", "bob") == {"retried": 0}
    assert data(capsys, "extractions", "--retry") == {"retried": 1}
    dead = ExtractionItem.objects.get(pk=items[State.DEAD].pk)
    assert (dead.state, dead.attempts) == (State.WAITING, 0)


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["facts", "--user", "unknown"], "that is nobody"),
        (["erase", "--user", "", "--yes"], "that is nobody"),
        (["set", "city", " "], "needs a value"),
        (["facts", "--as-of", "yesterday"], "write a moment such as"),
        (["forget"], "required"),
        (["forget", "city", "--question", "x"], "not allowed"),
        (["export", "-o", "/nowhere/at/all"], "No such file"),
        (["extractions", "--workspace", "nowhere"], "There is no workspace"),
    ],
)
def test_what_cannot_be_is_said(workspace: Workspace, arguments: list[str], cure: str) -> None:
    with pytest.raises(CommandError, match=cure):
        call_command("memory", *arguments, stderr=io.StringIO())
    assert not Fact.objects.exists()


def test_a_misspelt_workspace_is_not_made(capsys: Any) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("memory", "set", "city", "Basel", "--workspace", "defualt")
    assert refused.value.returncode == 2
    assert not Workspace.objects.filter(slug="defualt").exists()


def test_stored_text_is_neither_markup_nor_moves_the_cursor(scope: UserScope, capsys: Any) -> None:
    hostile = "[bold red]x[/] \x1b[2J\x1b]0;title\x07 \u202eabc"
    set_fact(scope=scope, key="name", value=hostile, at=NOW)
    remember(scope, f"cello {hostile}")

    for page in (
        told(capsys, "facts"),
        told(capsys, "search", "cello", "--threshold", "0"),
        told(capsys, "set", "name", "y"),
    ):
        assert "\x1b" not in page
        assert "\u202e" not in page
        assert "[bold red]x[/]" in page or "[bold" in page
    assert format_cell("👩‍👩‍👧 Zoë 日本") == "👩‍👩‍👧 Zoë 日本"
    assert len(format_cell("x" * 5000)) == 301
