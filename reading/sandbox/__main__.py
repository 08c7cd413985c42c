"""The parser process, `python -m reading.sandbox MEMORY_BYTES STARTS_PROGRAMS FILE_BYTES`: reads
requests from standard input and writes answers to standard output."""

import faulthandler
import json
import os
import resource
import select
import signal
import sys
import threading
import traceback
from contextlib import suppress
from io import FileIO

from reading.parsers import ParseError, parse
from reading.parsers.base import Limits
from reading.parsers.chunk_json import CHUNK_BUNDLE_SUFFIX, parse_bundle
from reading.sandbox import limits, tasks
from reading.sandbox.limits import isolate_network, restrict_process, time_limit
from reading.sandbox.protocol import (
    PREFIX,
    MessageHeader,
    document_fields,
    encode_header,
    frame_message,
)

#: A process is replaced after this many files, because libraries leak memory.
MAX_FILES = 10_000
#: It is also replaced if it keeps more than this share of its memory limit.
MAX_RESIDENT_SHARE = 0.25
WATCHER_STACK = 256 * 1024
PAGE_SIZE = resource.getpagesize()


def main() -> None:
    """Answer requests until there are no more."""
    memory_bytes = int(sys.argv[1])
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a library prints must not mix with the answers
    requests = os.fdopen(os.dup(0), "rb")
    faulthandler.enable()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    isolate_network()

    def exit_with_parent() -> None:
        """When the parent process dies while this one is busy."""
        poll = select.poll()
        poll.register(0, 0)
        poll.poll()
        os._exit(0)

    threading.stack_size(WATCHER_STACK)
    threading.Thread(target=exit_with_parent, daemon=True).start()
    restrict_process(memory_bytes, starts_programs=sys.argv[2] == "1", file_bytes=int(sys.argv[3]))
    files = 0
    retires = False
    while not retires and (prefix := requests.read(PREFIX.size)):
        _, header_length, body_length = PREFIX.unpack(prefix)
        request = json.loads(requests.read(header_length))
        data = requests.read(body_length)
        files += 1
        with time_limit(request["seconds"]):
            answer = _make_answer(request, data, memory_bytes)
        size = sum(map(len, answer))
        resident = 0
        with suppress(OSError), open("/proc/self/statm", "rb") as file:  # noqa: PTH123
            resident = int(file.read().split()[1]) * PAGE_SIZE
        retires = files >= MAX_FILES or resident - size > memory_bytes * MAX_RESIDENT_SHARE
        for part in frame_message(*answer, is_last=retires):
            view = memoryview(part)
            while view:
                view = view[answers.write(view) :]
        del data, answer, part  # the next file may be long in coming


def _make_answer(request: MessageHeader, data: bytes, memory_bytes: int) -> tuple[bytes, bytes]:
    name = request["name"]
    try:
        max_bytes = request["max_bytes"]
        data = data or _read_file(request)
        if len(data) > max_bytes:
            raise limits.size_limit_error(name, max_bytes)
        if request["task"]:
            task = tasks.TASKS[request["task"]]
            result, body = task(
                data, name=name, limits=Limits(max_bytes=max_bytes), **request["options"]
            )
            return encode_header({"result": result}), body
        if name.endswith(CHUNK_BUNDLE_SUFFIX):
            document = parse_bundle(data, name=name)
        else:
            document = parse(data, name=name, max_bytes=max_bytes, **request["options"])
        del data
        text = document.text.encode(errors="replace")
        if len(text) > max_bytes:
            raise ParseError(
                "too_large",
                f"The text in it has {len(text):,} bytes; {max_bytes:,} are allowed. Split it, or"
                " raise RAGSITE_MAX_UPLOAD_BYTES.",
            )
        return encode_header({"document": document_fields(document)}), text
    except ParseError as error:
        failure = error
    except MemoryError:
        failure = limits.memory_limit_error(name, memory_bytes)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        failure = limits.crash_error(name, f"{type(error).__name__}: {error}"[:200])
    return encode_header({"error": {"code": failure.code, "message": failure.message}}), b""


def _read_file(request: MessageHeader) -> bytes:
    if not request["path"]:
        return b""
    path = request["path"].encode(errors="surrogateescape")
    try:
        with FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) as file:
            if os.fstat(file.fileno()).st_size > request["max_bytes"]:
                raise limits.size_limit_error(request["name"], request["max_bytes"])
            return file.readall()
    except OSError as error:
        raise ParseError(
            "unreadable",
            f"{request['name']} cannot be read: {error.strerror}. Check that it still exists.",
        ) from error


if __name__ == "__main__":
    main()
