"""Requests that tolerate an invalid charset in Content-Type.

Django decodes URLs and forms by any charset named there: one with a NUL, or a codec that is no
charset, such as “hex”, would raise an error that no view can handle.
"""

from codecs import lookup
from contextlib import suppress
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.wsgi import WSGIRequest
from django.utils.http import parse_header_parameters


def readable_content_type(content_type: str) -> str:
    """The header, without its parameters where they name an unusable charset."""
    kind, semicolon, _ = content_type.partition(";")
    return content_type if not semicolon or _is_readable(content_type) else kind.strip()


def _is_readable(content_type: str) -> bool:
    try:
        _, parameters = parse_header_parameters(content_type)
        charset = parameters.get("charset", "")
        lookup(charset)
    except LookupError:
        return True  # none, or one that is not known: Django passes it over
    except ValueError:
        return False
    with suppress(LookupError, ValueError):
        # “hex” and “undefined” are known, and read no text
        return b"a=1&b".decode(charset, "replace") == "a=1&b"
    return False


class Request(WSGIRequest):
    """A WSGI request with a usable charset."""

    def __init__(self, environ: dict[str, Any]) -> None:
        environ["CONTENT_TYPE"] = readable_content_type(environ.get("CONTENT_TYPE", ""))
        super().__init__(environ)


class AsyncRequest(ASGIRequest):
    """An ASGI request with a usable charset."""

    def __init__(self, scope: dict[str, Any], body_file: Any) -> None:
        headers = [
            (name, readable_content_type(value.decode("latin-1")).encode("latin-1"))
            if name == b"content-type"
            else (name, value)
            for name, value in scope.get("headers", ())
        ]
        super().__init__({**scope, "headers": headers}, body_file)
