"""Events from a model server, read as they come."""

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, suppress
from math import inf
from typing import Any

import httpx2

from inference.base import MalformedAnswer
from inference.remote.client import JsonClient, start_of
from inference.remote.deadline import deadline
from inference.remote.errors import PassingFailure, server_text
from inference.remote.framing import SERVER_SENT, Framing
from inference.remote.patience import Patience

END_WITHIN = 0.2  # seconds between the last event and the end of its stream


class StreamClient(JsonClient):
    """Posts, and reads the answer whole or event by event."""

    def __init__(self, base_url: str, *, framing: Framing = SERVER_SENT, **how: Any) -> None:
        """`framing` is how the server sets its events apart; `how` is as for JsonClient."""
        super().__init__(base_url, **how)
        self._framing = framing

    def stream(
        self,
        path: str,
        payload: Mapping[str, object],
        *,
        last: Callable[[str], bool],
        patience: Patience,
        deadline: float = inf,
        passing: Callable[[str], PassingFailure | None] = lambda first: None,
    ) -> Generator[str, None, None]:
        """The data of each event, as it comes. Closing it hangs up on the server.

        `last` tells the event after which none comes; a stream may also end without it. `deadline`
        is as for `post`, and for the whole stream. The server is asked again only as long as no
        event came: what is handed out cannot be taken back. `passing` is why a first event is none.
        Raises as `post` does.
        """

        def begun(at: float) -> tuple[str | None, Generator[str, None, None]]:
            events = self._events(self.base_url + path, payload, at, last)
            first = next(events, None)
            if first is not None and (failure := passing(first)):
                events.close()
                raise failure
            return first, events

        first, events = patience.keep_trying(begun, deadline=deadline)
        with closing(events):
            if first is not None:
                yield first
                yield from events

    def _events(
        self, where: str, payload: Mapping[str, object], at: float, last: Callable[[str], bool]
    ) -> Generator[str, None, None]:
        began, size = time.monotonic(), 0
        with self._waiting(where, began, at):
            response = self._answered(where, payload, at)
        with closing(response):
            with self._waiting(where, began, at):
                self._check_stream(response, where)
            events = self._framing.events(response)
            while True:
                # Never around a yield: who reads the stream may wait for others meanwhile.
                with self._waiting(where, began, at):
                    event = next(events, None)
                if event is None:
                    return
                size += len(event)
                self._check_size(size, where)
                if last(event):
                    _read_to_end(events, at)
                yield event

    def _check_stream(self, response: httpx2.Response, where: str) -> None:
        kind = response.headers.get("content-type", "").lower()
        if not kind.startswith(self._framing.kinds):
            raise MalformedAnswer(
                f"{where} answers with something that is no stream:"
                f" {server_text(start_of(response), self.secrets)}. Is base_url that of the model"
                " server, and can it stream?"
            )


def _read_to_end(events: Iterator[str], at: float) -> None:
    """Only a connection that was read to its end can be kept for the next request."""
    with suppress(httpx2.RequestError), deadline(min(at, time.monotonic() + END_WITHIN)):
        next(events, None)
