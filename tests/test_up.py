"""How `manage.py up` ends."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from ragsite.management.commands import up


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any) -> list[Path]:
    """The folders whose servers were stopped by a site that ends as soon as it runs."""
    settings.VAR_DIR = tmp_path
    folders: list[Path] = []
    monkeypatch.setattr(up, "check_free", lambda *_: None)
    monkeypatch.setattr(up.Command, "_announce", lambda *_: None)
    monkeypatch.setattr(up.Supervisor, "run", lambda _: None)
    monkeypatch.setattr(up.embedded, "stop", folders.append)
    return folders


def test_embedded_servers_go_on_when_the_site_ends(stopped: list[Path]) -> None:
    said = StringIO()
    call_command("up", stdout=said)
    assert stopped == []
    assert "stay until `manage.py services stop`" in said.getvalue()


def test_in_a_container_they_are_stopped_with_it(stopped: list[Path], tmp_path: Path) -> None:
    said = StringIO()
    call_command("up", "--stop-services", stdout=said)
    assert stopped == [tmp_path]
    assert "with the database and the broker" in said.getvalue()
