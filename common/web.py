"""Pages: who may see them, and what they show when something is wrong."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from common.errors import RagsiteError

View = Callable[..., HttpResponse]

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

    @login_required
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except RagsiteError as error:
            return error_page(request, status=error.status, message=str(error))

    return guarded


def error_page(request: HttpRequest, *, status: int, message: str) -> HttpResponse:
    """A page that says what happened and what to do."""
    context = {"title": TITLES.get(status, TITLES[400]), "message": message, "status": status}
    return render(request, "error.html", context, status=status)
