"""HTML pages: login required, error pages, cached URLs, and the security headers of all answers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import get_script_prefix, reverse
from django.utils.translation import gettext, gettext_noop
from django_htmx.http import HttpResponseClientRedirect

from common.errors import ExplainedError, RagsiteError
from common.stored_messages import translated_message


def cached_reverse(name: str, *arguments: Any) -> str:
    """`reverse(name, args=arguments)`, cached by script prefix. Not for arguments that differ each
    time, such as ids.
    """
    return _cached_reverse(name, get_script_prefix(), *arguments)


@lru_cache(maxsize=1000)
def _cached_reverse(name: str, prefix: str, *arguments: Any) -> str:
    return reverse(name, args=arguments)


View = Callable[..., HttpResponseBase]

TITLES = {
    400: gettext_noop("The request is invalid"),
    403: gettext_noop("Permission denied"),
    404: gettext_noop("Not found"),
    409: gettext_noop("The data has changed"),
    500: gettext_noop("An error occurred"),
    503: gettext_noop("Part of the site is unavailable"),
}


def login_required_page(view: View) -> View:
    """Decorator of a view for logged-in users; a RagsiteError becomes an error page."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            # The whole page goes to the login, also for an htmx request of a part.
            login = redirect_to_login(request.get_full_path())
            is_part = request.headers.get("HX-Request") == "true"
            return HttpResponseClientRedirect(login.url) if is_part else login
        try:
            return view(request, *args, **kwargs)
        except RagsiteError as error:
            return error_page(request, status=error.status, message=str(error))

    return guarded


@contextmanager
def errors_as_messages(request: HttpRequest, prefix: str = "") -> Iterator[None]:
    """An error that explains itself ends the block and is shown to the user."""
    try:
        yield
    except ExplainedError as error:
        messages.error(request, f"{prefix}{translated_message(str(error))}")


@contextmanager
def errors_in_form(form: Form, field: str | None = None) -> Iterator[None]:
    """A RagsiteError ends the block and is shown in the form: beside the field that it names, if
    the form has that, else beside `field`."""
    try:
        yield
    except RagsiteError as error:
        named = getattr(error, "field", "").partition(".")[0]
        form.add_error(named if named in form.fields else field, str(error))


def error_page(request: HttpRequest, *, status: int, message: str) -> HttpResponse:
    """A page that says what happened and what to do."""
    context = {
        "title": gettext(TITLES.get(status, TITLES[400])),
        "message": message,
        "status": status,
    }
    return render(request, "error.html", context, status=status)


CSP_HEADER = "Content-Security-Policy"
_CSP_BASE = "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
#: Files of this site only; neither inline code nor inline style.
CSP_PAGES = f"default-src 'self'; {_CSP_BASE}"
#: Styles written into the page, and images written into a style.
CSP_STYLED = (
    f"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; {_CSP_BASE}"
)
#: Answers to programs may do nothing in a browser.
CSP_DATA = "default-src 'none'; frame-ancestors 'none'"
#: Downloads may contain anything and are displayed by no browser.
CSP_FILES = f"{CSP_DATA}; sandbox"
#: A drawing has styles of its own, and does nothing.
CSP_IMAGES = f"{CSP_DATA}; style-src 'unsafe-inline'; sandbox"
#: The first prefix of the address that fits; all else is PAGES.
CSP_BY_PREFIX = {
    # django-unfold's Alpine makes functions of its attributes, and colours are written into pages.
    "/admin/": f"{CSP_STYLED}; script-src 'self' 'unsafe-eval'",
    "/api/docs/": CSP_STYLED,  # Swagger's
    "/api/": CSP_DATA,
    "/v1/": CSP_DATA,
    "/v2/": CSP_DATA,
    "/mcp": CSP_DATA,
}
#: Nothing here looks, listens or pays.
PERMISSIONS_POLICY = ", ".join(
    f"{feature}=()"
    for feature in (
        *("accelerometer", "autoplay", "camera", "display-capture", "geolocation", "gyroscope"),
        *("hid", "magnetometer", "microphone", "midi", "payment", "serial", "usb"),
        *("publickey-credentials-get", "screen-wake-lock", "xr-spatial-tracking"),
    )
)


def security_headers(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: set the security headers unless the view has set its own."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        answer = get_response(request)
        # Django's debug pages use inline code.
        if not (settings.DEBUG and answer.status_code in (404, 500)):
            answer.headers.setdefault(CSP_HEADER, csp_for(request.path, answer))
        answer.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        return answer

    return middleware


def with_passkeys(view: View) -> View:
    """Decorator: the page may ask the browser for a passkey."""
    permitted = PERMISSIONS_POLICY.replace(
        "publickey-credentials-get=()", "publickey-credentials-get=(self)"
    )

    @wraps(view)
    def with_header(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        answer = view(request, *args, **kwargs)
        answer.headers["Permissions-Policy"] = permitted
        return answer

    return with_header


def csp_for(path: str, answer: HttpResponseBase) -> str:
    """The Content-Security-Policy of an answer without one of its own."""
    if answer.headers.get("Content-Disposition", "").startswith("attachment"):
        return CSP_FILES
    return next(
        (policy for start, policy in CSP_BY_PREFIX.items() if path.startswith(start)), CSP_PAGES
    )
