"""A Python that has imported what the site needs, and forks itself for each command.

An example's `.venv/bin/python` (see `launcher`) hands over its arguments, environment, folder and
open files. The first one imports; from it comes one for each combination of settings that is asked
for, in which Django is set up and the embedding model loaded. Nothing in them has started a thread,
so that a fork has all of it; a command's effects end with its process.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import struct
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from tests.examples.stand_ins import put_in_place


def main(folder: str) -> None:
    """Listen in `folder` until killed; in a forked process, return when the command has run."""
    from inference.backends.transformers_local import TransformersEmbedder

    TransformersEmbedder()._loaded()  # which imports; a second time it takes 0.1 s
    request = _serve(Path(folder) / "first")
    while "becomes" in request:
        _set_up(request["environment"])
        request = _serve(Path(folder) / request["becomes"])
    _end(_status(request))


def _set_up(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    put_in_place()
    import django

    django.setup()
    from inference.backends.transformers_local import TransformersEmbedder
    from inference.model_registry import embedders

    if isinstance(default := embedders["default"], TransformersEmbedder):
        default._loaded()


def _serve(address: Path) -> dict[str, Any]:
    """Fork for each caller; returns in the process that is to run the command."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{address}.new")
    listening.listen(16)
    Path(f"{address}.new").rename(address)  # whoever sees it is heard
    gc.freeze()  # or each fork would copy the pages of what it only looks at
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks what became of the forks
    while True:
        caller, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            return _take(caller)
        caller.close()


def _take(caller: socket.socket) -> dict[str, Any]:
    """Become the process that the caller asked for, beside one that tells it of the end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, files, _, _ = socket.recv_fds(caller, 4, 3)
    request: dict[str, Any] = json.loads(_read(caller, struct.unpack("!I", size)[0]))
    if "becomes" in request:
        for file in files:  # or who reads from the caller would wait for our end
            os.close(file)
        caller.close()
        return request
    if child := os.fork():
        threading.Thread(target=_pass_signals, args=[caller, child], daemon=True).start()
        _, status = os.waitpid(child, 0)
        with suppress(BrokenPipeError):
            caller.sendall(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))
        os._exit(0)
    caller.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    return request


def _read(caller: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += caller.recv(size - len(data))
    return data


def _pass_signals(caller: socket.socket, child: int) -> None:
    """Those that the caller got; without a caller, nobody wants the command any more."""
    while number := caller.recv(1):
        os.kill(child, number[0])
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGTERM)


def _status(request: dict[str, Any]) -> int:
    """Run the command, and say how it ended, as Python itself does."""
    try:
        _run(request)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)  # noqa: T201
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _end(status: int) -> NoReturn:
    """Without the taking apart of all that was loaded: it takes more than a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _run(request: dict[str, Any]) -> None:
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    arguments = request["arguments"]
    while arguments[0] in {"-W", "-X"}:
        arguments = arguments[2:]
    what, *rest = arguments
    if what == "-m":
        sys.path.insert(0, request["cwd"])
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif what == "-":
        sys.argv = ["-", *rest]
        exec(sys.stdin.read(), {"__name__": "__main__"})
    elif what == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(rest[0], {"__name__": "__main__"})
    else:
        sys.argv = arguments
        if "up" in rest:  # its processes are forks, too
            sys.executable = request["executable"]
        runpy.run_path(what, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
