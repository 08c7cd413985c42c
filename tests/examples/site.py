"""A site as `make run` starts it: servers, workers, a login and files of its own."""

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import redis
from psycopg import sql

from ragsite import embedded
from tests.examples.models import model_servers
from tests.examples.pages import ROOT
from tests.examples.programs import postgres_programs, programs
from tests.instances import instance_dir
from tests.plugin import free_port

WORLD = Path(__file__).parent / "world"
DEADLOCKS = 5
#: Rows that a page finds as the first one did; all others go between two pages.
_KEPT = (
    "accounts_user",
    "accounts_workspace",
    "accounts_membership",
    "accounts_apikey",
    "documents_embeddingspace",
)
_SPACE = "documents_embeddingspace"
_INDEXES = (
    "SELECT indexname, indexdef FROM pg_indexes WHERE indexname ~ '^chunk_space_[0-9]+_index$'"
)


@dataclass(frozen=True)
class Site:
    """A running site. `started` is what `make run` printed, `key` one that may do everything.

    `space` is the first embedding space's row, and `index` the statement that makes its index.
    """

    top: Path
    url: str
    environment: dict[str, str]
    started: str
    key: str
    space: str
    index: str

    @property
    def password(self) -> str:
        found = re.search(r"^Password: (\S+)$", self.started, re.M)
        assert found, self.started
        return found[1]

    @property
    def database(self) -> str:
        return embedded.database_url(Path(self.environment["RAGSITE_VAR_DIR"]))

    @property
    def redis(self) -> str:
        return embedded.redis_url(Path(self.environment["RAGSITE_VAR_DIR"]), 0)

    def checkout(self, name: str) -> Path:
        """A folder like a clone's, for one page."""
        folder = self.top / "pages" / name
        shutil.copytree(WORLD / "checkout", folder)
        for entry in ("manage.py", "Makefile", "docs", "README.md", "requirements.txt"):
            (folder / entry).symlink_to(ROOT / entry)
        for compose in ROOT.glob("docker-compose*.yml"):
            (folder / compose.name).symlink_to(compose)
        (folder / ".venv").symlink_to(self.top / ".venv")
        (folder / "var").symlink_to(self.environment["RAGSITE_VAR_DIR"])
        return folder

    def empty(self) -> None:
        """Take what earlier pages made: all but the login, its key and the first embedding space.

        Sweeps of the site's own workers lock the tables in another order. Where this gives way to
        one of them it begins again.
        """
        for left in reversed(range(DEADLOCKS)):
            try:
                self._empty()
                break
            except psycopg.errors.DeadlockDetected:
                if not left:
                    raise

    def _empty(self) -> None:
        with psycopg.connect(self.environment["EXAMPLES_DATABASE"], autocommit=True) as connection:
            _truncate(connection)
            connection.execute("DELETE FROM accounts_workspace WHERE slug <> 'default'")
            connection.execute("DELETE FROM accounts_apikey WHERE id > 1")
            connection.execute("ALTER SEQUENCE accounts_apikey_id_seq RESTART WITH 2")
            shutil.rmtree(Path(self.environment["RAGSITE_VAR_DIR"]) / "media", ignore_errors=True)
            self._first_space_only(connection)

    def _first_space_only(self, connection: psycopg.Connection) -> None:
        found = connection.execute(_INDEXES).fetchall()
        row = connection.execute(f"SELECT to_jsonb(t)::text FROM {_SPACE} t").fetchall()
        if [each[1] for each in found] == [self.index] and row == [(self.space,)]:
            return
        for name, _ in found:
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        connection.execute(f"DELETE FROM {_SPACE}")
        connection.execute(
            f"INSERT INTO {_SPACE} SELECT * FROM jsonb_populate_record(NULL::{_SPACE}, %s)",
            [self.space],
        )
        connection.execute(self.index)


