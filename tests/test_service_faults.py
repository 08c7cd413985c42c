"""The servers below a site die in the middle of its work; it comes back by itself and loses
nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ragsite import embedded
from ragsite.embedded.service import libpq_url
from tests.backups import copy_database
from tests.instances import instance_dir
from tests.plugin import free_port, wait_until

ROOT = Path(__file__).resolve().parent.parent
FILES = 100
SENTENCES = 160


class Site:
    """`manage.py up` on embedded servers of its own."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.environment = {
            **os.environ,
            "RAGSITE_VAR_DIR": str(var),
            "MEDIA_ROOT": str(var / "media"),
            "DATABASE_URL": "",
            "REDIS_URL": "",
            "RAGSITE_REDIS_DB": "0",
            "EMBEDDER_BACKEND": "inference.backends.hashing.HashingEmbedder",
            "RAGSITE_INGESTION_LEASE_SECONDS": "3",
            "RAGSITE_RECOVERY_SECONDS": "1",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
        )

    def start(self) -> None:
        """Return at once; the programs come up on their own."""
        command = [sys.executable, "manage.py", "up", "--port", str(free_port())]
        self._process = subprocess.Popen(command, cwd=ROOT, env=self.environment)

    def stop(self) -> None:
        """As Ctrl-C does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(timeout=60)

    def kill(self, service: str, how: signal.Signals) -> None:
        """Kill an embedded server."""
        (status,) = embedded.status(self.var, only=[service])
        assert status.pid is not None
        os.kill(status.pid, how)

    def ready(self) -> int:
        """Documents that are ready; -1 while the database cannot be asked."""
        return self._count("SELECT count(*) FROM documents_document WHERE status = 'ready'")

    def open_runs(self) -> int:
        """Runs that have not ended; -1 while the database cannot be asked."""
        return self._count("SELECT count(*) FROM documents_ingestionrun WHERE finished_at IS NULL")

    def _count(self, statement: str) -> int:
        try:
            with psycopg.connect(libpq_url(self.var), connect_timeout=5) as connection:
                row: Any = connection.execute(statement).fetchone()
        except psycopg.OperationalError:
            return -1
        return int(row[0])


@pytest.fixture
def site(db: None) -> Iterator[Site]:
    with instance_dir() as var:
        copy_database(var)
        site = Site(var)
        yield site
        site.stop()


@pytest.mark.nightly
def test_broker_and_database_die_during_a_run_and_every_document_is_ready_once(
    site: Site, tmp_path: Path
) -> None:
    for number in range(FILES):
        text = f"File {number} tells of subject{number} in many words. " * SENTENCES
        (tmp_path / f"{number}.txt").write_text(text)
    queued = site.manage("ingest", str(tmp_path), "--collection", "notes", "--queue", "--json")
    assert queued.returncode == 0, queued.stderr
    site.start()

    wait_until(lambda: site.ready() > 0, what="some are ready", seconds=120)
    site.kill("valkey", signal.SIGKILL)
    before = site.ready()
    assert before < FILES, "the broker must die in the middle"
    wait_until(lambda: site.ready() > before, what="the site goes on without its broker")
    assert site.ready() < FILES, "the database must die in the middle"
    site.kill("postgresql", signal.SIGQUIT)  # as a crash: no checkpoint, nobody waited for

    wait_until(lambda: site.open_runs() == 0, what="the run has ended", seconds=240)
    assert site.ready() == FILES
    checked = site.manage("validate", "--json")
    assert checked.returncode == 0, checked.stdout
    again = site.manage("ingest", str(tmp_path), "--collection", "notes", "--json")
    assert json.loads(again.stdout)["documents"]["skipped"] == FILES, again.stdout
