"""Parser processes for any number of threads: who needs one borrows one."""

import atexit
import os
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

from documents.parsers import ParsedDocument, ParseError
from documents.parsing.limits import ParserLimits
from documents.parsing.process import ParserProcess
from documents.parsing.protocol import Request

#: Files that the process works on ahead of whoever takes the results, and their bytes.
FILES_AHEAD = 16
BYTES_AHEAD = 4 * 1024 * 1024
MAX_IDLE = 4


def parse_apart(request: Request, *, limits: ParserLimits) -> ParsedDocument:
    """Parse a file in a process of its own. Raises ParseError, and nothing else."""
    with _pool.borrowed(limits) as process:
        return process.parse(request)


def parse_many(
    requests: Iterable[Request], *, limits: ParserLimits
) -> Iterator[ParsedDocument | ParseError]:
    """What becomes of each file, in order; the process is some files ahead of the caller."""
    sizes: deque[int] = deque()
    with _pool.borrowed(limits) as process:
        for request in requests:
            while sizes and (len(sizes) >= FILES_AHEAD or sum(sizes) + request.size > BYTES_AHEAD):
                sizes.popleft()
                yield _outcome(process)
            process.submit(request)
            sizes.append(request.size)
        while not process.is_idle:
            yield _outcome(process)


def _outcome(process: ParserProcess) -> ParsedDocument | ParseError:
    try:
        return process.result()
    except ParseError as error:
        return error


class _Pool:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, and leave the processes to whom they belong."""
        self._lock = Lock()
        self._idle: dict[ParserLimits, list[ParserProcess]] = defaultdict(list)

    @contextmanager
    def borrowed(self, limits: ParserLimits) -> Iterator[ParserProcess]:
        with self._lock:
            idle = self._idle[limits]
            process = idle.pop() if idle else ParserProcess(limits)
        try:
            yield process
        finally:
            with self._lock:
                is_kept = process.is_idle and len(idle) < MAX_IDLE
                if is_kept:
                    idle.append(process)
            if not is_kept:
                process.close()

    def close(self) -> None:
        """End the processes that nobody has."""
        with self._lock:
            processes = [process for idle in self._idle.values() for process in idle]
            self._idle.clear()
        for process in processes:
            process.close()


_pool = _Pool()
atexit.register(_pool.close)
os.register_at_fork(after_in_child=_pool.forget)
