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
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured

from ragsite import embedded
from ragsite.embedded.service import libpq_url
from ragsite.environment import shard_urls
from ragsite.shards import IDS_OF_SHARD
from tests.backups import copy_database
from tests.instances import instance_dir
from tests.plugin import wait_until
from tests.test_backup import REPOSITORY

#: The test's own database, of which the cluster is a copy.
pytestmark = pytest.mark.django_db

NAMES = ("main", "east", "west")
_NUMBERS = count()
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

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", *words],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
            **{"env": self.environment, **pipes, **options},
        )

    @cached_property
    def server(self) -> subprocess.Popen[str]:
        """Has the site imported, and forks itself for each command."""
        return self.start("-m", "tests.shard_site", "serve", stdin=subprocess.PIPE, stderr=None)

    def _ask(self, *words: str, files: dict[str, Path]) -> int:
        assert self.server.stdin
        assert self.server.stdout
        request = {"words": words} | {name: str(path) for name, path in files.items()}
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())

    def _files(self, *names: str) -> dict[str, Path]:
        number = next(_NUMBERS)
        return {name: self.media.with_name(f"{number}.{name}") for name in names}

    def begin(self, *words: str) -> tuple[int, dict[str, Path]]:
        """The process that does it, and files with what it writes, and in the end its code."""
        files = self._files("out", "err", "ended")
        return self._ask(*words, files=files), files

    def asked(self, *words: str) -> tuple[int, str, str]:
        """The exit code, and what was written to both outputs."""
        files = self._files("out", "err")
        code = self._ask(*words, files=files)
        return code, files["out"].read_text(), files["err"].read_text()

    def run(self, *words: str, code: int = 0) -> str:
        ended, written, complained = self.asked(*words)
        assert ended == code, complained
        return written

    def manage(self, *words: str, code: int = 0) -> str:
        return self.run("manage.py", *words, code=code)

    def site(self, *words: str) -> Any:
        return json.loads(self.run(*words))

    @contextmanager
    def load(self, name: str, folder: Path) -> Iterator[dict[str, Any]]:
        """Searches and writes within the block; what became of them is filled in at its end."""
        result: dict[str, Any] = {}
        _, files = self.begin("load", name, str(folder))
        wait_until((folder / "started").exists, what="all workspaces are answered")
        yield result
        (folder / "stop").touch()
        wait_until(files["ended"].exists, what="the load has ended")
        assert files["ended"].read_text() == "0", files["err"].read_text()[-2000:]
        result |= json.loads(files["out"].read_text())

    def end(self) -> None:
        assert self.server.stdin
        self.server.stdin.close()
        self.server.wait(timeout=30)

    def rows(self, name: str, statement: str) -> list[Any]:
        url = libpq_url(self.folders[name]) if self.folders else self.urls[name]
        with psycopg.connect(url, autocommit=True) as asked:
            return [value for (value,) in asked.execute(statement.encode())]

    def is_in_order(self) -> bool:
        return self.asked("manage.py", "shards", "list")[0] == 0

    def validate(self) -> None:
        assert self.manage("validate").count("clean") == len(NAMES)


def own_cluster(top: Path, media: Path) -> Cluster:
    """One is a copy of the test's own database, the others are copies of its files: quicker than
    migrations."""
    folders = {name: top / name for name in NAMES}
    main = folders["main"]
    copy_database(main, durable=False)
    with psycopg.connect(libpq_url(main), autocommit=True) as database:
        # Of the sequences of the test's database, which begin as those of a shard do.
        database.execute(
            "SELECT setval((schemaname || '.' || quote_ident(sequencename))::regclass, 1, false)"
            " FROM pg_sequences WHERE last_value >= %s",
            [IDS_OF_SHARD],
        )
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
        start(folder)
    urls = {name: embedded.database_url(folder) for name, folder in folders.items()}
    return Cluster({**urls, "single": embedded.database_url(main, "single")}, folders, media)


def start(folder: Path) -> None:
    embedded.start(folder, only=["postgresql"], durable=False)


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[Cluster]:
    media = tmp_path_factory.mktemp("site") / "media"
    media.mkdir()
    with ExitStack() as stack:
        if GIVEN:
            made = Cluster(dict(part.split("=", 1) for part in GIVEN.split(",")), {}, media)
            made.manage("migrate", "--verbosity=0")
        else:
            top = stack.enter_context(instance_dir("servers"))
            top.mkdir()
            with django_db_blocker.unblock():
                made = own_cluster(top, media)
            for folder in made.folders.values():
                stack.callback(embedded.stop, folder, only=["postgresql"])
        stack.callback(made.end)
        made.manage("shards", "prepare")
        made.manage("shards", "prepare")  # which changes nothing
        yield made


