"""`/mcp`: the HTTP endpoint of the Model Context Protocol, one request at a time, by API key."""

import json
from codecs import BOM_UTF8
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import validate_host
from django.utils.translation import gettext
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from accounts.authentication import BasicAuthentication, KeyAuthentication
from common.api import StreamNegotiation
from common.errors import Forbidden, RagsiteError
from common.sql import release_connection
from common.sse import CLIENT_CLOSED_REQUEST, ClientConnection, ClientGone, format_event
from common.translation import format_number
from rag.context import context_of_view

MAX_BODY_BYTES = 4 * 1024 * 1024
#: Of JSON-RPC.
INVALID_REQUEST, INTERNAL_ERROR = -32600, -32603


class TooLarge(RagsiteError):
    """The request body exceeds the size limit."""

    code = "too_large"
    status = 413


class BatchRefused(RagsiteError):
    """Several messages in one body, which the protocol allowed for three months of 2025."""

    code = "batch"


class IdRefused(RagsiteError):
    """A request whose id is neither text nor an integer: the SDK would take it for a notification,
    and the client would wait for its answer."""

    code = "invalid_id"


class McpView(WorkspaceView):
    """The protocol's endpoint. It is stateless and sends nothing of its own, so there is no stream
    to GET and no session to DELETE: both are 405. Which tools a key may use follows from its other
    scopes."""

    schema = None  # not of the described API
    for_limited_keys = True
    authentication_classes = [KeyAuthentication, BasicAuthentication]
    required_scope = "read"
    content_negotiation_class = StreamNegotiation
    http_method_names = ["post"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # Refuse requests from pages of other sites, also by DNS rebinding.
        origin = request.headers.get("Origin")
        if origin is not None and origin not in settings.CSRF_TRUSTED_ORIGINS:
            try:
                host = urlsplit(origin).hostname or ""
            except ValueError:
                host = ""
            if not validate_host(f"[{host}]" if ":" in host else host, settings.ALLOWED_HOSTS):
                raise Forbidden(
                    gettext(
                        "Requests from pages of {origin} are not allowed. Add the site to"
                        " CSRF_TRUSTED_ORIGINS to allow them."
                    ).format(origin=origin)
                )
        super().initial(request, *args, **kwargs)

    def handle_exception(self, exc: Exception) -> Response:
        """The API's error format plus JSON-RPC's, which clients show to people."""
        response: Response = super().handle_exception(exc)
        data = response.data
        code = INTERNAL_ERROR if response.status_code >= 500 else INVALID_REQUEST
        error = {"code": code, "message": data["detail"], "data": {"code": data["code"]}}
        response.data = {**data, "jsonrpc": "2.0", "id": None, "error": error}
        return response

    def post(self, request: Request) -> HttpResponse:
        """Answer one JSON-RPC message of the protocol."""
        from mcp.types.version import KNOWN_PROTOCOL_VERSIONS  # noqa: PLC0415 (loads the SDK)

        from rag.mcp.asgi_bridge import bridge  # noqa: PLC0415

        content_type = request.content_type or ""
        if content_type.partition(";")[0].strip().lower() != "application/json":
            raise UnsupportedMediaType(content_type)  # the SDK's own error has another format
        context = context_of_view(self)
        http_request: HttpRequest = request._request
        body = http_request.read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise TooLarge(
                gettext("A request may have {body_bytes} bytes. Send less at once.").format(
                    body_bytes=format_number(MAX_BODY_BYTES)
                )
            )
        body = body.removeprefix(BOM_UTF8)
        if body.lstrip()[:1] == b"[":
            raise BatchRefused(
                gettext("Batches are not supported. Send each message in its own request.")
            )
        message: Any = None
        with suppress(ValueError, RecursionError):  # the SDK says what is wrong with it
            message = json.loads(body)
        is_request = isinstance(message, dict) and "method" in message and "id" in message
        if is_request and type(message["id"]) not in (str, int):
            raise IdRefused(gettext("The id of a request must be a text or an integer."))
        release_connection()  # this thread does not need it while it waits
        headers = {**request.headers, "Content-Type": "application/json"}
        version = headers.get("Mcp-Protocol-Version")
        begins = is_request and message["method"] == "initialize"
        if version == "" or (begins and version not in KNOWN_PROTOCOL_VERSIONS):
            # What `initialize` agrees upon is in its body. Elsewhere the SDK refuses unknown ones.
            headers.pop("Mcp-Protocol-Version", None)
        takes_json = not headers.get("Accept") or http_request.accepts("application/json")
        takes_events = not takes_json and http_request.accepts("text/event-stream")
        if takes_json or takes_events:
            headers["Accept"] = "application/json"  # the SDK refuses clients that do not say so
        try:
            answer = bridge.exchange(
                body,
                path=request.path,
                headers=headers,
                context=context,
                seconds=settings.RAG_MCP_SECONDS,
                is_gone=ClientConnection(request.META).is_gone,
            )
        except ClientGone:
            return HttpResponse(status=CLIENT_CLOSED_REQUEST)
        if takes_events and answer.content:
            answer.content = format_event("message", json.loads(answer.content))
            answer["Content-Type"] = "text/event-stream"
            answer["Content-Length"] = str(len(answer.content))
        return answer
