"""pytest plugin: every test process has real servers, a database and a broker of its own."""

import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib import import_module
from itertools import count
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How quickly inputs are generated and tried says how busy the machine is.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("short", settings.get_profile("busy"), max_examples=25)
settings.register_profile("shortest", settings.get_profile("busy"), max_examples=3)
settings.load_profile("busy")

_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
_ROOT = Path(__file__).resolve().parent.parent
#: Modules whose tests come to one web server: one process starts it, not each.
_SAME_SITE = (
    "rag/tests/test_openai_client.py",
    "rag/tests/test_mcp_http.py",
    "rag/tests/test_mcp_stdio.py",
    "clients/tests/test_remote_retriever.py",
    "clients/tests/test_langchain.py",
)
#: Modules of ten seconds and more, longest first: the others fill what is left of each process's
#: time, while a long one that begins last would be waited for alone.
_LONGEST = (
    "tests/test_under_faults.py",
    "tests/test_docs_examples.py",
    "tests/test_access_walk.py",
    "tests/test_shards.py",
    "tests/test_reference_figures.py",
    "rag/tests/test_openai_client.py",
    "tests/test_browser_matrix.py",
    "tests/test_api_fuzz.py",
    "tests/test_browser_chat.py",
    "tests/test_bootstrap.py",
    "documents/tests/test_worker_faults.py",
    "tests/test_embedded_services.py",
    "tests/test_api_hostile.py",
    "tests/test_service_faults.py",
    "tests/test_backup.py",
    "inference/tests/test_chat_protocols.py",
    "tests/test_browser.py",
    "tests/test_schema.py",
    "rag/tests/test_sql_running.py",
    "rag/tests/test_sql_spider.py",
    "tests/test_upgrades.py",
    "tests/test_chat_streams.py",
    "tests/test_stored_markup.py",
    "search/tests/test_lexical_candidates.py",
    "tests/test_browser_search.py",
    "search/tests/test_spaces.py",
    "tests/test_pattern_times.py",
    "sources/tests/test_synchronisation.py",
    "tests/test_api_bounds.py",
    "documents/tests/test_reembedding.py",
    "tests/test_browser_sign_in.py",
)
#: Fixtures of pytest-django without which there is no database.
_OF_DATABASE = {"db", "transactional_db", "django_db_setup", "live_server"}

#: Made by `migrate` and changed by no test.
_UNTOUCHED_TABLES = {"django_content_type", "auth_permission"}
#: Tables and indexes of a test that wrote much are made anew, lest the next ones walk through what
#: it deleted.
_LARGE_BYTES = 64 * 1024 * 1024
#: Where to look for a free port next; checkouts that are tested at once begin elsewhere.
_PORTS = count(os.getpid())
#: Any number: one test process migrates, the others wait.
_MIGRATED_LOCK = 7_245_552

# Before settings are read: separate servers, a fast embedder, and a Valkey database of this test
# process.
os.environ["RAGSITE_ENV_FILE"] = ""  # a developer's own
os.environ.setdefault("RAGSITE_VAR_DIR", str(_ROOT / "var" / "test"))
os.environ.setdefault("EMBEDDER_BACKEND", "inference.backends.hashing.HashingEmbedder")
os.environ.setdefault("RERANKER_BACKEND", "inference.backends.rerank_basic.NoReranker")
os.environ.setdefault("TOKEN_ENCODER_BACKEND", "")
# A thread a process for models: tests run side by side, and threads that wait for each other burn
# the time of the rest.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Servers and commands that tests start need not compile everything anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Set anew in each: xdist's workers inherit the environment of the process that starts them.
os.environ["RAGSITE_REDIS_DB"] = str(1 + int(_WORKER.removeprefix("gw")))


def pytest_configure(config: pytest.Config) -> None:
    """Start the servers once, in the process that the others are started from."""
    if not hasattr(config, "workerinput"):
        from ragsite import embedded

        var_dir = Path(os.environ["RAGSITE_VAR_DIR"])
        embedded.start(var_dir, durable=False, chmod_parents=True)


