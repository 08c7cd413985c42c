"""Files and directories of the account that runs the servers, and its way to them."""

import os
import stat
import sys
from pathlib import Path

from ragsite.embedded.errors import ServiceError
from ragsite.embedded.serveruser import ServerUser


def private_dir(path: Path, user: ServerUser) -> None:
    """Make `path` readable by `user` alone, or say whose it is.

    Raises ServiceError where another user owns it, or something else has its name.
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
    """Write a file of `user` alone, whole or not at all, following no link."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(temporary, flags, 0o600), "w") as file:
        file.write(text)
        if user.is_other:
            os.fchown(file.fileno(), user.uid, user.gid)
    temporary.replace(path)


def open_the_way(path: Path, user: ServerUser) -> None:
    """Let `user` pass through the directories above `path`; reports what it changes on stderr.

    Passing through shows nobody what a directory holds.
    """
    if not user.is_other:
        return
    for parent in reversed(path.resolve().parents):
        found = parent.stat()
        passable = stat.S_IXUSR if found.st_uid == user.uid else stat.S_IXOTH
        if not found.st_mode & passable:
            _widen(parent, passable, user)
            _tell(f"{user.name}, which runs the embedded servers, may now pass through {parent}")


def open_software(directory: Path, user: ServerUser) -> None:
    """Let `user` run a wheel's own files, which a strict umask at `pip install` had closed."""
    if not user.is_other:
        return
    open_the_way(directory, user)
    closed = 0
    for path in (directory, *directory.rglob("*")):
        mode = path.stat().st_mode
        needed = stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
        if mode & needed != needed:
            _widen(path, needed, user)
            closed += 1
    if closed:
        _tell(f"{user.name} may now read {closed} files of the installed package {directory}")


def _widen(path: Path, more: int, user: ServerUser) -> None:
    try:
        path.chmod(stat.S_IMODE(path.stat().st_mode) | more)
    except OSError as error:
        raise ServiceError(
            f"{user.name}, which runs the embedded servers, cannot reach {path} "
            f"({error.strerror}). Run `chmod o+x {path}`, or move the project elsewhere."
        ) from error


def _tell(what: str) -> None:
    print(f"ragsite: {what}", file=sys.stderr)  # noqa: T201 - the one who starts must see it
