"""JSON over HTTP to a model server, with retries, deadlines and errors that name the cure."""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from math import inf
from typing import Any

import httpx2

from inference import cancelling
from inference.base import MalformedAnswer
from inference.remote.address import checked_key, checked_url, environment_proxy
from inference.remote.deadline import DeadlineTransport, deadline
from inference.remote.errors import PassingFailure, refusal, server_text
from inference.remote.patience import Patience

LARGEST_ANSWER = 64 * 1024 * 1024
LARGEST_ERROR = 64 * 1024
UNREACHABLE = "Is the server running, and is base_url right?"
LATE = "Set a longer timeout or a smaller batch_size, or give the server less to do."


class JsonClient:
    """Posts to one server over pooled connections; threads may share it, and forks survive it.

    The API key goes nowhere but to that server: redirects are not followed, and no message, not
    even one that quotes the server, holds it. `secrets` are what such a message must not hold.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
        cures: Mapping[int, str] | None = None,
        unreachable: str = UNREACHABLE,
        late: str = LATE,
        largest_answer: int = LARGEST_ANSWER,
    ) -> None:
        """`api_key` goes along in `key_header`, as a bearer's where that is Authorization.

        `cures` says what to do about a status, `unreachable` about a server that is not there,
        `late` about one that does not answer in time.

        `largest_answer` is in bytes. Raises BackendUnavailable for an address or key that cannot be
        right.
        """
        url = checked_url(base_url)
        # HTTPX logs the addresses it asks, so what is secret in this one travels beside it.
        self._login = (url.username, url.password) if url.username or url.password else None
        self._url = url.copy_with(username=None, password=None)
        self.base_url = str(self._url).rstrip("/")
        self._headers = dict(headers or {})
        if api_key:
            scheme = "Bearer " if key_header == "Authorization" else ""
            self._headers[key_header] = scheme + checked_key(api_key.strip())
        self.secrets = tuple(filter(None, ((api_key or "").strip(), url.password)))
        self._cures = dict(cures or {})
        self._unreachable = unreachable
        self._late = late
        self._largest_answer = largest_answer
        self._pooled: tuple[int, httpx2.Client] | None = None

    def post(
        self,
        path: str,
        payload: Mapping[str, object],
        *,
        patience: Patience,
        deadline: float = inf,
        cancelled: threading.Event | None = None,
    ) -> Any:
        """The answer's JSON. `deadline` is a `time.monotonic()` for all tries together.

        Raises ServerRefused or another BackendUnavailable, or MalformedAnswer. What was answered
        malformed is not asked for again: a server that misunderstands does so every time.
        """
        body = patience.keep_trying(
            lambda at: self._attempt(path, payload, at), deadline=deadline, cancelled=cancelled
        )
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise MalformedAnswer(
                f"{self.base_url}{path} answers with something that is no JSON:"
                f" {server_text(body, self.secrets)}. Is base_url that of the model server?"
            ) from error

    def _attempt(self, path: str, payload: Mapping[str, object], at: float) -> bytes:
        where, began = self.base_url + path, time.monotonic()
        with (
            self._waiting(where, began, at),
            closing(self._answered(where, payload, at)) as response,
        ):
            return self._body(response, where)

    @contextmanager
    def _waiting(self, where: str, began: float, at: float) -> Iterator[None]:
        """Within it, reads end at `at`, and a connection that fails is a PassingFailure."""
        try:
            with deadline(at):
                yield
        except httpx2.TimeoutException as error:
            raise PassingFailure(
                f"{where} did not answer within {time.monotonic() - began:.1f} s. {self._late}"
            ) from error
        except httpx2.SSEError as error:
            raise MalformedAnswer(
                f"{where} streams what cannot be read ({error}): update the server."
            ) from error
        except (httpx2.ReadError, httpx2.RemoteProtocolError) as error:
            raise PassingFailure(f"{where} broke off: {error}. See the server's log.") from error
        except httpx2.RequestError as error:
            raise PassingFailure(
                f"{where} cannot be reached: {error}. {self._unreachable}"
            ) from error

    def _answered(self, where: str, payload: Mapping[str, object], at: float) -> httpx2.Response:
        """An answer with a good status, its body not read yet."""
        cancelling.check()
        client = self._client()
        left = max(at - time.monotonic(), 0.001)
        request = client.build_request("POST", where, json=payload, timeout=left)
        response = client.send(request, stream=True)
        if response.is_success:
            return response
        with closing(response):
            said = server_text(start_of(response), self.secrets)
            raise refusal(where, response.status_code, response.headers, said, self._cures)

    def _body(self, response: httpx2.Response, where: str) -> bytes:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            self._check_size(len(body), where)
        return bytes(body)

    def _check_size(self, size: int, where: str) -> None:
        if size > self._largest_answer:
            raise MalformedAnswer(
                f"{where} answers with more than {self._largest_answer:,} bytes, which no answer"
                " needs: is base_url that of the model server?"
            )

    def _client(self) -> httpx2.Client:
        # A fork shares its parent's connections, on which two would read each other's answers. No
        # lock, which a fork could inherit locked: at worst two threads make one client each.
        pooled = self._pooled
        if pooled is None or pooled[0] != os.getpid():
            pooled = self._pooled = (os.getpid(), self._new_client())
        return pooled[1]

    def _new_client(self) -> httpx2.Client:
        return httpx2.Client(
            transport=DeadlineTransport(proxy=environment_proxy(self._url)),
            headers=self._headers,
            auth=None if "Authorization" in self._headers else self._login,
            follow_redirects=False,
        )


def start_of(response: httpx2.Response) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > LARGEST_ERROR:
            break
    return bytes(body)
