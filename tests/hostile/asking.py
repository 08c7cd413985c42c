"""Sending hostile requests, and what is wrong with their answers."""

import json
from contextlib import nullcontext
from http.cookies import SimpleCookie
from itertools import islice
from sys import exc_info
from time import monotonic, process_time
from typing import Any

from django.core.signals import got_request_exception
from django.db import transaction
from django.test import Client

from tests.access.world import World
from tests.hostile.operations import Operation
from tests.hostile.requests import Hostile

#: Of the processor; by the clock fifteen times as much, on a busy machine and with the database.
MOST_SECONDS = 2.0
_CLOCK = 15.0
#: What is read of a stream before it is closed.
PIECES = 3


class Asker:
    """Asks as the owner, with a key that may do anything. What is written is taken back."""

    def __init__(self, world: World) -> None:
        self.client = Client(raise_request_exception=False)
        self.always = {
            "Authorization": f"Bearer {world.secrets['key:all']}",
            "X-Workspace": world.a.slug,
        }
        self.raised: list[str] = []
        got_request_exception.connect(self._note)

    def close(self) -> None:
        """Listen no longer."""
        got_request_exception.disconnect(self._note)

    def faults(self, operation: Operation, hostile: Hostile) -> list[str]:
        """What is wrong with the answer. One that is slow is asked for again: it may have been the
        machine."""
        found, seconds = self._tried(operation, hostile)
        if seconds > MOST_SECONDS:
            again, seconds = self._tried(operation, hostile)
            found += again
            if seconds > MOST_SECONDS:
                found.append(f"took {seconds:.1f} s")
        return [f"{operation.name}, {hostile.kind}: {each}" for each in found]

    def _tried(self, operation: Operation, hostile: Hostile) -> tuple[list[str], float]:
        self.raised.clear()
        started, worked = monotonic(), process_time()
        with nullcontext() if operation.is_threaded else transaction.atomic():
            answer = self._ask(operation, hostile)
            body = _read(answer)
            if not operation.is_threaded:
                transaction.set_rollback(True)
        seconds = max((monotonic() - started) / _CLOCK, process_time() - worked)
        return [*self.raised, *_wrong(operation, answer, body)], seconds

    def _ask(self, operation: Operation, hostile: Hostile) -> Any:
        self.client.cookies = SimpleCookie()
        body = hostile.body
        if body is None and operation.body is not None:
            body = json.dumps(operation.body).encode()
        query = operation.query if hostile.query is None else hostile.query
        return self.client.generic(
            operation.method,
            operation.path,
            body or b"",
            content_type=hostile.content_type,
            headers={**self.always, **hostile.headers},
            QUERY_STRING=query,
        )

    def _note(self, sender: Any, **kwargs: Any) -> None:
        self.raised.append(f"raised {exc_info()[1]!r}"[:300])


def _read(answer: Any) -> bytes:
    if not answer.streaming:
        return bytes(answer.content)
    body = b"".join(islice(answer.streaming_content, PIECES))
    answer.close()
    return body


def _wrong(operation: Operation, answer: Any, body: bytes) -> list[str]:
    status = answer.status_code
    if status < 400:
        return []
    found = []
    if status >= 500 and status != 503:
        found.append(f"failed with {status}")
    if status not in operation.statuses:
        found.append(f"answered {status}, which is not described")
    try:
        told = json.loads(body)
    except ValueError:
        return [*found, f"answered {status} with no JSON: {body[:80]!r}"]
    if not _is_shaped(operation, told):
        found.append(f"answered {status} in another shape: {body[:200]!r}")
    return found


def _is_shaped(operation: Operation, told: Any) -> bool:
    if operation.path.startswith("/v1/"):
        return isinstance(told, dict) and set(told["error"]) == {"message", "type", "param", "code"}
    return (
        isinstance(told, dict)
        and list(told) == ["type", "code", "detail", "errors"]
        and bool(told["errors"])
        and all(set(each) == {"code", "detail", "attr"} for each in told["errors"])
    )
