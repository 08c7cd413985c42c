"""What manage.py does before a command: servers, migrations, and databases that cannot be used."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from django.db import connection, transaction

from ragsite import bootstrap, embedded
from ragsite.bootstrap import UnusableDatabaseError, check_url, pending_migrations
from tests.instances import instance_dir

REPOSITORY = Path(__file__).resolve().parent.parent
SECRET = "s3cret-w0rd"
COUNT = "from documents.models import Document; print(Document.objects.count())"
SHELL = ["shell", "--no-imports", "--verbosity", "0", "--command"]


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


def manage(*words: str, var_dir: Path, **environment: str) -> Said:
    """Run manage.py as a person would, on services that only `environment` replaces."""
    return said_by(begin(*words, var_dir=var_dir, **environment))


def begin(*words: str, var_dir: Path, **environment: str) -> subprocess.Popen[str]:
    ours = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
    return subprocess.Popen(
        [sys.executable, "manage.py", *words],
        cwd=REPOSITORY,
        env=ours
        | {"RAGSITE_VAR_DIR": str(var_dir), "RAGSITE_DATABASE_START_SECONDS": "0"}
        | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said_by(process: subprocess.Popen[str]) -> Said:
    out, err = process.communicate(timeout=180)
    return Said(process.returncode, out, err)


def refused(said: Said) -> str:
    """The one message of a command that did not run."""
    assert (said.code, said.out) == (2, ""), said
    assert "Traceback" not in said.err
    assert SECRET not in said.err
    assert said.err.startswith("ragsite: ")
    assert said.err.count("\n") == 1
    return said.err


@pytest.fixture
def var_dir() -> Iterator[Path]:
    with instance_dir() as path:
        yield path


@pytest.fixture(scope="module")
def new_site() -> Iterator[tuple[Path, list[Said]]]:
    """A site that did not exist before two commands at once, and what they said."""
    with instance_dir() as path:
        both = [begin(*SHELL, COUNT, var_dir=path) for _ in range(2)]
        yield path, [said_by(process) for process in both]


@pytest.fixture
def first_said(new_site: tuple[Path, list[Said]]) -> list[Said]:
    return new_site[1]


@pytest.fixture
def site(new_site: tuple[Path, list[Said]]) -> Path:
    return new_site[0]


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    """A PostgreSQL of one's own: a bare database, and roles that lack something each."""
    with instance_dir() as path:
        embedded.start(path, durable=False)
        hba = path / "postgres/data/pg_hba.conf"
        hba.write_text(f"local all locked scram-sha-256\n{hba.read_text()}")
        with psycopg.connect(embedded.libpq_url(path), autocommit=True) as connection:
            for statement in (
                "SELECT pg_reload_conf()",
                "CREATE DATABASE bare TEMPLATE template0",
                "CREATE DATABASE fresh TEMPLATE template0",
                "CREATE DATABASE shared TEMPLATE template0",
                "CREATE ROLE plain LOGIN",
                "CREATE ROLE locked LOGIN PASSWORD 'right'",
                "CREATE ROLE blind LOGIN SUPERUSER",
                # As on a server on which pgvector was never installed.
                "ALTER ROLE blind SET extension_control_path = '/nonexistent'",
            ):
                connection.execute(statement)
        yield path


def url(server: Path, database: str, user: str = "ragsite") -> str:
    return embedded.database_url(server, database).replace("ragsite@", f"{user}:{SECRET}@", 1)


# --- embedded services -------------------------------------------------------------------------


@pytest.mark.nightly
def test_two_commands_at_once_find_servers_and_tables_and_stdout_is_their_own(
    first_said: list[Said], site: Path
) -> None:
    assert [(said.code, said.out) for said in first_said] == [(0, "0\n"), (0, "0\n")], first_said
    assert any("ragsite: started postgresql 18" in said.err for said in first_said)
    assert sum("ragsite: applying" in said.err for said in first_said) == 1
    later = manage(*SHELL, COUNT, var_dir=site)
    assert (later.code, later.out, later.err) == (0, "0\n", "")


