"""Pages for what went wrong outside a view of ours."""

import sys

from django.conf import settings
from django.core.exceptions import TooManyFilesSent
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from common.web import error_page


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400: Django refused the request before a view saw it."""
    message = "Part of the request could not be read. Go back, reload the page and try again."
    if isinstance(exception, TooManyFilesSent):
        message = (
            f"More than {settings.MAX_UPLOAD_FILES:,} files were sent at once; nothing was stored."
            " Send them in parts, or load a directory with `manage.py ingest`."
        )
    return error_page(request, status=400, message=message)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403."""
    return error_page(
        request,
        status=403,
        message="Your account may not do this. Ask an owner of the workspace for the right to.",
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404."""
    return error_page(
        request,
        status=404,
        message="The address may be mistyped, or what it named was deleted or moved.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """500: without the database and without the user, because either may be what is broken. 503
    where it is known to be the database."""
    if isinstance(sys.exception(), OperationalError):
        answer = HttpResponse(render_to_string("503.html"), status=503)
        answer.headers["Retry-After"] = "30"
        return answer
    return HttpResponse(render_to_string("500.html"), status=500)
