"""`manage.py sources`: from adding a source to removing it, with what each action prints."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Change
from documents.tests.factories import CollectionFactory
from sources import credentials
from sources.models import DataSource, DataSourceItem
from sources.services import create_source
from tests.kit import process_documents

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


def sources(*words: str) -> str:
    written = StringIO()
    call_command("sources", *words, stdout=written)
    return written.getvalue()


def data(*words: str) -> Any:
    return json.loads(sources(*words, "--json"))


def test_every_action_of_a_source(folder: Path) -> None:
    sources("add", "folder", "Team", "--collection", "team", "--option", f"path={folder}")
    assert sources("runs", "Team") == "It has not run yet.\n"
    assert "new: rail.md" in sources("run", "Team", "--dry-run")
    call_command("sources", "try", "Team", stdout=StringIO(), stderr=(warned := StringIO()))
    assert "`sources run --dry-run` now" in warned.getvalue()
    assert "1 listed, 1 new, 1 fetched" in sources("run", "Team")
    (run,) = data("runs", "Team")
    assert (run["cause"], run["state"], run["new"]) == ("person", "succeeded", 1)
    assert sources("failures", "Team") == "All files could be fetched.\n"
    DataSourceItem.objects.update(failures=3, error="It is locked.")
    assert data("failures", "Team") == [{"name": "rail.md", "tries": 3, "reason": "It is locked."}]
    assert data("retry", "Team") == {"retried": 1}

    changed = data(
        "change", "Team", "--name", "Office", "--schedule", "15", "--option", "glob=*.md"
    )
    assert (changed["name"], changed["schedule"]) == ("Office", "15")
    assert changed["options"] == {"path": str(folder), "glob": "*.md"}
    with pytest.raises(CommandError, match="Say what to change"):
        sources("change", "Office")
    assert sources("cancel", "Office") == "Office is not being read.\n"

    DataSource.objects.update(state=DataSource.State.DEAD, problem="stopped")
    assert "stopped" in sources("list")
    assert "It needs attention before the next run" in sources("show", "Office")
    made = data("webhook", "Office")
    source = DataSource.objects.get()
    assert made["address"].endswith(f"/hooks/sources/{source.pk}/")
    assert credentials.decrypt(source.webhook_secret) == {"secret": made["secret"]}
    assert sources("webhook", "Office", "--off") == "Office takes calls no more.\n"
    assert not bytes(DataSource.objects.get().webhook_secret)
    assert sources("remove", "Office") == "Office is removed.\n"
    assert Change.objects.filter(kind="source").count() == 7


def test_what_was_fetched_and_is_not_found_yet_is_told(folder: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{1:064}\nsize 90405\n"
    (folder / "prices.csv").write_text(pointer)
    sources("add", "folder", "Team", "--collection", "team", "--option", f"path={folder}")
    assert "2 to be indexed by the workers; no search finds them before." in sources("run", "Team")
    process_documents()
    shown = sources("show", "Team")
    assert "not read: prices.csv: The file is stored with Git LFS" in shown
    assert "to be indexed" not in shown
    told = data("show", "Team")
    assert (told["waiting"], [each["name"] for each in told["unread"]]) == (0, ["prices.csv"])


def test_secrets_are_encrypted_by_a_new_key_and_then_need_only_that(settings: Any) -> None:
    settings.CREDENTIALS_KEYS = ["old"]
    source = create_source(
        collection=CollectionFactory(),
        name="Cloud",
        connector="webdav",
        options={"url": "https://cloud.example.org/", "username": "ann", "password": "heron"},
    )
    settings.CREDENTIALS_KEYS = ["new", "old"]
    assert data("encrypt") == {"sources": 1}
    settings.CREDENTIALS_KEYS = ["new"]
    source.refresh_from_db()
    assert credentials.decrypt(source.credentials) == {"password": "heron"}
    settings.CREDENTIALS_KEYS = ["lost"]
    with pytest.raises(CommandError, match="RAGSITE_CREDENTIALS_KEYS"):
        sources("encrypt")
