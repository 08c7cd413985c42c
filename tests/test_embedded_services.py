"""The embedded servers: real ones, killed, raced, moved and misled."""

import multiprocessing
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from ragsite import embedded
from ragsite.embedded import postgres as embedded_postgres
from ragsite.embedded import service as embedded_service
from ragsite.embedded.service import ServiceError, is_running, private_dir, server_user
from tests.instances import instance_dir

REPOSITORY = Path(__file__).resolve().parent.parent
ROOT = os.geteuid() == 0
NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def make_var_dir() -> Iterator[Callable[..., Path]]:
    with ExitStack() as stack:
        yield lambda name="var": stack.enter_context(instance_dir(name))


@pytest.fixture
def var_dir(make_var_dir: Callable[..., Path]) -> Path:
    return make_var_dir()


@pytest.fixture(scope="module")
def running() -> Iterator[Path]:
    """Servers for tests that leave them as they are; beside them what they left when stopped."""
    with instance_dir() as path:
        start(path)
        embedded.stop(path)
        (path / "postgres/server.log").unlink()
        subprocess.run(["cp", "-a", path, path.with_name("stopped")], check=True)
        start(path)
        yield path


@pytest.fixture
def stopped(running: Path, var_dir: Path) -> Path:
    """Servers of the test's own, which ran before: initdb takes most of a start."""
    subprocess.run(["cp", "-a", running.with_name("stopped"), var_dir], check=True)
    return var_dir


def start(var_dir: Path) -> dict[str, int]:
    """Start for a test; gives the pids by name."""
    return {s.name: pid_of(s) for s in embedded.start(var_dir, durable=False)}


def pid_of(status: embedded.ServiceStatus) -> int:
    assert status.running, status
    assert status.pid, status
    return status.pid