@pytest.fixture(scope="module")
def answers(cluster: Cluster) -> Any:
    """What the cluster answers, as long as nothing was taken away."""
    if "single" not in cluster.urls:
        return cluster.site("begin")
    environment = cluster.single(cluster.urls["single"]) | {"DATABASE_SHARD_URLS": ""}
    single = cluster.start("-m", "tests.shard_site", "begin", env=environment)
    there = cluster.site("begin")
    written, complained = single.communicate(timeout=300)
    assert single.returncode == 0, complained
    for slug, found in json.loads(written).items():
        assert there[slug]["answers"] == found["answers"]
    return there


@pytest.mark.nightly
def test_a_cluster_answers_as_one_server_does(cluster: Cluster, answers: Any) -> None:
    for slug, shard in (("alpha", "main"), ("beta", "east"), ("gamma", "west")):
        # The main database knows who asks; everything else is of the workspace's own server.
        assert answers[slug]["statements"].keys() <= {"main", shard}
        assert answers[slug]["statements"][shard] > 100
        documents = "SELECT DISTINCT workspace.slug FROM documents_document AS document"
        joined = " JOIN accounts_workspace AS workspace ON workspace.id = document.workspace_id"
        assert cluster.rows(shard, documents + joined) == [slug]
    cluster.validate()


@pytest.mark.nightly
def test_a_workspace_moves_while_it_is_read_and_written(
    cluster: Cluster, answers: Any, tmp_path: Path
) -> None:
    with cluster.load("moving", tmp_path) as said:
        interrupted, files = cluster.begin(
            *("manage.py", "shards", "move", "beta", "west", "--wait", "1")
        )
        wait_until(
            lambda: files["err"].exists() and "tables copied" in files["err"].read_text(),
            what="the tables are copied",
        )
        os.kill(interrupted, signal.SIGKILL)
        assert not files["ended"].exists()

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


@pytest.mark.nightly
@pytest.mark.skipif(bool(GIVEN), reason="servers of RAGSITE_TEST_CLUSTER are not stopped")
def test_only_workspaces_of_a_server_that_is_down_wait(
    cluster: Cluster, answers: Any, tmp_path: Path
) -> None:
    pid_file = cluster.folders["east"] / "postgres/data/postmaster.pid"
    with cluster.load("killed", tmp_path) as said:
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
        assert "east" in cluster.manage("shards", "list", code=1)
        # Rights are taken away also where the workspace cannot be reached.
        assert cluster.site("leave", "bob", "beta") == 404
        start(cluster.folders["east"])
        wait_until(cluster.is_in_order, what="changes of accounts arrive in the shard again")

    for slug in ("alpha", "gamma"):
        assert said["statuses"][slug].keys() == {*MADE}
    assert said["statuses"]["beta"].keys() == {*MADE, "read 503", "write 503"}
    # What was answered is there; so may be what the server had stored before it could say so.
    for slug, number in cluster.site("facts", "killed").items():
        unknown = said["statuses"][slug].get("write 503", 0)
        assert said["stored"][slug] <= number <= said["stored"][slug] + unknown
    cluster.validate()


@pytest.mark.nightly
def test_a_backup_of_all_servers_is_restored(
    cluster: Cluster, answers: Any, tmp_path: Path
) -> None:
    cluster.manage("backup", str(tmp_path / "backup"))
    with cluster.load("lost", tmp_path):
        pass

    cluster.manage("restore", str(tmp_path / "backup"), "--replace")

    after = cluster.site("answers")
    for slug, found in answers.items():
        assert after[slug]["answers"] == found["answers"]
    cluster.validate()


@pytest.mark.parametrize(
    "entry",
    ["east", "East=postgresql://a/b", "main=postgresql://a/b", "replica_1=postgresql://a/b"],
)
def test_a_shard_has_a_name_of_its_own_and_a_url(entry: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"east=postgresql://"):
        shard_urls(["other=postgresql://a/b", entry])
