"""Shared by the embedded servers: paths and URLs, account and permissions, processes, probes.

Begin with `Service`.
"""

import contextlib
import hashlib
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from common.errors import ExplainedError


class ServiceError(ExplainedError):
    """An embedded service failed; the message names the cure."""


DATABASE_USER = "ragsite"
DATABASE_NAME = "ragsite"
POSTGRES_PORT = 5432  # names the socket file; nothing listens on TCP

# The kernel's limit is 108 bytes on Linux and 104 on macOS; servers want room for a suffix.
_LONGEST_SOCKET_PATH = 100
# libpq splits hosts at commas, and several URL parsers decode more or less often than once.
_PLAIN_PATH = re.compile(r"[\w/.+@~ -]+")
# Not tempfile.gettempdir(): TMPDIR may differ between the shell and cron, and may itself be long.
_SHORT_ROOT = Path("/tmp")  # noqa: S108 - the directory is made private and its owner is checked


def socket_dir(var_dir: Path) -> Path:
    """Directory of both sockets: `var_dir/run`, or a short one in /tmp named by var_dir's hash."""
    var_dir = var_dir.resolve()
    beside = var_dir / "run"
    longest = beside / f".s.PGSQL.{POSTGRES_PORT}"
    if len(os.fsencode(longest)) < _LONGEST_SOCKET_PATH and _PLAIN_PATH.fullmatch(str(beside)):
        return beside
    return _SHORT_ROOT / f"ragsite-{hashlib.sha256(os.fsencode(var_dir)).hexdigest()[:16]}"


def postgres_socket(var_dir: Path) -> Path:
    return socket_dir(var_dir) / f".s.PGSQL.{POSTGRES_PORT}"


def valkey_socket(var_dir: Path) -> Path:
    return socket_dir(var_dir) / "valkey.sock"


def database_url(var_dir: Path, name: str = DATABASE_NAME) -> str:
    """URL for django-environ, which takes a socket's directory from the path, not from the host."""
    host = quote(str(socket_dir(var_dir)))
    return f"postgresql://{DATABASE_USER}@:{POSTGRES_PORT}/{host}/{quote(name, safe='')}"


def libpq_url(var_dir: Path, name: str = DATABASE_NAME) -> str:
    """URL for libpq's programs and psycopg, which take the directory percent-encoded as host."""
    host = quote(str(socket_dir(var_dir)), safe="")
    return f"postgresql://{DATABASE_USER}@{host}:{POSTGRES_PORT}/{quote(name, safe='')}"


def redis_url(var_dir: Path, db: int = 0) -> str:
    """URL for redis-py and Django's cache."""
    return f"unix://{quote(str(valkey_socket(var_dir)))}?db={db}"


def broker_url(var_dir: Path, db: int = 0) -> str:
    """URL for Celery, whose kombu spells the same socket another way."""
    return f"redis+socket://{quote(str(valkey_socket(var_dir)))}?virtual_host={db}"


START_SECONDS = 60.0
STOP_SECONDS = 60.0
_POLL_SECONDS = 0.05
_LOG_LINES = 15
_LOG_BYTES = 10 * 1024 * 1024
_DISK_BYTES = 100 * 1024 * 1024


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether `condition` became true within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def rotate_log(log: Path) -> None:
    """Rename a log that has grown large, replacing the previous one."""
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))


def failure(what: str, *, home: Path, log: Path | None = None, output: str = "") -> ServiceError:
    """The error for `what`, with the last lines of output or log, and a cure."""
    if log is not None and log.exists():
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            output += file.read().decode(errors="replace")
    lines = [line for line in output.splitlines() if line.strip()][-_LOG_LINES:]
    message = "\n  ".join([f"{what}.", *lines])
    full = "No space left on device" in message or shutil.disk_usage(home).free < _DISK_BYTES
    if full:
        message += (
            f"\nThe disk that holds {home} is full: free at least 500 MB there, or set "
            "RAGSITE_VAR_DIR to a directory on another disk, and start again."
        )
    elif log is not None:
        message += f"\nThe whole log is {log}."
    return ServiceError(message)


SYSTEM_ACCOUNT = "ragsite-postgres"
_OWN_SERVERS = "set DATABASE_URL and REDIS_URL to servers of your own"


