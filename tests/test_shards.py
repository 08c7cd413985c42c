"""A site on three servers against one: the same answers, moves under load, a server that is down.

The servers are the test's own, or those of RAGSITE_TEST_CLUSTER: `main=URL,east=URL,west=URL`, each
an empty database on PostgreSQL with wal_level = logical.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured

from ragsite import embedded
from ragsite.embedded.service import libpq_url
from ragsite.environment import shard_urls
from tests.instances import instance_dir
from tests.plugin import wait_until
from tests.test_backup import REPOSITORY

NAMES = ("main", "east", "west")
#: What the load is answered where nothing is wrong.
MADE = ("read 200", "write 200")
GIVEN = os.environ.get("RAGSITE_TEST_CLUSTER", "")


@dataclass
class Cluster:
    """Three databases, and the settings of a site on them; `folders` are of servers of the test's
    own."""

    urls: dict[str, str]
    folders: dict[str, Path]
    media: Path

    @property
    def environment(self) -> dict[str, str]:
        shards = ",".join(f"{name}={self.urls[name]}" for name in NAMES[1:] if name in self.urls)
        return {**self.single(self.urls["main"]), "DATABASE_SHARD_URLS": shards}

    def single(self, url: str) -> dict[str, str]:
        return {
            **os.environ,
            "RAGSITE_REDIS_DB": "0",
            "DATABASE_URL": url,
            "MEDIA_ROOT": str(self.media),
        }

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", *words],
            cwd=REPOSITORY,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, code: int = 0, environment: dict[str, str] | None = None) -> str:
        process = self.start(*words, **(environment or {}))
        written, complained = process.communicate(timeout=300)
        assert process.returncode == code, complained
        return written

    def manage(self, *words: str, code: int = 0) -> str:
        return self.run("manage.py", *words, code=code)

    def site(self, *words: str, environment: dict[str, str] | None = None) -> Any:
        return json.loads(self.run("-m", "tests.shard_site", *words, environment=environment))

    @contextmanager
    def load(self, name: str, folder: Path) -> Iterator[dict[str, Any]]:
        """Searches and writes within the block; what became of them is filled in at its end."""
        result: dict[str, Any] = {}
        with (folder / "log").open("w") as log, (folder / "result").open("w") as written:
            process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "tests.shard_site", "load", name, folder],
                cwd=REPOSITORY,
                env=self.environment,
                stdout=written,
                stderr=log,
            )
            wait_until((folder / "started").exists, what="all workspaces are answered")
            yield result
            (folder / "stop").touch()
            code = process.wait(timeout=120)
        assert code == 0, (folder / "log").read_text()[-2000:]
        result |= json.loads((folder / "result").read_text())

    def rows(self, name: str, statement: str) -> list[Any]:
        url = libpq_url(self.folders[name]) if self.folders else self.urls[name]
        with psycopg.connect(url, autocommit=True) as asked:
            return [value for (value,) in asked.execute(statement.encode())]

    def is_in_order(self) -> bool:
        process = self.start("manage.py", "shards", "list")
        process.communicate()
        return process.returncode == 0

    def validate(self) -> None:
        assert self.manage("validate").count("clean") == len(NAMES)


def own_cluster(top: Path, media: Path) -> Cluster:
    """Migrated once and copied, which is quicker."""
    folders = {name: top / name for name in NAMES}
    main = folders["main"]
    embedded.start(main, only=["postgresql"])
    single = Cluster({"main": embedded.database_url(main)}, folders, media)
    single.run("manage.py", "migrate", "--verbosity=0")
    with psycopg.connect(libpq_url(main, "postgres"), autocommit=True) as server:
        server.execute("CREATE DATABASE single TEMPLATE ragsite")
    embedded.stop(main, only=["postgresql"])
    for name in NAMES[1:]:
        shutil.copytree(main, folders[name], symlinks=True)
        subprocess.run(
            ["chown", "-R", f"--reference={main / 'postgres'}", str(folders[name] / "postgres")],
            check=True,
        )
    for folder in folders.values():
        embedded.start(folder, only=["postgresql"])
    urls = {name: embedded.database_url(folder) for name, folder in folders.items()}
    return Cluster({**urls, "single": embedded.database_url(main, "single")}, folders, media)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    media = tmp_path_factory.mktemp("media")
    with ExitStack() as stack:
        if GIVEN:
            made = Cluster(dict(part.split("=", 1) for part in GIVEN.split(",")), {}, media)
            made.manage("migrate", "--verbosity=0")
        else:
            top = stack.enter_context(instance_dir("servers"))
            top.mkdir()
            made = own_cluster(top, media)
            for folder in made.folders.values():
                stack.callback(embedded.stop, folder, only=["postgresql"])
        made.manage("shards", "prepare")
        made.manage("shards", "prepare")  # which changes nothing
        made.site("fill")
        yield made


def test_a_cluster_answers_as_one_server_does(cluster: Cluster) -> None:
    there = cluster.site("answers")

    if "single" in cluster.urls:
        single = {"DATABASE_URL": cluster.urls["single"], "DATABASE_SHARD_URLS": ""}
        cluster.site("fill", environment=single)
        alone = cluster.site("answers", environment=single)
        for slug, found in alone.items():
            assert there[slug]["answers"] == found["answers"]
    for slug, shard in (("alpha", "main"), ("beta", "east"), ("gamma", "west")):
        # The main database knows who asks; everything else is of the workspace's own server.
        assert there[slug]["statements"].keys() <= {"main", shard}
        assert there[slug]["statements"][shard] > 100
        documents = "SELECT DISTINCT workspace.slug FROM documents_document AS document"
        joined = " JOIN accounts_workspace AS workspace ON workspace.id = document.workspace_id"
        assert cluster.rows(shard, documents + joined) == [slug]
    cluster.validate()


def test_a_workspace_moves_while_it_is_read_and_written(cluster: Cluster, tmp_path: Path) -> None:
    with cluster.load("moving", tmp_path) as said:
        interrupted = cluster.start("manage.py", "shards", "move", "beta", "west", "--wait", "1")
        assert interrupted.stderr is not None
        while "tables copied" not in (line := interrupted.stderr.readline()):
            assert line, "the move ended before it copied a table"
        interrupted.send_signal(signal.SIGKILL)
        interrupted.communicate()

        cluster.manage("shards", "move", "beta", "west", "--wait", "1")
        cluster.manage("shards", "move", "beta", "main", "--wait", "1")

    assert {status for each in said["statuses"].values() for status in each} == {*MADE}
    assert cluster.site("facts", "moving") == said["stored"]
    beta = "SELECT DISTINCT workspace_id FROM documents_chunk"
    assert len(cluster.rows("main", beta)) == 2
    assert cluster.rows("east", beta) == []
    left = "SELECT count(*) FROM pg_publication WHERE pubname LIKE 'ragsite_move%'"
    assert [cluster.rows(name, left) for name in NAMES] == [[0]] * 3
    cluster.validate()
    cluster.manage("shards", "move", "beta", "east", "--wait", "0")


@pytest.mark.skipif(bool(GIVEN), reason="servers of RAGSITE_TEST_CLUSTER are not stopped")
def test_only_workspaces_of_a_server_that_is_down_wait(cluster: Cluster, tmp_path: Path) -> None:
    pid_file = cluster.folders["east"] / "postgres/data/postmaster.pid"
    with cluster.load("killed", tmp_path) as said:
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
        assert "east" in cluster.manage("shards", "list", code=1)
        # Rights are taken away also where the workspace cannot be reached.
        assert cluster.site("leave", "bob", "beta") == 404
        embedded.start(cluster.folders["east"], only=["postgresql"])
        wait_until(cluster.is_in_order, what="changes of accounts arrive in the shard again")

    for slug in ("alpha", "gamma"):
        assert said["statuses"][slug].keys() == {*MADE}
    assert said["statuses"]["beta"].keys() == {*MADE, "read 503", "write 503"}
    # What was answered is there; so may be what the server had stored before it could say so.
    for slug, number in cluster.site("facts", "killed").items():
        unknown = said["statuses"][slug].get("write 503", 0)
        assert said["stored"][slug] <= number <= said["stored"][slug] + unknown
    cluster.validate()


def test_a_backup_of_all_servers_is_restored(cluster: Cluster, tmp_path: Path) -> None:
    before = cluster.site("answers")
    cluster.manage("backup", str(tmp_path / "backup"))
    with cluster.load("lost", tmp_path):
        pass

    cluster.manage("restore", str(tmp_path / "backup"), "--replace")

    after = cluster.site("answers")
    for slug, found in before.items():
        assert after[slug]["answers"] == found["answers"]
    cluster.validate()


@pytest.mark.parametrize(
    "entry",
    ["east", "East=postgresql://a/b", "main=postgresql://a/b", "replica_1=postgresql://a/b"],
)
def test_a_shard_has_a_name_of_its_own_and_a_url(entry: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"east=postgresql://"):
        shard_urls(["other=postgresql://a/b", entry])