def query(var_dir: Path, statement: str, database: str = "ragsite") -> object:
    with psycopg.connect(embedded.libpq_url(var_dir, database), autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None


def queue(var_dir: Path) -> redis.Redis:
    return redis.Redis.from_url(embedded.redis_url(var_dir))


def kill(pid: int) -> None:
    process = psutil.Process(pid)
    process.kill()
    process.wait(10)


def start_elsewhere(var_dir: Path, **environment: str) -> subprocess.Popen[str]:
    """Start in a process of its own; it prints the pids."""
    code = (
        "import sys; from pathlib import Path; from ragsite import embedded;"
        "print(*[s.pid for s in embedded.start(Path(sys.argv[1]), durable=False)])"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(var_dir)],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return said


@pytest.mark.nightly
def test_started_twice_they_are_the_same_servers(var_dir: Path) -> None:
    first = embedded.start(var_dir, durable=False)
    second = embedded.start(var_dir, durable=False)
    assert [s.detail for s in first] == ["started", "started"]
    assert [s.detail for s in second] == ["already running", "already running"]
    assert [s.pid for s in first] == [s.pid for s in second]
    assert [s.name for s in first] == ["postgresql", "valkey"]
    assert str(first[0].version).startswith("18.")


def test_they_listen_on_private_unix_sockets_only(running: Path) -> None:
    for pid in start(running).values():
        assert psutil.Process(pid).net_connections("inet") == []
    sockets = embedded.socket_dir(running)
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700


@pytest.mark.nightly
def test_only_the_service_asked_for_is_started(var_dir: Path) -> None:
    embedded.start(var_dir, only=["valkey"])
    assert embedded.answering(var_dir, only=["valkey"])
    assert not embedded.answering(var_dir)
    assert [s.running for s in embedded.status(var_dir)] == [False, True]


@pytest.mark.nightly
def test_status_of_what_never_ran_changes_nothing(var_dir: Path) -> None:
    assert [s.detail for s in embedded.status(var_dir)] == ["not running", "not running"]
    assert [s.running for s in embedded.stop(var_dir)] == [False, False]
    assert not var_dir.exists()


@pytest.mark.nightly
def test_stopped_they_are_gone_and_come_back_with_everything(stopped: Path) -> None:
    pids = start(stopped)
    query(stopped, "CREATE TABLE kept AS SELECT 42 AS answer")
    assert not any(s.running for s in embedded.stop(stopped))
    assert not any(is_running(pid) for pid in pids.values())
    start(stopped)
    assert query(stopped, "SELECT answer FROM kept") == 42


@pytest.mark.nightly
def test_they_outlive_the_process_that_started_them(stopped: Path) -> None:
    starter = start_elsewhere(stopped)
    pids = [int(pid) for pid in output(starter).split()]
    assert embedded.answering(stopped)
    for pid in pids:
        assert os.getsid(pid) not in (starter.pid, os.getsid(0))


@pytest.mark.nightly
def test_the_starters_environment_does_not_reach_them(var_dir: Path) -> None:
    output(start_elsewhere(var_dir, LANG="de_DE.ISO-8859-1", LC_ALL="POSIX", PGPORT="6543"))
    assert query(var_dir, "SHOW server_encoding") == "UTF8"
    assert query(var_dir, "SELECT lower('ÄÖÜ ÉÑ ŁŻ ЖЮ ΣΩ')") == "äöü éñ łż жю σω"
    assert query(var_dir, "SELECT to_tsvector('german', '«ÄPFEL»—Straßen') @@ 'apfel & strass'")
    assert query(var_dir, "SELECT similarity('ÄPFEL', 'äpfel')") == 1
    assert query(var_dir, "SELECT 'ŁÓDŹ' ILIKE 'łódź'")
    assert (
        query(var_dir, "SELECT string_agg(w, '' ORDER BY w) FROM unnest('{b,a,ä,Z}'::text[]) w")
        == "Zabä"
    )


@pytest.mark.nightly
def test_every_new_database_has_the_extensions(running: Path) -> None:
    start(running)
    query(running, "CREATE DATABASE another")
    names = "'{vector,pg_trgm,unaccent,btree_gin}'"
    count = f"SELECT count(*) FROM pg_extension WHERE extname = ANY({names})"
    assert query(running, count) == query(running, count, "another") == 4
    assert query(running, "SELECT '[1,2]'::vector <-> '[1,4]'", "another") == 2


def test_killed_servers_come_back_with_every_row_and_task(stopped: Path) -> None:
    pids = {s.name: pid_of(s) for s in embedded.start(stopped)}
    query(stopped, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    queue(stopped).rpush("ingest", *range(1000))
    working = psycopg.connect(embedded.libpq_url(stopped))
    working.execute("INSERT INTO kept SELECT 0")
    for pid in pids.values():
        kill(pid)
    assert [s.running for s in embedded.status(stopped)] == [False, False]
    again = {s.name: pid_of(s) for s in embedded.start(stopped)}
    working.close()
    assert again.keys() == pids.keys()
    assert not set(again.values()) & set(pids.values())
    assert query(stopped, "SELECT count(*) FROM kept") == 1000
    assert queue(stopped).llen("ingest") == 1000


@pytest.mark.nightly
def test_a_pid_file_that_names_another_process_is_not_believed(stopped: Path) -> None:
    kill(start(stopped)["postgresql"])
    user = server_user(stopped)
    # PostgreSQL overlooks pids that it may not signal, so the bystander is of its own account.
    bystander = subprocess.Popen(["sleep", "600"], user=user.uid if user.is_other else None)
    try:
        files = [stopped / "postgres/data/postmaster.pid"]
        files += embedded.socket_dir(stopped).glob(".s.PGSQL.*.lock")
        for file in files:
            lines = file.read_text().splitlines()
            file.write_text("\n".join([str(bystander.pid), *lines[1:]]) + "\n")
        assert len(files) == 2
        postgres = embedded.status(stopped)[0]
        assert (postgres.running, postgres.pid) == (False, None)
        embedded.stop(stopped)
        assert start(stopped)["postgresql"] != bystander.pid
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_two_starts_at_once_make_one_server(var_dir: Path) -> None:
    starters = [start_elsewhere(var_dir) for _ in range(3)]
    assert len({output(starter) for starter in starters}) == 1
    data = var_dir / "postgres/data"
    assert int((data / "postmaster.pid").read_text().split()[0]) == start(var_dir)["postgresql"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["x" * 100, 'a,b 100% quote\'d "$(name)`" Ünï + @'])
def test_any_directory_will_do(make_var_dir: Callable[..., Path], name: str) -> None:
    from environ import Env
    from kombu import Connection

    var_dir = make_var_dir(name)
    start(var_dir)
    settings = Env().db_url_config(embedded.database_url(var_dir))
    with psycopg.connect(
        host=settings["HOST"], port=settings["PORT"], user=settings["USER"], dbname=settings["NAME"]
    ):
        assert query(var_dir, "SHOW data_directory") == str(var_dir / "postgres/data")
    queue(var_dir).set("found", 1)
    with Connection(embedded.broker_url(var_dir)) as broker:
        assert broker.default_channel.client.get("found") == b"1"


@pytest.mark.nightly
def test_another_instance_is_left_alone(stopped: Path, running: Path) -> None:
    my_pids, other_pids = start(stopped), start(running)
    kill(my_pids["postgresql"])
    start(stopped)
    embedded.stop(stopped)
    assert start(running) == other_pids
    assert embedded.answering(running)
    assert not embedded.answering(stopped)


@pytest.mark.nightly
def test_a_start_cut_off_in_initdb_is_made_good(var_dir: Path) -> None:
    user = server_user(REPOSITORY)
    var_dir.mkdir()
    private_dir(var_dir / "postgres", user)
    private_dir(var_dir / "postgres/data.unfinished", user)
    (var_dir / "postgres/data.unfinished/PG_VERSION").write_text("18\n")
    start(var_dir)
    assert embedded.answering(var_dir)


@pytest.mark.nightly
def test_a_start_cut_off_before_the_database_was_made_is_made_good(running: Path) -> None:
    pids = start(running)
    query(running, "DROP DATABASE ragsite", "postgres")
    assert not embedded.answering(running)
    assert start(running) == pids
    assert query(running, "SELECT '[1]'::vector::text") == "[1]"


@pytest.mark.nightly
def test_servers_whose_sockets_a_cleaner_removed_are_restarted(stopped: Path) -> None:
    start(stopped)
    query(stopped, "CREATE TABLE kept AS SELECT 42 AS answer")
    shutil.rmtree(embedded.socket_dir(stopped))
    assert "does not answer" in embedded.status(stopped)[0].detail
    start(stopped)
    assert query(stopped, "SELECT answer FROM kept") == 42
    assert queue(stopped).ping()


@pytest.mark.nightly
def test_a_server_that_recovers_from_a_crash_is_waited_for_and_not_stopped(stopped: Path) -> None:
    pid = pid_of(embedded.start(stopped)[0])
    for _ in range(3):
        query(stopped, "DROP TABLE IF EXISTS busy")
        query(stopped, "CREATE TABLE busy AS SELECT generate_series(1, 200000) AS n")
        with psycopg.connect(embedded.libpq_url(stopped)) as connection:
            kill(connection.info.backend_pid)
        assert start(stopped)["postgresql"] == pid
        assert query(stopped, "SELECT count(*) FROM busy") == 200_000
    log = (stopped / "postgres/server.log").read_text()
    assert "automatic recovery in progress" in log
    assert "shutdown request" not in log


@pytest.mark.nightly
def test_a_server_that_is_still_starting_is_waited_for(stopped: Path) -> None:
    pid = pid_of(embedded.start(stopped)[0])
    query(stopped, "CREATE TABLE busy AS SELECT generate_series(1, 200000) AS n")
    kill(pid)
    user, data = server_user(stopped), stopped / "postgres/data"
    pg_ctl = embedded_postgres.postgres_software() / "bin/pg_ctl"
    embedded_service.wait_until(lambda: not embedded.status(stopped)[0].pid, 10)
    done = user.run(pg_ctl, "start", "--no-wait", "-D", data, "-l", stopped / "postgres/server.log")
    assert done.returncode == 0, done.stdout
    start(stopped)
    assert query(stopped, "SELECT count(*) FROM busy") == 200_000


@pytest.mark.nightly
def test_durability_follows_the_last_start(stopped: Path) -> None:
    start(stopped)
    assert query(stopped, "SHOW fsync") == "off"
    assert queue(stopped).config_get("appendonly") == {"appendonly": "no"}
    embedded.stop(stopped)
    embedded.start(stopped)
    assert query(stopped, "SHOW fsync") == "on"
    assert query(stopped, "SHOW synchronous_commit") == "on"
    assert queue(stopped).config_get("appendonly") == {"appendonly": "yes"}


def test_the_buffers_of_the_database_grow_with_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 32 * 2**30 // 4096}
    monkeypatch.setattr(embedded_postgres.os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(embedded_postgres, "_CGROUP_LIMITS", ())
    user = server_user(tmp_path)
    table = tmp_path / "base" / "5" / "16384"
    table.parent.mkdir(parents=True)
    chosen = []
    for size in (0, 100, 600, 5000):
        with table.open("wb") as file:
            file.truncate(size * 2**20)
        embedded_postgres.configure_cluster(tmp_path, tmp_path, user, durable=True)
        text = (tmp_path / "ragsite.conf").read_text()
        chosen.append(text.partition("shared_buffers = '")[2].partition("'")[0])
    assert chosen == ["1024MB", "1024MB", "2400MB", "4096MB"]


@pytest.mark.nightly
def test_data_of_another_major_version_is_refused_with_the_way_out(stopped: Path) -> None:
    (stopped / "postgres/data/PG_VERSION").write_text("17\n")
    with pytest.raises(ServiceError, match=r"PostgreSQL 17.*pg_dump"):
        start(stopped)


@pytest.mark.nightly
def test_a_server_that_will_not_start_shows_its_last_words(stopped: Path) -> None:
    with (stopped / "postgres/data/postgresql.auto.conf").open("a") as file:
        file.write("shared_buffers = 'plenty'\n")
    with pytest.raises(ServiceError, match=r"(?s)did not start.*shared_buffers.*server\.log"):
        start(stopped)


@pytest.mark.nightly
def test_a_full_disk_is_named_with_the_cure(tmp_path: Path) -> None:
    error = embedded_service.failure(
        "initdb failed", home=tmp_path, output="No space left on device"
    )
    assert "RAGSITE_VAR_DIR" in str(error)
    assert str(tmp_path) in str(error)


@pytest.mark.nightly
def test_a_missing_program_is_named_with_the_cure(
    var_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(REPOSITORY)])
    with pytest.raises(ServiceError, match=r"wheel is not installed\. Run `make setup`"):
        start(var_dir)


@pytest.mark.nightly
def test_a_directory_that_cannot_be_written_is_named_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ServiceError, match="RAGSITE_VAR_DIR"):
        start(tmp_path / "file" / "var")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=90))
