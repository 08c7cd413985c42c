"""Pages for what went wrong outside a view of ours, and the way into the admin."""

import sys

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import TooManyFilesSent
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache

from common.leases import DatabaseUnavailable
from common.postgresql.base import StatementTimeout
from common.web import error_page


@never_cache
def admin_login(request: HttpRequest) -> HttpResponse:
    """One login for the pages and the admin: it counts failed attempts."""
    if admin.site.has_permission(request):
        return redirect("admin:index")
    if request.user.is_authenticated:
        message = gettext(
            "You are logged in as {username}, without access to the admin. Log in with a"
            " staff account."
        ).format(username=request.user.get_username())
        return error_page(request, status=403, message=message)
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400: Django refused the request before a view saw it."""
    message = gettext(
        "Part of the request could not be read. Go back, reload the page and try again."
    )
    if isinstance(exception, TooManyFilesSent):
        message = gettext(
            "The upload has more than {limit} files, and nothing was stored. Upload"
            " fewer files at a time, or load a directory with `manage.py ingest`."
        ).format(limit=number_format(settings.MAX_UPLOAD_FILES, force_grouping=True))
    return error_page(request, status=400, message=message)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Page for status 403: the user may not do this."""
    return error_page(
        request,
        status=403,
        message=gettext(
            "Your account does not have this permission. Ask an owner of the workspace for it."
        ),
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Page for status 404: the address is unknown."""
    return error_page(
        request,
        status=404,
        message=gettext("The address may be mistyped, or its content was deleted or moved."),
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """500 page that uses neither database nor user, since either may be broken. 503 where the
    database is down: a page that was only read reloads itself until it is back.
    """
    error = sys.exception()
    if isinstance(error, StatementTimeout):
        return error_page(request, status=error.status, message=str(error))
    if not isinstance(error, DatabaseUnavailable.CAUSES):
        return HttpResponse(render_to_string("500.html"), status=500)
    seconds = DatabaseUnavailable.retry_after
    context = {"seconds": seconds if request.method in ("GET", "HEAD") else None}
    answer = HttpResponse(render_to_string("503.html", context), status=503)
    answer.headers["Retry-After"] = str(seconds)
    if context["seconds"]:
        answer.headers["Refresh"] = str(seconds)  # seconds until the browser loads it again
    return answer
