"""Each kept release is upgraded to this one: the same documents and hits, whatever interrupts it.

`tests/releases/VERSION` has a backup that the release's own code made, and what its site answered:
see scripts/keep_release.py.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from common.valkey import broker_client
from ragsite import presence
from ragsite.backup import Server
from ragsite.backup.manifest import product_version
from tests.backups import restore, rows, scratch, server_of
from tests.plugin import wait_until
from tests.test_backup import REPOSITORY, manage, site_of

#: The plan of the first has steps that may be killed.
FIRST, *LATER = sorted((REPOSITORY / "tests/releases").iterdir())
SCHEMA = """
    SELECT 'column', table_name || '.' || column_name, concat_ws(' ', data_type, is_nullable,
           regexp_replace(column_default, '''.*''', ''), generation_expression)
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes
    WHERE schemaname = 'public' AND indexname !~ '^chunk_space_'
    UNION ALL SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT 'trigger', tgname, pg_get_triggerdef(oid)
    FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'policy', polrelid::regclass::text, pg_get_expr(polqual, polrelid)
    FROM pg_policy
    UNION ALL SELECT 'function', oid::regprocedure::text, prosrc FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND prolang <> 13
"""


@pytest.fixture(autouse=True)
def _database(db: None) -> None:
    """The test's own database has the schema of this release."""


def unpacked(release: Path, tmp_path: Path) -> Path:
    with tarfile.open(release / "backup.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "backup"


def answers_of(site: dict[str, str]) -> Any:
    """What the site answers, over its API, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "scripts.keep_release", "--answers"],
        cwd=REPOSITORY,
        env=environment(site),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def environment(site: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "RAGSITE_REDIS_DB": "0", **site}


def schema(database: Any) -> set[tuple[str, str, str]]:
    """All that is in the database but rows. A dump writes casts of checks another way."""
    casts = re.compile(r"::(text|character varying)(\[\])?|[()\s]")
    return {
        (kind, name, casts.sub("", said or "")) for kind, name, said in database.execute(SCHEMA)
    }


def assert_has_the_schema_of_this_release(database: str) -> None:
    with server_of(database).connect() as upgraded, Server.of(connection).connect() as made:
        assert schema(upgraded) ^ schema(made) == set()


def kept_answers(release: Path) -> Any:
    return json.loads((release / "answers.json").read_text())


def differences(there: Any, here: Any, *, name: str = "") -> Iterator[str]:
    """Paths and values that are not the same."""
    if "/hybrid/" in name and there and here:
        # How words and meaning are weighed may change with a release, what each finds may not.
        kept = sum(hit in here for hit in there)
        if len(there) != len(here) or kept <= len(there) / 2:
            yield f"{name}: {there} in the release, {here} here"
    elif isinstance(there, dict) and isinstance(here, dict):
        for key in sorted(there.keys() | here.keys()):
            yield from differences(there.get(key), here.get(key), name=f"{name}/{key}")
    elif there != here:
        yield f"{name}: {there} in the release, {here} here"


@pytest.mark.nightly
@pytest.mark.parametrize("release", LATER, ids=lambda path: path.name)
def test_a_later_release_is_restored_upgraded_and_answers_as_it_did(
    release: Path, tmp_path: Path
) -> None:
    with scratch("kept") as database:
        site = site_of(database, tmp_path / "media")
        done = manage("restore", str(unpacked(release, tmp_path)), "--json", **site)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["validation"]["clean"]
        assert list(differences(kept_answers(release), answers_of(site))) == []
        assert_has_the_schema_of_this_release(database)
        report = manage("upgrade", "--check", "--json", **site)
        assert report.returncode == 0, report.stdout
        checks = {check["subject"]: check for check in json.loads(report.stdout)["checks"]}
        assert checks["migrations"]["detail"] == f"all of ragsite {product_version()} are applied"
        assert checks["search"]["state"] == checks["validation"]["state"] == "ok"


PAUSES = """
    CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$;
    CREATE FUNCTION pause_statement() RETURNS event_trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(600); END $$;
    CREATE FUNCTION no_rewrite() RETURNS event_trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE 'a table is written anew'; END $$;
    CREATE EVENT TRIGGER no_rewrite ON table_rewrite EXECUTE FUNCTION no_rewrite();
"""
#: Where the process is killed, one after the other: a trigger that holds it there, and its removal.
POINTS = {
    "chunks get their ids": (
        "CREATE TRIGGER paused BEFORE UPDATE ON documents_chunk EXECUTE FUNCTION pause()",
        "DROP TRIGGER paused ON documents_chunk",
    ),
    "triggers are made": (
        "CREATE EVENT TRIGGER paused ON ddl_command_end WHEN TAG IN ('CREATE TRIGGER')"
        " EXECUTE FUNCTION pause_statement()",
        "DROP EVENT TRIGGER paused",
    ),
    "done, but not recorded": (
        "CREATE TRIGGER paused BEFORE INSERT ON django_migrations FOR EACH ROW"
        " WHEN (NEW.name = '0014_lexical_index') EXECUTE FUNCTION pause()",
        "DROP TRIGGER paused ON django_migrations",
    ),
    "the former index is gone, and that not recorded": (
        "CREATE TRIGGER paused BEFORE INSERT ON django_migrations FOR EACH ROW"
        " WHEN (NEW.name = '0015_index_chunks') EXECUTE FUNCTION pause()",
        "DROP TRIGGER paused ON django_migrations",
    ),
}


def connected(database: str, name: str) -> Any:
    """A connection of a process of this name."""
    return Server({**server_of(database).options, "application_name": name}).connect()


@contextmanager
def upgrading(site: dict[str, str], said: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`manage.py upgrade` while the block runs, killed with SIGKILL at its end."""
    with said.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "upgrade"],
            cwd=REPOSITORY,
            env=environment(site),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def what_does_not_suit_is_said_before_anything_is_changed(
    database: str, site: dict[str, str], backup: Path
) -> None:
    refused = manage("upgrade", "--backup", str(REPOSITORY / "docs"), **site)
    assert refused.returncode == 2
    assert "backup: not possible: " in refused.stdout
    assert "is no backup: it has no manifest.json" in refused.stdout
    ready = manage("upgrade", "--check", "--backup", str(backup), **site)
    assert ready.returncode == 0, ready.stdout
    assert re.search(r"\d+ migrations while the site works, \d+ while it is st", ready.stdout)
    assert "processes: the site does not run" in ready.stdout
    applied = "SELECT count(*) FROM django_migrations WHERE name = '0014_lexical_index'"
    assert rows(database, applied) == [(0,)]


