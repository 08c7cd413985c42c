"""Answers on their way to a client: event by event as they come, or whole."""

import secrets
from collections.abc import Callable, Iterator
from itertools import count
from threading import Event as Flag
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from common import events as sse
from common.clients import GONE, Client
from common.connections import give_back
from common.errors import RagsiteError
from inference.base import InferenceError
from inference.cancelling import Cancelled
from rag.events import Event, Failed
from rag.failures import ModelFailed, failed
from rag.making import Answering, ClientGone

Encode = Callable[[Event], bytes]


class AnswerFailed(RagsiteError):
    """An answer that failed before any of it was told, as the status of the request."""

    def __init__(self, event: Failed) -> None:
        super().__init__(event.detail)
        self.code, self.status = event.code, event.status
        self.retry_after = 15 if event.status == 503 else None


class _Told:
    """An answer as chunks of an event stream. Its first event is there before it is begun, so that
    what cannot be answered at all has a status of its own."""

    def __init__(self, answering: Answering, encode: Encode) -> None:
        self._answering = answering
        self._encode = encode
        self._first: list[Event] | None = first_events(answering)
        self._has_failed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._has_failed:
            raise StopIteration
        if self._first is not None:
            give_back()  # the connection that found out who asks
            came, self._first = self._first, None
            return self._encoded(came)
        try:
            return self._encoded(next(self._answering))
        except (ClientGone, Cancelled):
            raise StopIteration from None
        except StopIteration:
            raise
        except Exception as error:
            self._has_failed = True
            return self._encode(failed(error))

    def close(self) -> None:
        """Called by the server when the client has gone, or everything was sent."""
        self._answering.close()

    def _encoded(self, events: list[Event]) -> bytes:
        # An empty chunk would say that the answer is over.
        return b"".join(map(self._encode, events)) or sse.HEARTBEAT


def stream(
    events: Iterator[Event],
    *,
    request: HttpRequest | Request,
    cancelled: Flag,
    encode: Encode | None = None,
) -> HttpResponseBase:
    """Answer with the events of an answer as they come, each as `encode` writes it.

    `cancelled` is the flag of the context that `events` work with: it is set when the client goes,
    reads nothing, or the process is to end. `encode` gets every event once, Done or Failed last,
    and may make nothing of one. Raises TooManyStreams, and what goes wrong before the first event.
    """
    answering = answer_of(events, request=request, cancelled=cancelled)
    try:
        return sse.response(_Told(answering, encode or numbered()))
    except ClientGone:
        answering.close()
        return HttpResponse(status=GONE)
    except BaseException:
        answering.close()
        raise


def gathered(
    events: Iterator[Event], *, request: HttpRequest | Request, cancelled: Flag
) -> list[Event]:
    """All events of an answer, for a client that wants it whole. Takes a slot as a stream does.

    Raises AnswerFailed for one that fails, TooManyStreams, ClientGone, and what goes wrong before
    the first event.
    """
    answering = answer_of(events, request=request, cancelled=cancelled)
    try:
        told = first_events(answering)
        for came in answering:
            told += came
    except Cancelled as error:
        raise ClientGone from error
    finally:
        answering.close()
    if isinstance(told[-1], Failed):
        raise AnswerFailed(told[-1])
    return told


def answered(
    events: Iterator[Event],
    *,
    request: HttpRequest | Request,
    cancelled: Flag,
    streams: bool,
    whole: Callable[[list[Event]], Any],
    encode: Encode | None = None,
) -> HttpResponseBase:
    """Answer as `stream` does, or else with what `whole` makes of all events. Raises as `stream`
    and `gathered` do, but for ClientGone."""
    if streams:
        return stream(events, request=request, cancelled=cancelled, encode=encode)
    try:
        told = gathered(events, request=request, cancelled=cancelled)
    except ClientGone:
        return HttpResponse(status=GONE)
    return Response(whole(told))


def answer_of(
    events: Iterator[Event], *, request: HttpRequest | Request, cancelled: Flag
) -> Answering:
    """Begin to draw `events`; the database connection of this thread is given back."""
    give_back()
    return Answering(events, cancelled=cancelled, client=Client(request.META))


def first_events(answering: Answering) -> list[Event]:
    """Wait for the first events. Raises RagsiteError for what fails before any is there."""
    came: list[Event] = []
    try:
        while not came:
            came = next(answering)
    except StopIteration:
        raise RuntimeError("an answer without a single event") from None
    except Cancelled as error:
        raise ClientGone from error
    except InferenceError as error:
        raise ModelFailed(error) from error
    except DatabaseError as error:
        raise AnswerFailed(failed(error)) from error
    if isinstance(came[0], Failed):
        raise AnswerFailed(came[0])
    return came


def numbered() -> Encode:
    """Server-sent events whose ids are the stream's and, behind a hyphen, their number from 1."""
    name, numbers = secrets.token_hex(4), count(1)
    return lambda event: sse.event(event.name, event.data(), id=f"{name}-{next(numbers)}")
