"""Parsers of request bodies: bounded JSON."""

from collections.abc import Mapping
from hashlib import sha256
from typing import IO, Any

from django.utils.translation import gettext
from rest_framework import exceptions, parsers, status

from common import bounded_json
from common.errors import InvalidInput

IDEMPOTENCY_KEY = "Idempotency-Key"
MAX_JSON_BYTES = 10 * 1024 * 1024


class BodyTooLarge(exceptions.APIException):
    """The JSON body exceeds the limit."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"
    default_detail = f"A JSON body may have {MAX_JSON_BYTES:,} bytes. Send a longer text as a file."


class JSONParser(parsers.BaseParser):
    """UTF-8 JSON objects of bounded size, depth and width."""

    media_type = "application/json"
    max_bytes = MAX_JSON_BYTES
    too_large = BodyTooLarge.default_detail

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        body = stream.read(self.max_bytes + 1)
        if len(body) > self.max_bytes:
            raise BodyTooLarge(self.too_large)
        self.note(body, parser_context)
        try:
            value = self.value(body.decode())
        except UnicodeDecodeError as error:
            raise exceptions.ParseError(gettext("The body is not UTF-8.")) from error
        except InvalidInput as error:
            if error.field:
                raise
            raise exceptions.ParseError(str(error)) from error
        if not isinstance(value, dict):
            raise exceptions.ParseError(
                gettext("The body must be a JSON object, as in {“name”: …}.")
            )
        return value

    def note(self, body: bytes, context: Mapping[str, Any] | None) -> None:
        """Store the body's SHA-256 on a request with an Idempotency-Key."""
        request = (context or {}).get("request")
        if request is not None and IDEMPOTENCY_KEY in request.headers:
            request.body_sha256 = sha256(body).hexdigest()

    def value(self, text: str) -> Any:
        """The parsed and checked value; raises InvalidInput."""
        return bounded_json.parse(text)