def test_commands_that_need_no_database_start_none(var_dir: Path) -> None:
    for words in (["help"], ["version"], ["migrate", "--help"], ["diffsettings"], []):
        said = manage(*words, var_dir=var_dir)
        assert said.code == 0, said
        assert not embedded.answering(var_dir, only=["valkey"])
        assert not embedded.answering(var_dir, only=["postgresql"])


def test_only_what_the_environment_does_not_replace_is_started(var_dir: Path, server: Path) -> None:
    said = manage(
        "check",
        "--tag=models",
        var_dir=var_dir,
        DATABASE_URL=url(server, "ragsite"),
        REDIS_URL="",
    )
    assert said.code == 0, said
    assert embedded.answering(var_dir, only=["valkey"])
    assert not embedded.answering(var_dir, only=["postgresql"])


@pytest.mark.nightly
def test_a_killed_database_is_back_for_the_next_command(site: Path) -> None:
    pid = embedded.status(site)[0].pid
    assert pid
    os.kill(pid, 9)
    said = manage(*SHELL, "print('here')", var_dir=site)
    assert (said.code, said.out) == (0, "here\n")
    assert "applying" not in said.err


# --- the services command ----------------------------------------------------------------------


def test_services_are_started_described_and_stopped_by_hand(var_dir: Path) -> None:
    assert manage("services", "status", var_dir=var_dir).code == 1
    started = manage("services", "start", "--json", var_dir=var_dir)
    assert started.code == 0, started
    services = json.loads(started.out)["services"]
    assert [(s["name"], s["running"], s["used"]) for s in services] == [
        ("postgresql", True, True),
        ("valkey", True, True),
    ]
    assert manage("services", "status", var_dir=var_dir).code == 0
    stopped = manage("services", "stop", var_dir=var_dir)
    assert (stopped.code, stopped.out.count("not running")) == (0, 2)


def test_services_say_when_they_are_not_used(var_dir: Path) -> None:
    own = {"DATABASE_URL": "postgresql://u:p@db.invalid/x", "REDIS_URL": "redis://r.invalid"}
    said = manage("services", "start", var_dir=var_dir, **own)
    assert said.code == 0
    assert "not used: DATABASE_URL is set" in said.out
    assert "not used: REDIS_URL is set" in said.out
    assert not embedded.answering(var_dir, only=["valkey"])


# --- databases of one's own --------------------------------------------------------------------


@pytest.mark.parametrize(
    "database_url",
    [
        f"mysql://u:{SECRET}@localhost/x",
        f"postgresql://u:{SECRET}@localhost:port/x",
        f"postgresql://u:{SECRET}@localhost",
        f"postgresql://u:{SECRET}@[::1/x",
        "ragsite",
    ],
)
def test_an_unreadable_url_is_explained(database_url: str) -> None:
    with pytest.raises(UnusableDatabaseError, match="DATABASE_URL must look like") as raised:
        check_url(database_url)
    assert SECRET not in str(raised.value)


def test_a_command_with_an_unreadable_url_is_refused(var_dir: Path) -> None:
    url = f"postgresql://u:{SECRET}@localhost:port/x"
    said = refused(manage("migrate", var_dir=var_dir, DATABASE_URL=url))
    assert "DATABASE_URL must look like postgresql://USER:PASSWORD@HOST:PORT/NAME" in said


@pytest.mark.parametrize(
    ("command", "host"),
    [
        ("migrate", "127.0.0.1:1"),
        ("createsuperuser", "no-such-host.invalid"),
    ],
)
def test_an_unreachable_server_is_explained(
    var_dir: Path, server: Path, command: str, host: str
) -> None:
    said = refused(
        manage(
            command,
            var_dir=var_dir,
            DATABASE_URL=f"postgresql://u:{SECRET}@{host}/x",
            REDIS_URL=embedded.redis_url(server),
        )
    )
    assert host.removesuffix(":1") in said
    assert "Check the host and the port in DATABASE_URL" in said


