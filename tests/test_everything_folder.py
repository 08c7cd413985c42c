"""A folder with everything in it: what can be read is found, all else is named with its cure."""

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest
from django.conf import settings

from accounts.models import Workspace
from documents.ingestion.sources import storable_name
from documents.tests.factories_folder import everything
from search.query_options import site_scope
from search.services import search
from tests.plugin import database_url_of_tests

GIBIBYTE = 1024**3
PAGES = 5000


def environment() -> dict[str, str]:
    """For a process that uses this test's database."""
    return {**os.environ, "DATABASE_URL": database_url_of_tests()}


def ingest(folder: Path) -> tuple[int, dict[str, Any], int]:
    """Exit code and report of `manage.py ingest`, and the most memory that its processes had."""
    process = psutil.Popen(
        [sys.executable, "manage.py", "ingest", str(folder), "--collection", "all", "--json"],
        cwd=settings.BASE_DIR,
        env=environment(),
        stdout=subprocess.PIPE,
    )
    most = 0
    while process.poll() is None:
        used = 0
        try:
            for one in (process, *process.children(recursive=True)):
                used += one.memory_info().rss
        except psutil.NoSuchProcess:
            pass  # it ended meanwhile
        most = max(most, used)
        Event().wait(0.02)
    with process.stdout as output:
        return process.returncode, json.load(output), most


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_a_folder_with_everything_in_it(tmp_path: Path) -> None:
    readable, broken = everything(tmp_path, pages=PAGES)
    code, report, memory = ingest(tmp_path)

    said = {failure["name"]: failure for failure in report["failures"]}
    assert {name: entry["code"] for name, entry in said.items()} == {
        name: failure.code for name, failure in broken.items()
    }
    reasons = {name: entry["reason"] for name, entry in said.items()}
    uncured = [name for name, failure in broken.items() if failure.cure not in reasons[name]]
    assert uncured == [], reasons
    assert code == 1
    assert report["documents"]["ready"] == len(readable)
    assert memory < 1.5 * GIBIBYTE

    scope = site_scope(workspace=Workspace.objects.get(), collections=["all"])
    for name, word in readable.items():
        best = search(word, scope=scope).hits[0]
        assert word in best.text
        assert best.source in {storable_name(name), "07.chunks.jsonl"}
