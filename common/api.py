"""One error shape for the whole API: `{type, code, detail, errors[]}`."""

from typing import Any

from drf_standardized_errors.handler import exception_handler as standardized_handler
from rest_framework import exceptions
from rest_framework.response import Response

from common.errors import InvalidInput, RagsiteError


class _ApiError(exceptions.APIException):
    def __init__(self, error: RagsiteError) -> None:
        super().__init__(detail=str(error), code=error.code)
        self.status_code = error.status


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn our own errors into DRF's, then let drf-standardized-errors shape all of them."""
    if isinstance(error, InvalidInput):
        field = error.field or "non_field_errors"
        error = exceptions.ValidationError({field: [str(error)]}, code=error.code)
    elif isinstance(error, RagsiteError):
        error = _ApiError(error)
    response: Response | None = standardized_handler(error, context)
    if response is not None and isinstance(response.data, dict):
        errors = response.data.get("errors") or [{}]
        response.data.setdefault("code", errors[0].get("code"))
        response.data.setdefault("detail", errors[0].get("detail"))
    return response
