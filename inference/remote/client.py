"""JSON over HTTP to a model server, with retries, deadlines and errors that name the cure."""

import json
import os
import re
import threading
import time
import urllib.request
from collections.abc import Mapping
from math import inf
from typing import Any

import httpx2

from inference.base import BackendUnavailable, MalformedAnswer
from inference.remote.deadline import DeadlineTransport, deadline
from inference.remote.errors import PassingFailure, refusal, server_text
from inference.remote.patience import Patience

LARGEST_ANSWER = 64 * 1024 * 1024
LARGEST_ERROR = 64 * 1024
UNREACHABLE = "Is the server running, and is base_url right?"


class JsonClient:
    """Posts to one server over pooled connections; threads may share it, and forks survive it.

    The API key goes nowhere but to that server: redirects are not followed, and no message, not
    even one that quotes the server, holds it.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        cures: Mapping[int, str] | None = None,
        unreachable: str = UNREACHABLE,
        largest_answer: int = LARGEST_ANSWER,
    ) -> None:
        """`cures` says what to do about a status, `unreachable` about a server that is not there.

        `largest_answer` is in bytes. Raises BackendUnavailable for an address or key that cannot be
        right.
        """
        url = _checked_url(base_url)
        # HTTPX logs the addresses it asks, so what is secret in this one travels beside it.
        self._login = (url.username, url.password) if url.username or url.password else None
        self._url = url.copy_with(username=None, password=None)
        self.base_url = str(self._url).rstrip("/")
        self._headers = dict(headers or {})
        if api_key:
            self._headers["Authorization"] = f"Bearer {_checked_key(api_key.strip())}"
        self._secrets = tuple(filter(None, ((api_key or "").strip(), url.password)))
        self._cures = dict(cures or {})
        self._unreachable = unreachable
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
                f" {server_text(body, self._secrets)}. Is base_url that of the model server?"
            ) from error

    def _attempt(self, path: str, payload: Mapping[str, object], at: float) -> bytes:
        where, began = self.base_url + path, time.monotonic()
        try:
            with (
                deadline(at),
                self._client().stream(
                    "POST", where, json=payload, timeout=max(at - began, 0.001)
                ) as response,
            ):
                if response.is_success:
                    return self._body(response, where)
                said = server_text(_start(response), self._secrets)
                raise refusal(where, response.status_code, response.headers, said, self._cures)
        except httpx2.TimeoutException as error:
            raise PassingFailure(
                f"{where} did not answer within {time.monotonic() - began:.1f} s. Set a longer"
                " timeout or a smaller batch_size, or give the server less to do."
            ) from error
        except httpx2.RequestError as error:
            raise PassingFailure(
                f"{where} cannot be reached: {error}. {self._unreachable}"
            ) from error

    def _body(self, response: httpx2.Response, where: str) -> bytes:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > self._largest_answer:
                raise MalformedAnswer(
                    f"{where} answers with more than {self._largest_answer:,} bytes, which no"
                    " answer needs: is base_url that of the model server?"
                )
        return bytes(body)

    def _client(self) -> httpx2.Client:
        # A fork shares its parent's connections, on which two would read each other's answers. No
        # lock, which a fork could inherit locked: at worst two threads make one client each.
        pooled = self._pooled
        if pooled is None or pooled[0] != os.getpid():
            pooled = self._pooled = (os.getpid(), self._new_client())
        return pooled[1]

    def _new_client(self) -> httpx2.Client:
        return httpx2.Client(
            transport=DeadlineTransport(proxy=_environment_proxy(self._url)),
            headers=self._headers,
            auth=None if "Authorization" in self._headers else self._login,
            follow_redirects=False,
        )


def versioned(base_url: str) -> str:
    """`base_url` with `/v1` after it, unless it names a version of the API already."""
    base_url = base_url.strip().rstrip("/")
    return base_url if re.search(r"/v\d\w*(/|$)", base_url) else f"{base_url}/v1"


def _checked_url(base_url: str) -> httpx2.URL:
    try:
        url = httpx2.URL(base_url.strip().rstrip("/"))
    except httpx2.InvalidURL as error:
        raise BackendUnavailable(f"base_url is no address ({error}): correct it.") from error
    if url.scheme not in {"http", "https"} or not url.host or url.query or url.fragment:
        raise BackendUnavailable(
            "base_url must look like https://host:port/path, without a query: correct it."
        )
    return url


def _checked_key(api_key: str) -> str:
    # HTTPX would name the offending value, which is the key, in its own error.
    if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise BackendUnavailable(
            "the API key holds a character that keys do not have, such as a blank or a line break:"
            " copy it again."
        )
    return api_key


def _environment_proxy(url: httpx2.URL) -> str | None:
    """From HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, which Client reads only for a transport
    of its own making."""
    if urllib.request.proxy_bypass(url.host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(url.scheme) or proxies.get("all")


def _start(response: httpx2.Response) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > LARGEST_ERROR:
            break
    return bytes(body)