def test_socket_paths_are_short_and_deterministic(name: str) -> None:
    var_dir = Path("/srv") / name
    sockets = embedded.socket_dir(var_dir)
    assert len(os.fsencode(sockets / ".s.PGSQL.5432")) < 100
    assert sockets == embedded.socket_dir(var_dir.resolve())
    assert "," not in str(sockets)


# --- accounts ----------------------------------------------------------------------------------

needs_root = pytest.mark.skipif(not ROOT, reason="only root can act as another user")


def as_nobody(work: Callable[[], list[embedded.ServiceStatus]]) -> list[embedded.ServiceStatus]:
    """Run `work` in a process of an ordinary user."""

    def become_nobody_and_work(answers: "multiprocessing.SimpleQueue[object]") -> None:
        os.setgroups([])
        os.setgid(NOBODY.pw_gid)
        os.setuid(NOBODY.pw_uid)
        try:
            answers.put(work())
        except ServiceError as error:
            answers.put(error)

    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    process = context.Process(target=become_nobody_and_work, args=(answers,))
    process.start()
    answer = answers.get()
    process.join()
    if isinstance(answer, ServiceError):
        raise answer
    return answer


@pytest.mark.nightly
@needs_root
def test_root_runs_them_as_a_system_account_and_gets_in(running: Path) -> None:
    for pid in start(running).values():
        assert psutil.Process(pid).username() == "ragsite-postgres"
    assert query(running, "SELECT 1") == 1


