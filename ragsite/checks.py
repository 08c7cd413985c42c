"""Checks of how the site is watched."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from common.checks import SETTINGS

_FORMATS = ("line", "json")
#: Fewer characters can be tried one after another.
_SHORTEST_TOKEN = 16


@register(SETTINGS)
def check_watching(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The form of the log is one, and the token can be sent and not be guessed."""
    messages: list[CheckMessage] = []
    if settings.LOG_FORMAT not in _FORMATS:
        messages.append(
            Error(
                f"LOG_FORMAT is “{settings.LOG_FORMAT}”.",
                hint=f"Set it to {' or '.join(_FORMATS)}, or leave it out.",
                id="ragsite.E001",
            )
        )
    token = settings.METRICS_TOKEN
    is_sendable = token.isascii() and token.isprintable() and " " not in token
    if token and (len(token) < _SHORTEST_TOKEN or not is_sendable):
        messages.append(
            Error(
                "RAGSITE_METRICS_TOKEN is too short, or has spaces or letters beyond ASCII.",
                hint=f"Set it to {_SHORTEST_TOKEN} random characters or more, or leave it out.",
                id="ragsite.E002",
            )
        )
    return messages
