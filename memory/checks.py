"""System checks of memory's settings: a mistake in a quota must not delete anybody's memory."""

from typing import Any

from django.core.checks import CheckMessage, register

from common.checks import SETTINGS, out_of_bounds

_SHARES = ("THRESHOLD", "RECENCY_WEIGHT")
_NO_LIMIT_AT_ZERO = ("USER_ROWS", "USER_BYTES", "WORKSPACE_ROWS", "WORKSPACE_BYTES")
_AT_LEAST_ONE = (
    "MAX_FACTS",
    "EXTRACTION_MIN_TURNS",
    "EXTRACTION_MAX_TURNS",
    "EXTRACTION_MAX_TOKENS",
    "EXTRACTION_QUEUE_LIMIT",
    "EXTRACTION_MAX_ATTEMPTS",
    "EXTRACTION_MAX_OUTAGES",
)
_POSITIVE = ("HALF_LIFE_DAYS", "EXTRACTION_SECONDS", "EXTRACTION_RETRY_SECONDS")
_NOT_NEGATIVE = (
    "INJECTION_TOKENS",
    "EXTRACTION_IDLE_SECONDS",
    "EXTRACTION_FEW_IDLE_SECONDS",
    "EXTRACTION_TEMPERATURE",
)


@register(SETTINGS)
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Fractions are 0 to 1, limits are not negative, durations are positive."""
    return [
        *_wrong(_SHARES, "memory.E001", "Set it to a number from 0 to 1.", minimum=0, maximum=1),
        *_wrong(
            _NO_LIMIT_AT_ZERO, "memory.E002", "Set it to 0 for no limit, or to one.", minimum=0
        ),
        *_wrong(_AT_LEAST_ONE, "memory.E003", "Set it to 1 or more, or leave it out.", minimum=1),
        *_wrong(_POSITIVE, "memory.E004", "Set it to more than 0, or leave it out.", minimum=1e-9),
        *_wrong(_NOT_NEGATIVE, "memory.E005", "Set it to 0 or more, or leave it out.", minimum=0),
    ]


def _wrong(names: tuple[str, ...], number: str, hint: str, **bounds: float) -> list[CheckMessage]:
    return out_of_bounds([f"MEMORY_{name}" for name in names], number, hint, **bounds)
