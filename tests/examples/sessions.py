"""One page's shell and one page's Python: what a block sets, the next one has."""

import os
import select
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 120.0
#: Runs files that it reads the names of; the first command that fails gives the status.
_SHELL = r"""
exec 9<&0 </dev/null 8>&1 >/dev/null 2>&1
set -E -o pipefail
ingest() { .venv/bin/python manage.py ingest ~/Documents/"$1" --collection "$1"; }
trap 'failed=${failed:-$?}' ERR
while IFS= read -r -u 9 example; do
  failed=
  . "$example" >"$example.out" 2>&1
  echo "${failed:-0}" >&8
done
"""
_PYTHON = r"""
import os, sys, traceback
from ragsite.script import setup
setup()
from accounts.models import User, Workspace
done, asked = os.fdopen(os.dup(1), "w", buffering=1), os.fdopen(os.dup(0))
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
names = {"__name__": "__main__", "key": os.environ["KEY"],
         "user": User.objects.get(username="demo"),
         "workspace": Workspace.objects.get(slug="default")}
for line in asked:
    example = line.rstrip()
    out = open(example + ".out", "w", buffering=1)
    os.dup2(out.fileno(), 1)
    os.dup2(out.fileno(), 2)
    try:
        exec(compile(open(example).read(), example, "exec"), names)
    except BaseException:
        traceback.print_exc()
        status = 1
    else:
        status = 0
    sys.stdout.flush()
    done.write(f"{status}\n")
"""


@dataclass(frozen=True, slots=True)
class Done:
    """What a block printed, in both streams, and the status of the first command that failed."""

    status: int
    printed: str


@dataclass
class Session:
    """A program that runs one block after the other in `folder`."""

    command: list[str]
    folder: Path
    environment: dict[str, str]
    _count: int = field(default=0)

    def __post_init__(self) -> None:
        self._process = subprocess.Popen(
            self.command, cwd=self.folder, env=self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def run(self, text: str) -> Done:
        """Run a block. An AssertionError where it takes too long."""
        self._count += 1
        example = self.folder.parent / f".{self.folder.name}-{self._count}"
        printed = example.with_name(f"{example.name}.out")
        example.write_text(text)
        printed.touch()
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{example}\n")
        self._process.stdin.flush()
        ready = select.select([self._process.stdout], [], [], SECONDS)[0]
        assert ready, f"not done after {SECONDS:.0f} seconds: {printed.read_text()}"
        answer = self._process.stdout.readline()
        return Done(int(answer) if answer else 255, printed.read_text(errors="replace"))

    def close(self) -> None:
        """End it, and what it has started."""
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.communicate(timeout=60)


def shell(folder: Path, environment: dict[str, str]) -> Session:
    """Of a person who sits in `folder`."""
    return Session(["bash", "--noprofile", "--norc", "-c", _SHELL], folder, environment)


def python(folder: Path, environment: dict[str, str]) -> Session:
    """Of a program on the site's machine, with `user`, `workspace` and an API `key`."""
    return Session([".venv/bin/python", "-c", _PYTHON], folder, environment)
