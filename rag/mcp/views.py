"""`/mcp`: one request of the protocol in, its answer out, by an API key."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import validate_host
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from accounts.authentication import BasicAuthentication, KeyAuthentication
from common.clients import GONE, Client
from common.connections import give_back
from common.errors import Forbidden, RagsiteError
from common.negotiation import ErrorsAsJson
from rag.asking import context_of

MAX_BODY_BYTES = 4 * 1024 * 1024
#: Of JSON-RPC.
INVALID_REQUEST, INTERNAL_ERROR = -32600, -32603


class TooLarge(RagsiteError):
    """More than is read into memory."""

    code = "too_large"
    status = 413


class BatchRefused(RagsiteError):
    """Several messages in one body, which were part of the protocol for three months of 2025."""

    code = "batch"


@extend_schema(exclude=True)
class McpView(WorkspaceView):
    """The protocol's endpoint. It keeps nothing between requests and sends nothing of its own, so
    there is no stream to GET and no session to DELETE: both are 405. Which tools a key may use
    follows from its other scopes."""

    authentication_classes = [KeyAuthentication, BasicAuthentication]
    required_scope = "read"
    content_negotiation_class = ErrorsAsJson
    http_method_names = ["post"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        _check_origin(request.headers.get("Origin"))
        super().initial(request, *args, **kwargs)

    def handle_exception(self, exc: Exception) -> Response:
        """The API's one error shape, with the protocol's beside it, by which clients tell people
        what is wrong."""
        response: Response = super().handle_exception(exc)
        data = response.data
        code = INTERNAL_ERROR if response.status_code >= 500 else INVALID_REQUEST
        error = {"code": code, "message": data["detail"], "data": {"code": data["code"]}}
        response.data = {**data, "jsonrpc": "2.0", "id": None, "error": error}
        return response

    def post(self, request: Request) -> HttpResponse:
        """Answer one message."""
        from rag.mcp.bridge import ClientGone, bridge  # noqa: PLC0415 (it takes a second to load)

        said = request.content_type or ""
        if said.partition(";")[0].strip().lower() != "application/json":
            raise UnsupportedMediaType(said)  # the SDK says so in a shape of its own
        context = context_of(self)
        body = _body(request)
        give_back()  # nothing is asked here while another thread works
        try:
            answer = bridge.exchange(
                body,
                path=request.path,
                headers=request.headers,
                context=context,
                seconds=settings.RAG_MCP_SECONDS,
                is_gone=Client(request.META).is_gone,
            )
        except ClientGone:
            return HttpResponse(status=GONE)
        answer.headers.pop("content-length", None)
        return HttpResponse(answer.body, status=answer.status, headers=answer.headers)


def _check_origin(origin: str | None) -> None:
    """A page of another site must not ask, not even through a name that it made mean this host."""
    if origin is None or origin in settings.CSRF_TRUSTED_ORIGINS:
        return
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        host = ""
    if ":" in host:
        host = f"[{host}]"
    if not validate_host(host, settings.ALLOWED_HOSTS):
        raise Forbidden(
            f"Pages of {origin} may not ask here. Name the site in CSRF_TRUSTED_ORIGINS if they are"
            " meant to."
        )


def _body(request: Request) -> bytes:
    asked: HttpRequest = request._request
    body = asked.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise TooLarge(f"A request may have {MAX_BODY_BYTES:,} bytes. Send less at once.")
    if body.lstrip()[:1] == b"[":
        raise BatchRefused("Messages are answered one by one. Send each in a request of its own.")
    return body