#: Its files, and those of the site's data directory, may be opened to the servers' account.
_PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class ServerUser:
    """The account that owns the data and runs the servers. It may be let into the directories
    `own` and all below, and into any other with `chmod_parents`."""

    uid: int
    gid: int
    name: str
    own: tuple[Path, ...] = ()
    chmod_parents: bool = False

    @property
    def is_other(self) -> bool:
        return self.uid != os.geteuid()

    def may_be_let_into(self, path: Path) -> bool:
        return self.chmod_parents or any(path.is_relative_to(each) for each in self.own)

    def run(self, *command: str | Path, cwd: Path = Path("/")) -> subprocess.CompletedProcess[str]:
        """Run a program as this user, in a session and with an environment of its own."""
        options: dict[str, Any] = {}
        if self.is_other:
            options = {"user": self.uid, "group": self.gid, "extra_groups": []}
        # No PGDATA, PGPORT, LC_ALL ... of the caller: the servers are the same whoever starts them.
        environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
        try:
            return subprocess.run(  # noqa: S603 - our own programs
                [str(word) for word in command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=False,
                cwd=cwd,
                umask=0o077,
                start_new_session=True,
                **options,
            )
        except OSError as error:
            raise ServiceError(
                f"Cannot run {command[0]} as {self.name}: {error.strerror}. Run `make setup` "
                f"again, start as an ordinary user, or {_OWN_SERVERS}."
            ) from error


def server_user(var_dir: Path, *, chmod_parents: bool = False) -> ServerUser:
    """The caller; for root the account that owns the data already, or else the system account."""

    def user(entry: pwd.struct_passwd) -> ServerUser:
        own = (_PROJECT, var_dir.resolve())
        return ServerUser(entry.pw_uid, entry.pw_gid, entry.pw_name, own, chmod_parents)

    if os.geteuid() != 0:
        try:
            return user(pwd.getpwuid(os.geteuid()))
        except KeyError:
            raise ServiceError(
                f"User {os.geteuid()} has no entry in /etc/passwd, which PostgreSQL wants. "
                f"Add one, run as another user, or {_OWN_SERVERS}."
            ) from None
    home = var_dir / "postgres"
    owner = (home if home.exists() else var_dir).stat().st_uid
    if owner != 0:
        try:
            return user(pwd.getpwuid(owner))
        except KeyError:
            pass  # a directory of another machine's user: the system account is told below
    return user(_system_account())


def _system_account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(SYSTEM_ACCOUNT)
    except KeyError:
        pass
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    said = "there is no useradd"
    if useradd:
        command = [useradd, "--system", "--user-group", "--no-create-home"]
        command += ["--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", SYSTEM_ACCOUNT]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        said = done.stderr.strip()
    try:
        return pwd.getpwnam(SYSTEM_ACCOUNT)  # also when another start made it meanwhile
    except KeyError:
        raise ServiceError(
            f"PostgreSQL does not run as root, and the account {SYSTEM_ACCOUNT} could not be made "
            f"({said}). Make a system account of that name, start as an ordinary user, "
            f"or {_OWN_SERVERS}."
        ) from None


def private_dir(path: Path, user: ServerUser) -> None:
    """Create `path`, readable by `user` alone.

    Raises ServiceError where another user owns it, or it is no directory.
    """
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise ServiceError(
            f"Cannot make {path}: {error.strerror}. Make {path.parent} writable, "
            "or set RAGSITE_VAR_DIR to a directory of your own."
        ) from error
    if user.is_other and path.lstat().st_uid == os.geteuid():
        os.chown(path, user.uid, user.gid, follow_symlinks=False)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user.uid:
        raise ServiceError(
            f"{path} is not a directory of {user.name}. Start the services as its owner, "
            "remove it, or set RAGSITE_VAR_DIR to a directory of your own."
        )
    if stat.S_IMODE(found.st_mode) != 0o700:
        path.chmod(0o700)


def write_private(path: Path, text: str, user: ServerUser) -> None:
    """Write a file of `user` alone, atomically, without following links."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(temporary, flags, 0o600), "w") as file:
        file.write(text)
        if user.is_other:
            os.fchown(file.fileno(), user.uid, user.gid)
    temporary.replace(path)


def allow_traversal(path: Path, user: ServerUser) -> None:
    """Allow `user` to traverse the directories above `path`; changes are reported on stderr.

    Traversal does not list a directory's content. Raises ServiceError, and changes nothing, where a
    closed directory is neither of the project nor of its data.
    """
    if not user.is_other:
        return
    closed = {}
    for parent in reversed(path.resolve().parents):
        found = parent.stat()
        passable = stat.S_IXUSR if found.st_uid == user.uid else stat.S_IXOTH
        if not found.st_mode & passable:
            closed[parent] = passable
    _refuse_foreign(list(closed), user, "chmod o+x")
    for parent, passable in closed.items():
        _add_permissions(parent, passable, user)
        _print_change(
            f"{user.name}, which runs the embedded servers, may now pass through {parent}"
        )


def allow_software(directory: Path, user: ServerUser) -> None:
    """Allow `user` to run a wheel's files, where a strict umask at `pip install` prevented it."""
    if not user.is_other:
        return
    allow_traversal(directory, user)
    closed = {}
    for path in (directory, *directory.rglob("*")):
        mode = path.stat().st_mode
        needed = stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
        if mode & needed != needed:
            closed[path] = needed
    if closed:
        _refuse_foreign([directory], user, "chmod -R o+rX")
        for path, needed in closed.items():
            _add_permissions(path, needed, user)
        _print_change(
            f"{user.name} may now read {len(closed)} files of the installed package {directory}"
        )


def _refuse_foreign(closed: list[Path], user: ServerUser, command: str) -> None:
    """Raise ServiceError for closed directories that this start may not open."""
    foreign = " ".join(shlex.quote(str(each)) for each in closed if not user.may_be_let_into(each))
    if foreign:
        raise ServiceError(
            f"{user.name}, which runs the embedded servers, cannot reach {foreign}. Run"
            f" `{command} {foreign}`, or have each start do so with RAGSITE_CHMOD_PARENTS=true."
            f" Or move the project elsewhere, start as an ordinary user, or {_OWN_SERVERS}."
        )


def _add_permissions(path: Path, more: int, user: ServerUser) -> None:
    try:
        path.chmod(stat.S_IMODE(path.stat().st_mode) | more)
    except OSError as error:
        raise ServiceError(
            f"{user.name}, which runs the embedded servers, cannot reach {path} "
            f"({error.strerror}). Run `chmod o+x {path}`, or move the project elsewhere."
        ) from error


def _print_change(what: str) -> None:
    print(f"ragsite: {what}", file=sys.stderr)  # noqa: T201 - the one who starts must see it


_ORPHAN_SECONDS = 10.0


def running_in(directory: Path, name: str) -> list[int]:
    """Pids of the live processes called `name` whose working directory is `directory`."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - not on the fast path

    try:
        wanted = directory.stat()
    except OSError:
        return []
    found = []
    for process in psutil.process_iter(["name"]):
        if process.info["name"] != name:
            continue
        with contextlib.suppress(psutil.Error, OSError):
            # Zombies and other people's processes have no directory that we can read.
            if os.path.samestat(Path(process.cwd()).stat(), wanted):
                found.append(process.pid)
    return found


def exists(pid: int) -> bool:
    """Whether a process with this pid exists, including zombies and other users'."""
    import psutil  # noqa: PLC0415

    return bool(psutil.pid_exists(pid))


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    import psutil  # noqa: PLC0415

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def terminate(pid: int, how: signal.Signals) -> None:
    """Send the signal; a missing process is ignored."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)


def end_orphans(directory: Path, name: str) -> None:
    """Wait for processes whose parent server was killed, then end those that remain.

    A new server beside a backend of the old one would corrupt the data.
    """
    if wait_until(lambda: not running_in(directory, name), _ORPHAN_SECONDS):
        return
    for pid in running_in(directory, name):
        terminate(pid, signal.SIGKILL)
    wait_until(lambda: not running_in(directory, name), _ORPHAN_SECONDS)


_TIMEOUT_SECONDS = 5.0
_PROTOCOL_3_0 = 196608
NO_SUCH_DATABASE = "3D000"
TOO_MANY_CONNECTIONS = "53300"
#: The server starts, recovers from a crash, or shuts down.
CANNOT_CONNECT_NOW = "57P03"


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """`state` is "ready", "down", or the server's own error code."""

    state: str
    version: str | None = None

    @property
    def serving(self) -> bool:
        return self.state in ("ready", TOO_MANY_CONNECTIONS)


DOWN = ProbeAnswer("down")


def probe_postgres(path: Path, database: str) -> ProbeAnswer:
    """Log in to `database` and run `SELECT 1`; a refusal gives its SQLSTATE as state.

    Protocol: PostgreSQL's manual, "Message Formats", version 3.0.
    """
    words = ("user", DATABASE_USER, "database", database, "")
    startup = _PROTOCOL_3_0.to_bytes(4, "big") + b"".join(w.encode() + b"\0" for w in words)
    try:
        with _connect(path) as connection, connection.makefile("rwb") as stream:
            stream.write((len(startup) + 4).to_bytes(4, "big") + startup)
            stream.flush()
            version = None
            while len(header := stream.read(5)) == 5:
                kind, body = header[:1], stream.read(int.from_bytes(header[1:], "big") - 4)
                if kind == b"S" and body.startswith(b"server_version\0"):
                    version = body.split(b"\0")[1].decode()
                elif kind == b"Z":
                    stream.write(_message(b"Q", b"SELECT 1\0"))
                    stream.flush()
                elif kind == b"D":
                    stream.write(_message(b"X", b""))
                    return ProbeAnswer("ready", version)
                elif kind == b"E":
                    fields = {part[:1]: part[1:] for part in body.split(b"\0")}
                    return ProbeAnswer(fields.get(b"C", b"error").decode(errors="replace"))
    except (OSError, IndexError):
        pass
    return DOWN


def probe_valkey(path: Path) -> ProbeAnswer:
    """Ask for the server's own description; a refusal gives its first word as state."""
    try:
        with _connect(path) as connection, connection.makefile("rwb") as stream:
            stream.write(b"INFO server\r\n")
            stream.flush()
            reply = stream.readline()
            if reply.startswith(b"-"):
                return ProbeAnswer(reply[1:].split()[0].decode())
            lines = stream.read(int(reply[1:])).decode().splitlines()
    except (OSError, ValueError, IndexError):
        return DOWN
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    return ProbeAnswer("ready", facts.get("valkey_version") or facts.get("redis_version"))


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_TIMEOUT_SECONDS)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """Current state of one service. `detail` is for people: "started", "not running" and
    the like.
    """

    name: str
    running: bool
    pid: int | None
    version: str | None
    endpoint: str
    detail: str


