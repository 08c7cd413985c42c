"""What every embedded service is: its status, and how it is asked for it."""

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ragsite.embedded.layout import socket_dir
from ragsite.embedded.probe import DOWN, Answer
from ragsite.embedded.serveruser import ServerUser


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One service as it is now. `detail` is for people: "started", "not running" and the like."""

    name: str
    running: bool
    pid: int | None
    version: str | None
    endpoint: str
    detail: str


class Service(ABC):
    """A server whose data lies under `var_dir`. Start and stop are called under one lock."""

    name: ClassVar[str]
    log_name = "server.log"

    def __init__(self, var_dir: Path) -> None:
        self.var_dir = var_dir
        self.sockets = socket_dir(var_dir)

    @property
    @abstractmethod
    def home(self) -> Path:
        """The directory of the server's data and log."""

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
        """The pid of the server, if a process really works in our directory."""

    @abstractmethod
    def _ask(self) -> Answer:
        """What the server says over its socket."""

    @property
    def log(self) -> Path:
        return self.home / self.log_name

    def answer(self) -> Answer:
        """What the server says; a socket that others may have put in place is not asked."""
        try:
            sockets, home = self.sockets.lstat(), self.home.stat()
        except OSError:
            return DOWN
        private = sockets.st_uid == home.st_uid and not sockets.st_mode & 0o077
        return self._ask() if private else DOWN

    def status(self, detail: str = "running") -> ServiceStatus:
        """How the server is now; `detail` are the words for one that runs."""
        answer = self.answer()
        pid = self.process()
        if not answer.serving:
            detail = "not running"
            if pid is not None:
                detail = f"process {pid} does not answer ({answer.state})"
            elif self.sockets.exists() and not os.access(self.sockets, os.X_OK):
                detail = f"{self.sockets} belongs to another user: ask as {self.sockets.owner()}"
        return ServiceStatus(self.name, answer.serving, pid, answer.version, self.endpoint, detail)