@contextmanager
def running_site() -> Iterator[Site]:
    """Start one; at the end everything of it is gone."""
    with ExitStack() as stack:
        var = stack.enter_context(instance_dir())
        servers = stack.enter_context(model_servers())
        embedded.start(var, durable=False)
        environment = {**_environment(var), **servers}
        up: subprocess.Popen[str] | None = None
        stack.callback(lambda: up and up.wait())  # which ends with those that `programs` ends
        stack.enter_context(programs(var.parent, environment))
        port = free_port()
        *lines, last = [line.replace(".venv/bin/", "") for line in _recipe(port)]
        started = "".join(_run(var.parent, environment, line) for line in lines)
        key = _key(var.parent, environment)
        # No page finds the demo, and the workers would spend minutes on it.
        redis.Redis.from_url(embedded.redis_url(var, 0)).flushdb()
        with psycopg.connect(environment["EXAMPLES_DATABASE"], autocommit=True) as connection:
            _truncate(connection)
        up = subprocess.Popen(
            ["bash", "-c", f"exec {last}"],
            cwd=ROOT, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        started += _first_words(up)
        (var.parent / "started").write_text(started)
        _make_shop(environment)
        url = f"http://127.0.0.1:{port}"
        yield Site(var.parent, url, environment, started, key, *_first_space(environment))


def _environment(var: Path) -> dict[str, str]:
    """What a shell has in which nobody has set anything of ours."""
    top = var.parent
    shutil.copytree(WORLD / "home", top / "home")
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "PATH": os.pathsep.join([str(top / "bin"), str(postgres_programs()), os.environ["PATH"]]),
        "HOME": str(top / "home"),
        "PYTHONUTF8": "1",
        "COLUMNS": "100",
        "OMP_NUM_THREADS": "1",
        "RAGSITE_VAR_DIR": str(var),
        "EXAMPLES_DATABASE": embedded.libpq_url(var),
        "EXAMPLES_SHOP": f"postgresql://ragsite@/shop?host={embedded.socket_dir(var)}&port=5432",
        # What a worker takes up by itself, it takes up soon.
        "RAGSITE_RECOVERY_SECONDS": "1",
        # `manage.py up` would set another: so its programs and the examples share what is set up.
        # Nobody comes before the models are ready.
        "RAGSITE_WORKER_PATIENCE_SECONDS": "0",
    }


def _recipe(port: int) -> list[str]:
    """The command lines of `make run` behind the installation."""
    made = subprocess.run(
        ["make", "--no-print-directory", "-n", "run", f"PORT={port}"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    lines = made.stdout.splitlines()
    assert "scripts/setup.py" in lines[0]
    return lines[1:]


def _run(folder: Path, environment: dict[str, str], line: str) -> str:
    done = subprocess.run(
        ["bash", "-c", line], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{line}: {done.stdout}"
    return done.stdout


def _first_words(up: subprocess.Popen[str]) -> str:
    """What it says until it is ready; afterwards what it says is read and left."""
    assert up.stdout
    said = ""
    for line in up.stdout:
        said += line
        if "ragsite is ready" in line:
            threading.Thread(target=up.stdout.read, daemon=True).start()
            return said
    raise AssertionError(f"the site did not start: {said}")


def _key(folder: Path, environment: dict[str, str]) -> str:
    """A new API key of the demo user that may do everything."""
    scopes = "".join(f" --scope {name}" for name in ("read", "write", "memory", "chat", "admin"))
    made = _run(
        folder,
        environment,
        f"python manage.py apikeys create --user demo --name examples{scopes}",
    )
    return made.splitlines()[-1]


def _truncate(connection: psycopg.Connection) -> None:
    tables = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        " AND tablename !~ '^(django|auth)_' AND tablename <> ALL (%s)",
        [list(_KEPT)],
    ).fetchall()
    connection.execute(
        sql.SQL("TRUNCATE {} RESTART IDENTITY").format(
            sql.SQL(", ").join(sql.Identifier(name) for (name,) in tables)
        )
    )


def _make_shop(environment: dict[str, str]) -> None:
    """Somebody's database, for the pages about cataloguing one."""
    with psycopg.connect(environment["EXAMPLES_DATABASE"], autocommit=True) as connection:
        connection.execute("CREATE DATABASE shop")
    with psycopg.connect(environment["EXAMPLES_SHOP"], autocommit=True) as connection:
        for script in ("schema.sql", "comments.sql"):
            connection.execute((WORLD / "checkout" / script).read_bytes())


def _first_space(environment: dict[str, str]) -> tuple[str, str]:
    with psycopg.connect(environment["EXAMPLES_DATABASE"]) as connection:
        space = connection.execute(f"SELECT to_jsonb({_SPACE})::text FROM {_SPACE}").fetchone()
        index = connection.execute(_INDEXES).fetchone()
    assert space
    assert index
    return space[0], index[1]
