"""The account that the servers run as.

PostgreSQL refuses root, so a root starter hands both servers to a system account.
"""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragsite.embedded.errors import ServiceError

SYSTEM_ACCOUNT = "ragsite-postgres"
_OWN_SERVERS = "set DATABASE_URL and REDIS_URL to servers of your own"


@dataclass(frozen=True, slots=True)
class ServerUser:
    """Who owns the data and runs the servers."""

    uid: int
    gid: int
    name: str

    @property
    def is_other(self) -> bool:
        return self.uid != os.geteuid()

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


def server_user(var_dir: Path) -> ServerUser:
    """The caller; for root the account that owns the data already, or else the system account."""
    if os.geteuid() != 0:
        try:
            return _user(pwd.getpwuid(os.geteuid()))
        except KeyError:
            raise ServiceError(
                f"User {os.geteuid()} has no entry in /etc/passwd, which PostgreSQL wants. "
                f"Add one, run as another user, or {_OWN_SERVERS}."
            ) from None
    home = var_dir / "postgres"
    owner = (home if home.exists() else var_dir).stat().st_uid
    if owner != 0:
        try:
            return _user(pwd.getpwuid(owner))
        except KeyError:
            pass  # a directory of another machine's user: the system account is told below
    return _user(_system_account())


def _user(entry: pwd.struct_passwd) -> ServerUser:
    return ServerUser(entry.pw_uid, entry.pw_gid, entry.pw_name)


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
