"""The parser process: `python -m documents.parsing MEMORY_BYTES`, asked and answering on pipes."""

import faulthandler
import json
import os
import resource
import select
import signal
import sys
import threading
import traceback
from io import FileIO
from typing import BinaryIO

from documents.parsers import ParsedDocument, ParseError, parse
from documents.parsers.chunk_json import CHUNK_BUNDLE_SUFFIX, parse_bundle
from documents.parsing import failures
from documents.parsing.limits import at_most, confine, leave_the_network
from documents.parsing.protocol import PREFIX, Header, document_fields, encoded, framed

#: A process that has read so many files makes room for a new one: libraries leak.
MAX_FILES = 10_000
#: One that keeps more than this share of its memory does too.
MAX_KEPT_SHARE = 0.25
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
    leave_the_network()
    _die_with_the_site()
    confine(memory_bytes)
    files = 0
    retires = False
    while not retires and (prefix := requests.read(PREFIX.size)):
        _, header_length, body_length = PREFIX.unpack(prefix)
        request = json.loads(requests.read(header_length))
        data = requests.read(body_length)
        files += 1
        with at_most(request["seconds"]):
            answer = _answer(request, data, memory_bytes)
        size = sum(map(len, answer))
        retires = files >= MAX_FILES or _kept() - size > memory_bytes * MAX_KEPT_SHARE
        for part in framed(*answer, is_last=retires):
            _write(answers, part)
        del data, answer, part  # the next file may be long in coming


def _answer(request: Header, data: bytes, memory_bytes: int) -> tuple[bytes, bytes]:
    name = request["name"]
    try:
        document = _parsed(request, data or _read(request))
        del data
        text = _encoded(document, request["max_bytes"])
        return encoded({"document": document_fields(document)}), text
    except ParseError as error:
        failure = error
    except MemoryError:
        failure = failures.too_much_memory(name, memory_bytes)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        failure = failures.crashed(name, f"{type(error).__name__}: {error}"[:200])
    return encoded({"error": {"code": failure.code, "message": failure.message}}), b""


def _parsed(request: Header, data: bytes) -> ParsedDocument:
    if len(data) > request["max_bytes"]:
        raise failures.grown(request["name"], request["max_bytes"])
    if request["name"].endswith(CHUNK_BUNDLE_SUFFIX):
        return parse_bundle(data, name=request["name"])
    return parse(data, name=request["name"], max_bytes=request["max_bytes"])


def _read(request: Header) -> bytes:
    if not request["path"]:
        return b""
    path = request["path"].encode(errors="surrogateescape")
    try:
        with FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) as file:
            if os.fstat(file.fileno()).st_size > request["max_bytes"]:
                raise failures.grown(request["name"], request["max_bytes"])
            return file.readall()
    except OSError as error:
        raise ParseError(
            "unreadable", f"{request['name']} cannot be read: {error.strerror}. Is it still there?"
        ) from error


def _encoded(document: ParsedDocument, max_bytes: int) -> bytes:
    text = document.text.encode(errors="replace")
    if len(text) > max_bytes:
        raise ParseError(
            "too_large",
            f"The text in it has {len(text):,} bytes; {max_bytes:,} are allowed. Split it, or"
            " raise RAGSITE_MAX_UPLOAD_BYTES.",
        )
    return text


def _write(answers: BinaryIO, part: bytes) -> None:
    view = memoryview(part)
    while view:
        view = view[answers.write(view) :]


def _kept() -> int:
    """Bytes of memory that are really used, where the system tells."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * PAGE_SIZE
    except OSError:
        return 0


def _die_with_the_site() -> None:
    """Whoever asks may be killed while this process is busy: then nobody writes to it any more."""

    def watch() -> None:
        poll = select.poll()
        poll.register(0, 0)
        poll.poll()
        os._exit(0)

    threading.stack_size(WATCHER_STACK)
    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
