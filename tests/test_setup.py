"""Which Python `make` takes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

SCRIPT = Path(settings.BASE_DIR, "scripts", "python")


@pytest.fixture
def chosen(tmp_path: Path):
    """What scripts/python prints in a checkout where these commands run, beside those that fail."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("sh", "sed", "dirname"):
        (commands / name).symlink_to(shutil.which(name) or name)
    script = tmp_path / "checkout" / "scripts" / "python"
    script.parent.mkdir(parents=True)
    shutil.copy(SCRIPT, script)

    def run(*running: str, failing: tuple[str, ...] = (), present: str = "") -> str:
        for name in (*running, *failing):
            command = tmp_path / name
            command.parent.mkdir(parents=True, exist_ok=True)
            command.write_text(f"#!/bin/sh\nexit {127 if name in failing else 0}\n")
            command.chmod(0o755)
        if present:
            (tmp_path / "checkout" / ".venv").mkdir()
            (tmp_path / "checkout" / ".venv" / "pyvenv.cfg").write_text(f"version = {present}\n")
        said = subprocess.run(
            [str(script)],
            env={"PATH": str(commands), "HOME": str(tmp_path)},
            check=True,
            capture_output=True,
            text=True,
        )
        return said.stdout.strip().removeprefix(f"{tmp_path}/")

    return run


def test_the_first_python_that_runs_is_taken(chosen) -> None:
    assert chosen("bin/python3.13", "bin/python3.12", failing=("bin/python3.11",)) == "python3.13"


def test_the_python_of_the_present_environment_goes_first(chosen) -> None:
    assert chosen("bin/python3.11", "bin/python3.14", present="3.14.1") == "python3.14"


def test_an_environment_whose_python_is_gone_does_not_count(chosen) -> None:
    assert chosen("bin/python3.12", present="3.11.7") == "python3.12"


def test_a_python_of_pyenv_is_found_behind_a_command_that_does_not_run(chosen) -> None:
    theirs = ".pyenv/versions/3.12.1/bin/python3"
    assert chosen(theirs, failing=("bin/python3.12",)) == theirs


def test_without_any_the_systems_python_says_what_is_wrong(chosen) -> None:
    assert chosen("bin/python3.10") == "python3"


def test_setup_names_the_versions_that_do() -> None:
    """With a Python that is too old it says so, and makes nothing."""
    code = (
        "import runpy, sys; sys.version_info = (3, 10, 0); sys.argv = ['setup.py'];"
        f"runpy.run_path({str(SCRIPT.parent / 'setup.py')!r}, run_name='__main__')"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert "3.11 to 3.14" in said.stderr