@pytest.mark.nightly
@needs_root
def test_an_ordinary_user_runs_them_as_himself(var_dir: Path) -> None:
    var_dir.mkdir()
    os.chown(var_dir, NOBODY.pw_uid, NOBODY.pw_gid)
    started = as_nobody(lambda: embedded.start(var_dir, durable=False))
    for service in started:
        assert psutil.Process(pid_of(service)).username() == "nobody"
    stopped = as_nobody(lambda: embedded.stop(var_dir))
    assert [s.running for s in stopped] == [False, False]


@pytest.mark.nightly
@needs_root
def test_what_root_starts_in_a_users_directory_stays_the_users(var_dir: Path) -> None:
    var_dir.mkdir()
    os.chown(var_dir, NOBODY.pw_uid, NOBODY.pw_gid)
    pids = start(var_dir)
    found = as_nobody(lambda: embedded.start(var_dir))
    assert [(s.detail, s.pid) for s in found] == [
        ("already running", pids["postgresql"]),
        ("already running", pids["valkey"]),
    ]


@pytest.mark.nightly
@needs_root
def test_another_user_is_told_whose_they_are(running: Path) -> None:
    start(running)
    with pytest.raises(ServiceError, match="Run as the user who owns it"):
        as_nobody(lambda: embedded.start(running))
    details = [s.detail for s in as_nobody(lambda: embedded.status(running))]
    assert all("belongs to another user" in detail for detail in details)


