"""Requests whose header Content-Type names a character set that cannot be.

Django takes any name there and reads addresses and forms by it: one that holds a NUL, or that is no
character set, such as “hex”, would end in an error that no view can answer.
"""

from codecs import lookup
from contextlib import suppress
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.wsgi import WSGIRequest
from django.utils.http import parse_header_parameters


def readable(content_type: str) -> str:
    """The header as it is, or without its parameters where those name no set of characters."""
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
    """As a web server hands it on."""

    def __init__(self, environ: dict[str, Any]) -> None:
        environ["CONTENT_TYPE"] = readable(environ.get("CONTENT_TYPE", ""))
        super().__init__(environ)


class AsyncRequest(ASGIRequest):
    """As an asynchronous web server hands it on."""

    def __init__(self, scope: dict[str, Any], body_file: Any) -> None:
        headers = [
            (name, readable(value.decode("latin-1")).encode("latin-1"))
            if name == b"content-type"
            else (name, value)
            for name, value in scope.get("headers", ())
        ]
        super().__init__({**scope, "headers": headers}, body_file)
