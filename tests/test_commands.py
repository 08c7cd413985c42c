"""What holds for every command of ours: its help says how it ends, a mistake ends with 2 and is
told on standard error, JSON is nothing but JSON."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand

from accounts.services import get_or_create_workspace
from documents.ingestion.sources import discover
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory
from ragsite.bootstrap import OWN_APPS

pytestmark = pytest.mark.doors
COMMANDS = sorted(
    name for name, app in get_commands().items() if isinstance(app, str) and app in OWN_APPS
)
#: With something that is not there.
MISTAKES = {
    "apikeys": ["create", "--user", "nobody", "--name", "x", "--scope", "read"],
    "ask": ["What?", "--collection", "nowhere"],
    "backup": ["nowhere/backup"],
    "catalogue": ["--ddl", "nowhere.sql", "--collection", "tables"],
    "evaluate": ["nowhere"],
    "export": ["--collection", "nowhere"],
    "graph": ["stats", "--workspace", "nowhere"],
    "import": ["nowhere.jsonl", "--collection", "c"],
    "ingest": ["nowhere", "--collection", "c"],
    "memory": ["facts", "--user", "nobody", "--workspace", "nowhere"],
    "pipelines": ["show", "nowhere"],
    "reembed": ["--to", "nowhere", "--collection", "nowhere"],
    "reindex": ["--collection", "nowhere"],
    "restore": ["nowhere"],
    "runs": ["show", "999999"],
    "search": ["words", "--collection", "nowhere"],
    "spaces": ["drop", "nowhere"],
    "stats": ["--collection", "nowhere"],
    "sync": ["nowhere", "--collection", "c"],
    "users": ["role", "nobody", "viewer"],
    "validate": ["--collection", "nowhere"],
}
#: That only look.
LOOKS = {
    "apikeys": ["list"],
    "graph": ["stats"],
    "pipelines": ["list"],
    "runs": ["list"],
    "search": ["harbour"],
    "ask": ["Where is the harbour?"],
    "spaces": ["list"],
    "stats": [],
    "upgrade": ["--check"],
    "users": ["list"],
    "validate": [],
}


def loaded(name: str) -> BaseCommand:
    return load_command_class(get_commands()[name], name)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_says_what_it_does_and_how_it_ends(name: str) -> None:
    said = loaded(name).help
    assert "Exit code: 0 " in said
    assert len(said) > 40


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.django_db
def test_a_mistake_ends_with_two_and_says_what_is_missing(name: str) -> None:
    MembershipFactory(workspace=get_or_create_workspace(), role="owner")
    written = StringIO()
    with pytest.raises(CommandError) as caught:
        call_command(name, *MISTAKES[name], stdout=written)
    assert caught.value.returncode == 2
    assert (
        "nowhere" in str(caught.value)
        or "nobody" in str(caught.value)
        or "999" in str(caught.value)
    )
    assert written.getvalue() == ""


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.usefixtures("media_root")
@pytest.mark.django_db
def test_json_is_one_value_and_nothing_else(name: str, tmp_path: Path, capsys: Any) -> None:
    member = MembershipFactory(workspace=get_or_create_workspace(), role="owner")
    (tmp_path / "harbour.md").write_text("The harbour is behind the lighthouse.")
    ingest_inline(
        collection=CollectionFactory(workspace=member.workspace), sources=discover([tmp_path])
    )
    written = StringIO()
    call_command(name, *LOOKS[name], "--json", stdout=written)
    said = written.getvalue() + capsys.readouterr().out
    assert isinstance(json.loads(said), (dict, list))
