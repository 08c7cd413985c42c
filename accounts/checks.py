"""Checks of the limits of requests and logins."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from accounts.rate_limits import parse_rate
from common.checks import SETTINGS


@register(SETTINGS)
def check_rates(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that each rate limit can be parsed."""
    messages: list[CheckMessage] = []
    for name in ("API_RATE", "API_MODEL_RATE", "LOGIN_RATE", "LOGIN_ADDRESS_RATE"):
        try:
            parse_rate(getattr(settings, name))
        except ValueError as error:
            messages.append(
                Error(
                    f"RAGSITE_{name} is wrong: {error}",
                    hint="Write it like 600/minute: per second, minute, hour or day. 0: no limit.",
                    id="accounts.E001",
                )
            )
    return messages