class Service(ABC):
    """A server whose data lies under `var_dir`. Start and stop are called under one lock."""

    name: ClassVar[str]
    folder: ClassVar[str]
    log_name = "server.log"

    def __init__(self, var_dir: Path) -> None:
        self.var_dir = var_dir
        self.sockets = socket_dir(var_dir)

    @property
    def home(self) -> Path:
        """The directory of the server's data and log."""
        return self.var_dir.resolve() / self.folder

    @property
    @abstractmethod
    def endpoint(self) -> str:
        """The URL that a person would connect to."""

    @abstractmethod
    def start(self, user: ServerUser, *, durable: bool) -> ServiceStatus:
        """Start the server unless it answers, and wait until it does."""

    @abstractmethod
    def stop(self) -> ServiceStatus:
        """Stop the server so that nothing is lost."""

    @abstractmethod
    def process(self) -> int | None:
        """The pid of the server, if a process runs in our directory."""

    @abstractmethod
    def _ask(self) -> ProbeAnswer:
        """Probe the server over its socket."""

    @property
    def log(self) -> Path:
        return self.home / self.log_name

    def make_folders(self, user: ServerUser) -> None:
        """Make the folders of data and sockets, for `user` alone."""
        for folder in (self.home, self.sockets):
            allow_traversal(folder, user)
            private_dir(folder, user)

    def answer(self) -> ProbeAnswer:
        """The server's answer; a socket owned by another user is not trusted."""
        try:
            sockets, home = self.sockets.lstat(), self.home.stat()
        except OSError:
            return DOWN
        private = sockets.st_uid == home.st_uid and not sockets.st_mode & 0o077
        return self._ask() if private else DOWN

    def status(self, detail: str = "running") -> ServiceStatus:
        """Current state; `detail` describes a running server."""
        answer = self.answer()
        pid = self.process()
        if not answer.serving:
            detail = "not running"
            if pid is not None:
                detail = f"process {pid} does not answer ({answer.state})"
            elif self.sockets.exists() and not os.access(self.sockets, os.X_OK):
                detail = f"{self.sockets} belongs to another user: ask as {self.sockets.owner()}"
        return ServiceStatus(self.name, answer.serving, pid, answer.version, self.endpoint, detail)