@pytest.hookimpl(tryfirst=True)  # before those are left out that -m does not want
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need a database."""
    from django.test import TransactionTestCase

    for item in items:
        fixtures: list[str] = getattr(item, "fixturenames", [])
        if (
            item.get_closest_marker("django_db")
            or not _OF_DATABASE.isdisjoint(fixtures)
            or issubclass(getattr(item, "cls", None) or object, TransactionTestCase)
        ):
            item.add_marker("database")


def pytest_collection_finish() -> None:
    """Freeze collected objects, so that garbage collection does not scan them, and collect seldom
    what tests leave: together a fifth of all work.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(optionalhook=True)  # xdist's
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute modules, whose browser, site or rows are made in one process only; those in
    `_SAME_SITE` together, and `_LONGEST` first."""
    from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

    def rank(module: str) -> int:
        return _LONGEST.index(module) if module in _LONGEST else len(_LONGEST)

    class ByModule(LoadGroupScheduling):
        is_sorted = False

        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            return _SAME_SITE[0] if module in _SAME_SITE else module

        def _assign_work_unit(self, node: Any) -> None:
            if not self.is_sorted:
                for scope in sorted(self.workqueue, key=rank):
                    self.workqueue.move_to_end(scope)
                self.is_sorted = True
            super()._assign_work_unit(node)

    return ByModule(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(scope="session", autouse=True)
def _static_files_by_request() -> None:
    """Look static files up when they are asked for: each test client loads the middleware anew, and
    WhiteNoise would list all files each time (40 ms).
    """
    from django.conf import settings

    settings.WHITENOISE_AUTOREFRESH = True


@pytest.fixture(scope="session", autouse=True)
def _answers_at_once() -> None:
    """Let the live server send the body of an answer without waiting until the client has
    confirmed the headers, which takes 40 ms."""
    from django.core.servers.basehttp import WSGIRequestHandler

    WSGIRequestHandler.disable_nagle_algorithm = True


@pytest.fixture(scope="session", autouse=True)
def _quick_passwords() -> None:
    """The same hash with the least work: a login takes 0.1 s of a processor otherwise."""
    from django.contrib.auth.hashers import Argon2PasswordHasher

    Argon2PasswordHasher.time_cost = 1
    Argon2PasswordHasher.memory_cost = 8
    Argon2PasswordHasher.parallelism = 1


@pytest.fixture(autouse=True)
def _nothing_left_by_the_test_before() -> None:
    from django.core.cache import cache

    from accounts.rate_limits import _Outage
    from common.logs import NO_CONTEXT, set_log_context

    cache.clear()
    _Outage.asleep_until = 0.0  # a test that took the broker away
    set_log_context(NO_CONTEXT)  # one that did not read an answer to its end


@pytest.fixture(scope="session", autouse=True)
def _default_space() -> None:
    """Make the default space that of the test embedder, and restore it after a test that emptied
    the tables.
    """
    from django.db.models.signals import post_migrate
    from django.test import TransactionTestCase

    post_migrate.connect(_after_migration, dispatch_uid="testing.default_space")
    TransactionTestCase._fixture_teardown = empty_tables  # type: ignore[attr-defined]


def _after_migration(sender: Any, **kwargs: Any) -> None:
    if sender.name == "documents":
        _adopt_default_space()
        _give_large_ids()


@pytest.fixture(scope="session", autouse=True)
def _copied_database() -> None:
    """Copy the test's database from one that was migrated before: ten seconds of work less for each
    test process."""
    from django.db import connection

    creation: Any = connection.creation
    creation.sql_table_creation_suffix = lambda: f'WITH TEMPLATE "{_migrated_database()}"'


def _migrated_database() -> str:
    """The name of a database with all migrations of the code as it is, kept until that changes."""
    from django.conf import settings
    from django.db import connection

    from ragsite import embedded

    name = f"migrated_{_digest_of_code()}"
    new = f"{name}_new"
    with connection._nodb_cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute("SELECT pg_advisory_lock(%s)", [_MIGRATED_LOCK])
        cursor.execute(r"SELECT datname FROM pg_database WHERE datname LIKE 'migrated\_%'")
        former = {each for (each,) in cursor.fetchall()}
        if name not in former:
            for each in former:
                cursor.execute(f'DROP DATABASE "{each}" WITH (FORCE)')
            cursor.execute(f'CREATE DATABASE "{new}"')
            subprocess.run(
                [sys.executable, "manage.py", "migrate", "--verbosity=0"],
                cwd=_ROOT,
                env=os.environ | {"DATABASE_URL": embedded.database_url(settings.VAR_DIR, new)},
                check=True,
            )
            cursor.execute(f'ALTER DATABASE "{new}" RENAME TO "{name}"')
    return name


def _digest_of_code() -> str:
    """Of all that a migration may import, and of the packages."""
    digest = sha256((_ROOT / "requirements.txt").read_bytes())
    for package in sorted(path.parent for path in _ROOT.glob("*/__init__.py")):
        for path in sorted([*package.rglob("*.py"), *package.rglob("*.sql")]):
            if "tests" not in path.parts[len(_ROOT.parts) :]:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def committed_rows(blocker: Any) -> Iterator[None]:
    """What is written inside is committed, for the tests of a module or for other threads, and
    deleted at the end. `blocker` is the fixture `django_db_blocker`."""
    from django.db import connection

    with blocker.unblock():
        try:
            yield
        finally:
            empty_tables()
            connection.close()


def empty_tables(test: Any = None) -> None:
    """Django's `flush` in a tenth of the time: without recreating files, and without checking
    permissions.
    """
    from django.db import OperationalError, connection

    tables = (
        set(connection.introspection.django_table_names(only_existing=True)) - _UNTOUCHED_TABLES
    )
    names = [connection.ops.quote_name(name) for name in sorted(tables)]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(name)) FROM unnest(%s::text[]) name", [names]
        )
        large = cursor.fetchone()[0] > _LARGE_BYTES
        # The lock waits for threads and processes of the test that still write; triggers and
        # foreign keys do not matter where everything is deleted.
        begin = "BEGIN; SET LOCAL session_replication_role = replica"
        lock = f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE"
        empty = [f"TRUNCATE {', '.join(names)}"]
        if not large:
            empty = [f"DELETE FROM {name}" for name in names]
        for attempt in range(5):
            try:
                cursor.execute("; ".join([begin, lock, *empty, "COMMIT"]))
                break
            except OperationalError:  # a deadlock with what still reads: give way, begin again
                cursor.execute("ROLLBACK")
                if attempt == 4:
                    raise
    _adopt_default_space()


def _adopt_default_space() -> None:
    from django.apps import apps
    from django.db import connection

    from inference.model_registry import embedders

    spaces = apps.get_model("documents", "EmbeddingSpace").objects
    if not spaces.exists():
        migration = import_module("documents.migrations.0002_default_space")
        with connection.schema_editor() as editor, connection.cursor() as cursor:
            cursor.execute("SELECT last_value FROM documents_embeddingspace_id_seq")
            (last,) = cursor.fetchone()
            migration.create_default_space(apps, editor)
            # That restarts the ids. No test may get those of an earlier one: the index of its space
            # would be built over rows just deleted, whose vectors may have other dimensions.
            cursor.execute("SELECT setval('documents_embeddingspace_id_seq', %s)", [last])
    spaces.filter(id=1).update(
        is_default=True, model_name=embedders["default"].model_name, precision="half"
    )
    _reset_space_indexes()


def _give_large_ids() -> None:
    """Number rows as the second server of a large site does, where accounts are those of the main
    one: nothing may count on short ids."""
    from django.apps import apps
    from django.db import connection
    from django.db.models import BigAutoField

    from ragsite.shards import IDS_OF_SHARD

    tables = set(connection.introspection.table_names()) - {"documents_embeddingspace"}
    with connection.cursor() as cursor:
        for model in apps.get_models():
            table, app = model._meta.db_table, model._meta.app_label
            if table in tables and app != "accounts" and isinstance(model._meta.pk, BigAutoField):
                cursor.execute(
                    "SELECT setval(sequence, greatest(nextval(sequence), %s))"
                    " FROM pg_get_serial_sequence(%s, 'id') AS sequence",
                    [IDS_OF_SHARD, table],
                )


def _reset_space_indexes() -> None:
    """Indexes are not flushed: drop those of a test's spaces and recreate the default."""
    from django.db import connection

    from documents.spaces import SpaceSql

    default = SpaceSql(space_id=1, dimensions=384, precision="half")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE indexname ~ '^chunk_space_[0-9]+_index$'"
            " AND indexname <> %s",
            [default.index_name],
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f'DROP INDEX "{name}"')
        cursor.execute(default.create_index())


