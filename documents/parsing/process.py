"""The site's side of a parser process: it is asked, waited for, ended and replaced."""

from collections import deque
from collections.abc import Iterable
from typing import get_args

from documents.parsers import ParsedDocument, ParseError
from documents.parsers.base import ErrorCode
from documents.parsing import failures
from documents.parsing.channel import Answer, Channel, Ended, Unanswered
from documents.parsing.limits import ParserLimits
from documents.parsing.protocol import (
    Header,
    Request,
    decoded,
    document_of,
    encoded,
    framed,
)

#: Characters of an error's message.
MAX_MESSAGE = 2000


class ParserProcess:
    """Parses one file after the other in a child process, for one thread at a time.

    The process is started with the first file and lives as long as it behaves. One that breaks a
    limit costs the file that it read, and nothing else: the next file gets a new process.
    """

    def __init__(self, limits: ParserLimits) -> None:
        self.limits = limits
        self._channel: Channel | None = None
        self._waiting: deque[Request] = deque()

    def parse(self, request: Request) -> ParsedDocument:
        """The parsed file. Raises ParseError, and nothing else, whatever the file is."""
        self.submit(request)
        return self.result()

    def submit(self, request: Request) -> None:
        """Have a file parsed; `result` gives what became of it, in the order of submission."""
        if self.is_idle and self._channel is not None and self._channel.has_died:
            self._stop()  # while it had nothing to do, so by no file's fault
        self._waiting.append(request)
        self._send([request])

    def result(self) -> ParsedDocument:
        """Of the oldest file without result; waits for it. Raises ParseError."""
        request = self._waiting.popleft()
        try:
            document = self._document(request, self._answer(request))
        except ParseError:
            self._go_on()
            raise
        except BaseException:  # such as Ctrl-C: an answer may be half read
            self.close()
            raise
        self._go_on()
        return document

    @property
    def is_idle(self) -> bool:
        """Whether every result was taken."""
        return not self._waiting

    def close(self) -> None:
        """End the process; what was submitted is dropped."""
        self._waiting.clear()
        self._stop()

    def _send(self, requests: Iterable[Request]) -> None:
        if self._channel is None:
            self._channel = Channel(self.limits)
        for request in requests:
            self._channel.send(*framed(self._header(request), request.data or b""))

    def _header(self, request: Request) -> bytes:
        return encoded(
            {
                "name": request.name,
                "path": str(request.path or ""),
                "seconds": self.limits.seconds,
                "max_bytes": self.limits.max_bytes,
            }
        )

    def _answer(self, request: Request) -> Answer:
        assert self._channel is not None
        try:
            return self._channel.receive()
        except Unanswered as error:
            self._stop()
            raise failures.too_slow(request.name, self.limits.seconds) from error
        except Ended as error:
            exit_code = self._stop()
            raise failures.of_exit(exit_code, request.name, self.limits.seconds) from error
        except ValueError as error:
            self._stop()
            raise failures.crashed(request.name, str(error)) from error

    def _document(self, request: Request, answer: Answer) -> ParsedDocument:
        try:
            header = decoded(answer.header)
            if "error" in header:
                raise _error(header["error"])
            return document_of(header["document"], str(answer.body, "utf-8"))
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            self._stop()
            raise failures.crashed(request.name, f"no usable answer: {error}"[:200]) from error

    def _go_on(self) -> None:
        """Another process for what waits, where this one is gone or ends."""
        if self._channel is not None and self._channel.is_done:
            self._stop()
        if self._channel is None and self._waiting:
            self._send(tuple(self._waiting))

    def _stop(self) -> int:
        channel, self._channel = self._channel, None
        return channel.close() if channel else 0


def _error(fields: Header) -> ParseError:
    if fields["code"] not in get_args(ErrorCode):
        raise ValueError(f"{fields['code']!r} is no code")
    return ParseError(fields["code"], str(fields["message"])[:MAX_MESSAGE])
