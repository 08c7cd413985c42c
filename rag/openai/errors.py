"""Errors in the shape that OpenAI's clients read: {"error": {message, type, param, code}}."""

from collections.abc import Iterable, Mapping
from typing import Any

from rest_framework.response import Response
from rest_framework.settings import api_settings

from common.api import exception_handler as ours
from common.errors import RagsiteError
from rag.events import Failed

SHOWN_MODELS = 20
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
#: Where the request has what our services call otherwise.
_PARAMS = {
    api_settings.NON_FIELD_ERRORS_KEY: None,
    f"ragsite.{api_settings.NON_FIELD_ERRORS_KEY}": "ragsite",
    "message": "messages",
    "filter": "ragsite.filter",
}
_CODES = {"authentication_failed": "invalid_api_key", "invalid": "invalid_value"}


class ModelNotFound(RagsiteError):
    """No model of this site has that name, or not for this endpoint."""

    code = "model_not_found"
    status = 404
    field = "model"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        there = list(known)
        more = f" and {len(there) - SHOWN_MODELS} more" if len(there) > SHOWN_MODELS else ""
        super().__init__(
            f"There is no model “{name[:200]}” for this. There are:"
            f" {', '.join(there[:SHOWN_MODELS]) or 'none'}{more}."
        )


def exception_handler(error: Exception, context: Any) -> Response | None:
    """What the JSON API answers an exception with, in this shape."""
    response = ours(error, context)
    if response is not None:
        response.data = _shaped(response.data, response.status_code, getattr(error, "field", ""))
    return response


def failure(event: Failed) -> dict[str, Any]:
    """An answer that broke off, as the last thing that its stream says."""
    return _error(event.detail, event.code, event.status, None)


def _shaped(data: Mapping[str, Any], status: int, field: str) -> dict[str, Any]:
    where = data["errors"][0]["attr"]
    param = _PARAMS.get(where, where)
    return _error(data["detail"], data["code"], status, param or field or None)


def _error(message: str, code: str, status: int, param: str | None) -> dict[str, Any]:
    kind = "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")
    error = {"message": message, "type": kind, "param": param, "code": _CODES.get(code, code)}
    return {"error": error}
