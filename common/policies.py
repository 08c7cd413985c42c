"""What browsers may do with an answer: headers of the whole site, stricter than any page needs.

Django 6.0 sends such policies itself; until then this is all of `django-csp` that is needed here.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

CSP = "Content-Security-Policy"
_FENCE = "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
#: Files of this site only; neither inline code nor inline style.
PAGES = f"default-src 'self'; {_FENCE}"
#: Styles written into the page, and images written into a style.
STYLED = f"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; {_FENCE}"
#: What an answer to a program may do in a browser: nothing.
DATA = "default-src 'none'; frame-ancestors 'none'"
#: What is taken along may hold anything, and is shown by nobody.
FILES = f"{DATA}; sandbox"
#: A drawing has styles of its own, and does nothing.
PICTURES = f"{DATA}; style-src 'unsafe-inline'; sandbox"
#: The first prefix of the address that fits; all else is PAGES.
POLICIES = {
    # django-unfold's Alpine makes functions of its attributes, and colours are written into pages.
    "/admin/": f"{STYLED}; script-src 'self' 'unsafe-eval'",
    "/api/docs/": STYLED,  # Swagger's
    "/api/": DATA,
    "/v1/": DATA,
    "/v2/": DATA,
    "/mcp": DATA,
}
#: Nothing here looks, listens or pays.
PERMISSIONS = ", ".join(
    f"{feature}=()"
    for feature in (
        *("accelerometer", "autoplay", "camera", "display-capture", "geolocation", "gyroscope"),
        *("hid", "magnetometer", "microphone", "midi", "payment", "serial", "usb"),
        *("publickey-credentials-get", "screen-wake-lock", "xr-spatial-tracking"),
    )
)


def policies(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Say them with each answer, unless a view has said its own."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        answer = get_response(request)
        if not _is_for_developers(answer):
            answer.headers.setdefault(CSP, policy_of(request.path, answer))
        answer.headers.setdefault("Permissions-Policy", PERMISSIONS)
        return answer

    return middleware


def policy_of(path: str, answer: HttpResponseBase) -> str:
    """What holds for an answer that says nothing of its own."""
    if answer.headers.get("Content-Disposition", "").startswith("attachment"):
        return FILES
    return next((policy for start, policy in POLICIES.items() if path.startswith(start)), PAGES)


def _is_for_developers(answer: HttpResponseBase) -> bool:
    """Django's pages with the source, which are made of inline code."""
    return settings.DEBUG and answer.status_code in (404, 500)
