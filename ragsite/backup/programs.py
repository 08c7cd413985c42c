"""PostgreSQL's own programs: which of them fit a server, and running them."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from ragsite.backup.errors import BackupError
from ragsite.backup.server import Server
from ragsite.embedded import ServiceError, cluster

_DEBIAN = Path("/usr/lib/postgresql")
_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
_LINES = 8


@dataclass(frozen=True, slots=True)
class Program:
    """One of them. `version` is what it says of itself, such as `18.6`."""

    path: Path
    major: int
    version: str


def program_for(name: str, *, major: int) -> Program:
    """The program `name` of the server's own major version, else the next newer one: an older one
    cannot read the server, a newer one may say what it does not know. Raises BackupError."""
    found = [program for path in _candidates(name) if (program := _asked(path))]
    fitting = sorted((program.major, n) for n, program in enumerate(found))
    for version, n in fitting:
        if version >= major:
            return found[n]
    newest = f"the newest here is {found[fitting[-1][1]].version}" if found else "none is here"
    raise BackupError(
        f"The server is PostgreSQL {major}, and {name} {major} or newer is wanted: {newest}."
        f" Install the client programs of PostgreSQL {major} (Debian: postgresql-client-{major})"
        " and have them on PATH."
    )


def _candidates(name: str) -> Iterator[Path]:
    with suppress(ServiceError):  # the wheel is for who has no server
        yield cluster.software() / "bin" / name
    if on_path := shutil.which(name):
        yield Path(on_path)
    yield from sorted(_DEBIAN.glob(f"*/bin/{name}"))


def _asked(path: Path) -> Program | None:
    try:
        done = subprocess.run(  # noqa: S603 - PostgreSQL's own
            [path, "--version"], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stdout)
    if match is None:
        return None
    return Program(path, int(match[1]), done.stdout.split("(PostgreSQL)")[1].split()[0])


def _reason(lines: Sequence[str]) -> str:
    """What went wrong, without the statement that it went wrong with."""
    errors = [n for n, line in enumerate(lines) if "error:" in line]
    told = lines[errors[0] :] if errors else lines[-_LINES:]
    return "\n  ".join(takewhile(lambda line: not line.startswith("Command was:"), told[:_LINES]))


@contextmanager
def running(program: Program, words: Sequence[str | Path], server: Server) -> Iterator[None]:
    """Run it on the server's database beside what is done within, and wait for its end. It is
    ended where that fails. Raises BackupError with what it said."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603 - PostgreSQL's own
            [program.path, "--no-password", f"--dbname={server.address}", *words],
            env=server.environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            umask=0o077,
            # Else a file that may not grow would kill it before it can say so.
            restore_signals=False,
        )
        try:
            yield
            code = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if code:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            raise BackupError(f"{program.path.name} failed ({code}): {_reason(lines)}")
