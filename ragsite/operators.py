"""Who runs the site: staff who are logged in, and programs that show RAGSITE_METRICS_TOKEN."""

from secrets import compare_digest

from django.conf import settings
from django.http import HttpRequest

from accounts.authentication import bearer


def is_operator(request: HttpRequest, *, by_session: bool = True) -> bool:
    """Whether one of them asks. `by_session=False` where the database cannot be asked who it is."""
    token, shown = settings.METRICS_TOKEN, bearer(request)
    if token and shown is not None:
        return compare_digest(shown.encode(), token.encode())
    if not by_session or settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return False
    user = request.user
    return bool(user.is_authenticated and user.is_active and user.is_staff)