@pytest.mark.parametrize(
    ("command", "database", "user", "cure"),
    [
        ("migrate", "ragsite", "locked", "Check the user and the password in DATABASE_URL."),
        (
            "createsuperuser",
            "ragsite",
            "nobody",
            "Check the user and the password in DATABASE_URL.",
        ),
        (
            "migrate",
            "missing",
            "plain",
            "Create it with `createdb`, or correct the name in DATABASE_URL.",
        ),
        ("migrate", "bare", "plain", 'as a superuser: psql -d bare -c "CREATE EXTENSION vector"'),
        ("createsuperuser", "bare", "blind", "Install pgvector 0.8 or later on the server"),
    ],
)
def test_a_server_that_will_not_do_is_explained(
    *, var_dir: Path, server: Path, command: str, database: str, user: str, cure: str
) -> None:
    environment = {
        "DATABASE_URL": url(server, database, user),
        "REDIS_URL": embedded.redis_url(server),
    }
    assert cure in refused(manage(command, var_dir=var_dir, **environment))


@pytest.mark.nightly
def test_a_database_of_ones_own_is_migrated_when_asked_and_not_before(
    var_dir: Path, server: Path
) -> None:
    environment = {
        "DATABASE_URL": url(server, "fresh"),
        "REDIS_URL": embedded.redis_url(server),
    }
    refusal = refused(manage(*SHELL, "print('ran')", var_dir=var_dir, **environment))
    assert "run `manage.py migrate`" in refusal
    assert manage("migrate", var_dir=var_dir, **environment).code == 0
    said = manage(*SHELL, "print('ran')", var_dir=var_dir, **environment)
    assert (said.code, said.out) == (0, "ran\n")


# --- up ----------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_up_says_so_when_the_port_is_taken(site: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        said = manage("up", "--port", str(port), var_dir=site)
    assert said.code == 2
    assert f"make run PORT={port + 1}" in said.err
    assert "Traceback" not in said.err


@pytest.mark.nightly
def test_a_schema_of_ones_own_is_made_by_migrate_and_leaves_public_clean(
    var_dir: Path, server: Path
) -> None:
    environment = {
        "DATABASE_URL": f"{url(server, 'shared')}?schema=rag",
        "REDIS_URL": embedded.redis_url(server),
    }
    said = refused(manage("stats", var_dir=var_dir, **environment))
    assert "has no schema rag: run `manage.py migrate`" in said
    assert manage("migrate", var_dir=var_dir, **environment).code == 0
    assert manage("stats", var_dir=var_dir, **environment).code == 0
    with psycopg.connect(embedded.libpq_url(server, "shared"), autocommit=True) as connection:
        connection.execute("CREATE TABLE public.django_migrations ()")
        connection.execute("DROP SCHEMA rag CASCADE")
        left = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        )
        assert left.fetchall() == [("django_migrations",)]
        extensions = connection.execute(
            "SELECT DISTINCT extnamespace::regnamespace::text FROM pg_extension"
            " WHERE extname <> 'plpgsql'"
        )
        assert extensions.fetchall() == [("public",)]
    said = refused(manage("migrate", var_dir=var_dir, **environment))
    assert "Schema public of database shared holds the tables of another site" in said


@pytest.mark.parametrize("schema", ["", "Rag", "pg_rag", "a,b", "rag;", "x" * 64])
def test_what_cannot_be_a_schema_is_refused(schema: str) -> None:
    with pytest.raises(UnusableDatabaseError, match="cannot be a schema"):
        check_url(f"postgresql://u:p@localhost/x?schema={quote(schema)}")


def test_a_command_ends_silently_when_the_reader_of_its_output_has_gone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        with pytest.raises(SystemExit) as ended:
            bootstrap.run(output.writelines, ["a line that nobody reads"])
    assert ended.value.code == 141, "as a shell says that SIGPIPE ended it"
    assert capfd.readouterr() == ("", "")


@pytest.mark.django_db
@pytest.mark.parametrize("limit", ["lock_timeout", "statement_timeout"])
def test_a_locked_table_of_migrations_is_said_with_the_cure(limit: str) -> None:
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    address = {name: connection.settings_dict[key] or None for name, key in names.items()}
    database = connection.settings_dict["NAME"]
    with (
        psycopg.connect(**address, dbname=database) as other,
        connection.cursor() as cursor,
    ):
        other.execute("LOCK TABLE django_migrations IN ACCESS EXCLUSIVE MODE")
        cursor.execute(f"SET LOCAL {limit} = '50ms'")
        with pytest.raises(UnusableDatabaseError, match="locked by another session"):
            pending_migrations()
        other.rollback()
    transaction.set_rollback(True)