@pytest.mark.nightly
def test_an_upgrade_waits_for_locks_is_killed_anywhere_and_goes_on(tmp_path: Path) -> None:
    said = tmp_path / "said.txt"
    with scratch("killed") as database, ExitStack() as stack:
        restore(unpacked(FIRST, tmp_path), database, tmp_path / "media")
        site = site_of(database, tmp_path / "media")
        what_does_not_suit_is_said_before_anything_is_changed(database, site, tmp_path / "backup")
        watching = stack.enter_context(connected(database, "a test"))
        watching.execute(PAUSES)

        def is_waiting(event: str) -> bool:
            statement = (
                "SELECT FROM pg_stat_activity WHERE datname = current_database()"
                " AND application_name = 'ragsite' AND wait_event = %s"
            )
            return watching.execute(statement, [event]).rowcount > 0

        # Somebody reads the chunks, and somebody else wants to: the second waits for nobody.
        with connected(database, "a reader") as reading, upgrading(site, said):
            reading.execute("BEGIN")
            reading.execute("SELECT count(*) FROM documents_chunk")
            wait_until(lambda: b"waiting for process" in said.read_bytes(), what="it waits")
            watching.execute("SELECT count(*) FROM documents_chunk")
        for name, (begin, end) in POINTS.items():
            watching.execute(begin)
            with upgrading(site, said):
                wait_until(lambda: is_waiting("PgSleep"), what=name)
            wait_until(lambda: not is_waiting("PgSleep"), what="its statement is ended")
            watching.execute(end)
            if name.startswith("done"):
                with connected(database, "ragsite"):
                    stopping = manage("upgrade", "--json", **site)
                assert stopping.returncode == 1, stopping.stdout
                stopped = json.loads(stopping.stdout)
                assert stopped["left"] > 0
                assert stopped["running"] == ["1 connection (ragsite)"]

        done = manage("upgrade", "--json", **site)
        assert done.returncode == 0, done.stdout + done.stderr
        checks = {check["subject"]: check for check in json.loads(done.stdout)["checks"]}
        assert {check["state"] for check in checks.values()} == {"ok"}
        assert checks["migrations"]["detail"] == f"all of ragsite {product_version()} are applied"
        watching.execute("DROP EVENT TRIGGER no_rewrite")
        for name in ("pause", "pause_statement", "no_rewrite"):
            watching.execute(f"DROP FUNCTION {name}")
        assert_has_the_schema_of_this_release(database)
        invalid = "SELECT FROM pg_index WHERE NOT indisvalid"
        assert rows(database, invalid) == []
        assert list(differences(kept_answers(FIRST), answers_of(site))) == []


def test_workers_tell_their_release() -> None:
    with broker_client() as client:
        heartbeat = presence.WorkerHeartbeat(client, name="embed@test", queues=["embed"])
        said = f"worker embed@test of ragsite {product_version()}"
        heartbeat.start()
        try:
            wait_until(lambda: said in presence.describe_workers(client), what="it is told")
        finally:
            heartbeat.stop()
        assert said not in presence.describe_workers(client)
