"""What an example calls as Python: hands the command to a `preloaded` one, and waits for it.

Started with `-IS`, for it is started often: only what it imports here is imported.
"""

import json
import os
import signal
import socket
import struct
import sys
import time
import zlib
from typing import Any, NoReturn

SECONDS = 60.0


def main(folder: str, before: list[str]) -> NoReturn:
    """Exit with the status of `python BEFORE… ARGUMENTS…`, run by what listens in `folder`."""
    with open(f"{folder}/variables") as file:  # noqa: PTH123 - pathlib takes its time
        variables = file.read().split()
    settings = sorted((name, os.environ[name]) for name in variables if name in os.environ)
    server = f"{folder}/{zlib.crc32(repr(settings).encode()):x}"
    request = {
        "arguments": [*before, *sys.argv[1:]],
        "environment": dict(os.environ),
        "cwd": os.getcwd(),  # noqa: PTH109
        "executable": f"{folder}/python",
    }
    if not os.path.exists(server):  # noqa: PTH110
        try:
            os.mkdir(f"{server}.asked")  # noqa: PTH102
        except FileExistsError:
            pass  # another command that began at the same time has asked for it
        else:
            becomes = {"becomes": os.path.basename(server), **request}  # noqa: PTH119
            _hand_over(f"{folder}/first", becomes).close()
        until = time.monotonic() + SECONDS
        while not os.path.exists(server):  # noqa: PTH110
            if time.monotonic() > until:
                sys.exit("ragsite's settings cannot be used; see what stands above")
            time.sleep(0.01)
    asked = _hand_over(server, request)
    status = asked.recv(1)
    sys.exit(status[0] if status else 1)


def _hand_over(address: str, request: dict[str, Any]) -> socket.socket:
    body = json.dumps(request).encode()
    server = socket.socket(socket.AF_UNIX)
    server.connect(address)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: server.sendall(bytes([got])))
    socket.send_fds(server, [struct.pack("!I", len(body))], [0, 1, 2])
    server.sendall(body)
    return server