@pytest.mark.nightly
@needs_root
def test_a_closed_directory_in_the_way_is_opened_only_where_that_is_asked_for(
    stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped.parent.chmod(0o700)
    stopped.chmod(0o700)
    with pytest.raises(ServiceError, match=rf"`chmod o\+x {stopped.parent}`.*CHMOD_PARENTS=true"):
        start(stopped)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (stopped.parent, stopped)] == [0o700] * 2
    embedded.start(stopped, durable=False, chmod_parents=True)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (stopped.parent, stopped)] == [0o701] * 2
    assert f"may now pass through {stopped.parent}" in capsys.readouterr().err


@pytest.mark.nightly
@needs_root
def test_the_data_directory_is_opened_unasked(stopped: Path) -> None:
    stopped.chmod(0o700)
    start(stopped)
    assert stat.S_IMODE(stopped.stat().st_mode) == 0o701


@needs_root
def test_software_outside_of_the_project_is_opened_only_where_that_is_asked_for(
    var_dir: Path,
) -> None:
    package = var_dir.parent / "package"
    package.mkdir()
    program = package / "program"
    program.touch(mode=0o700)
    var_dir.mkdir()
    with pytest.raises(ServiceError, match=rf"`chmod -R o\+rX {package}`"):
        embedded_service.allow_software(package, server_user(var_dir))
    assert stat.S_IMODE(program.stat().st_mode) == 0o700
    embedded_service.allow_software(package, server_user(var_dir, chmod_parents=True))
    assert stat.S_IMODE(program.stat().st_mode) == 0o705


@needs_root
def test_a_short_socket_directory_laid_by_another_user_is_refused(
    make_var_dir: Callable[..., Path],
) -> None:
    var_dir = make_var_dir("x" * 100)
    trap = embedded.socket_dir(var_dir)
    trap.mkdir()
    os.chown(trap, NOBODY.pw_uid, NOBODY.pw_gid)
    with pytest.raises(ServiceError, match="is not a directory of ragsite-postgres"):
        start(var_dir)


@pytest.mark.nightly
def test_signals_to_the_starters_group_do_not_reach_them(running: Path) -> None:
    start(running)
    mine = os.getpgid(0)
    for status in embedded.status(running):
        assert os.getpgid(pid_of(status)) != mine
        os.kill(pid_of(status), signal.SIGHUP)
    assert embedded.answering(running)
