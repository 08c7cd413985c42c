"""Pages: who may see them, and what they show when something is wrong."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django_htmx.http import HttpResponseClientRedirect

from common.errors import RagsiteError

View = Callable[..., HttpResponseBase]

TITLES = {
    400: "That request cannot be done",
    403: "You may not do this",
    404: "There is nothing here",
    409: "Something changed meanwhile",
    500: "The site made a mistake",
    503: "Part of the site is out of order",
}


def page(view: View) -> View:
    """A view for people who are logged in; a RagsiteError becomes a page with its message."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _to_login(request)
        try:
            return view(request, *args, **kwargs)
        except RagsiteError as error:
            return error_page(request, status=error.status, message=str(error))

    return guarded


def _to_login(request: HttpRequest) -> HttpResponse:
    """The whole page goes to the login, also where only a part of it was asked for."""
    answer = redirect_to_login(request.get_full_path())
    is_part = request.headers.get("HX-Request") == "true"
    return HttpResponseClientRedirect(answer.url) if is_part else answer


def error_page(request: HttpRequest, *, status: int, message: str) -> HttpResponse:
    """A page that says what happened and what to do."""
    context = {"title": TITLES.get(status, TITLES[400]), "message": message, "status": status}
    return render(request, "error.html", context, status=status)