@pytest.fixture
def media_root(settings: Any, tmp_path: Path) -> Path:
    """A temporary folder for the uploads of a test."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return Path(settings.MEDIA_ROOT)


def wait_until(condition: Callable[[], Any], *, what: str, seconds: float = 60.0) -> None:
    """Return as soon as `condition()` holds; fail the test after `seconds`, naming `what`."""
    deadline = monotonic() + seconds
    while not condition():
        if monotonic() > deadline:
            pytest.fail(f"waited {seconds:.0f} s in vain until {what}")
        Event().wait(0.02)


def free_port() -> int:
    """A port for a server that a test starts. The kernel gives it to nobody else meanwhile, as it
    lies below those of outgoing connections, nor does another test process take it."""
    first = 20_000 + 1_000 * int(_WORKER.removeprefix("gw"))
    for port in (first + next(_PORTS) % 1_000 for _ in range(1_000)):
        with suppress(OSError), socket.socket() as trial:
            trial.bind(("127.0.0.1", port))
            return port
    raise OSError(f"no port from {first} to {first + 999} is free")


class WorkerProcess:
    """A real Celery worker on the test's database and broker. `environment` may be changed
    before the next `start`."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it takes tasks as soon as it is up."""
        command = [
            *(sys.executable, "-m", "celery", "-A", "ragsite", "worker", "-B"),
            *("-Q", "ingest,embed,default", "--pool=threads", "-c", "2", "-l", "WARNING"),
            *("-s", self.environment["SCHEDULE"], "--without-gossip", "--without-mingle"),
        ]
        self._process = subprocess.Popen(
            command, cwd=_ROOT, env=self.environment, start_new_session=True
        )

    def kill(self) -> None:
        """kill -9, its scheduler with it."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def ask_to_end(self) -> None:
        """Send SIGTERM, as a supervisor does; running tasks may finish."""
        if self._process is not None:
            self._process.terminate()

    def has_ended_within(self, seconds: float) -> bool:
        """Whether it ended within `seconds`."""
        try:
            return self._process is None or self._process.wait(seconds) is not None
        except subprocess.TimeoutExpired:
            return False

    def stop(self) -> int:
        """Ask it to end, and wait; its exit code."""
        code = 0
        if self._process is not None:
            self.ask_to_end()
            code = self._process.wait(timeout=30)
            self._process = None
        return code


def database_url_of_tests(**options: str) -> str:
    """DATABASE_URL for a process that is to work with the test's database."""
    from django.conf import settings
    from django.db import connection

    base, _, query = settings.DATABASE_URL.partition("?")
    base = f"{base.rsplit('/', 1)[0]}/{connection.settings_dict['NAME']}"
    query = "&".join(filter(None, [query, *(f"{name}={each}" for name, each in options.items())]))
    return f"{base}?{query}" if query else base


@pytest.fixture
def unstarted_worker_process(
    transactional_db: None, media_root: Path, tmp_path: Path
) -> Iterator[WorkerProcess]:
    """A worker process to start. Only committed rows are seen by it, hence `transactional_db`."""
    import redis
    from django.conf import settings

    redis.Redis.from_url(settings.REDIS_URL).flushdb()
    worker = WorkerProcess(
        {
            **os.environ,
            "DATABASE_URL": database_url_of_tests(),
            "REDIS_URL": "",
            "MEDIA_ROOT": str(media_root),
            "SCHEDULE": str(tmp_path / "beat"),
            "RAGSITE_INGESTION_LEASE_SECONDS": "1",
            # A busy machine may take the living for dead.
            "RAGSITE_INGESTION_MAX_ATTEMPTS": "50",
            "RAGSITE_RECOVERY_SECONDS": "0.5",
        }
    )
    yield worker
    worker.stop()


@pytest.fixture
def celery_worker_process(unstarted_worker_process: WorkerProcess) -> WorkerProcess:
    """The same, started."""
    unstarted_worker_process.start()
    return unstarted_worker_process
