"""Takes out of a text what no log and no status page may hold: secrets, and what rows say."""

import os
import re
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings

HIDDEN = "…"
#: Of our settings and of the libraries that read the environment themselves.
_VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PGPASSWORD", "OTEL_EXPORTER_OTLP_HEADERS")
#: Shorter ones stand in texts by chance.
_SHORTEST = 6
_PATTERNS = (
    (re.compile(r"://[^\s/@:]*:[^\s/@]+@"), f"://{HIDDEN}@"),  # the login in an address
    (re.compile(r"\b(rs_|sk-)[A-Za-z0-9_-]{8,}"), rf"\1{HIDDEN}"),
    (re.compile(r"\b(bearer|basic) [A-Za-z0-9._~+/=-]{16,}", re.I), rf"\1 {HIDDEN}"),
    (
        re.compile(r"\b(password|api_key|secret|token)(['\"]?[=:] ?)[^\s,;&)}\]]+", re.I),
        rf"\1\2{HIDDEN}",
    ),
    # PostgreSQL quotes the row that it refuses, and so a document.
    (re.compile(r"^(\s*(?:DETAIL|CONTEXT|LINE \d+):).*$", re.M), rf"\1 {HIDDEN}"),
)


def clean(text: str) -> str:
    """`text` without them."""
    for secret in _secrets():
        text = text.replace(secret, HIDDEN)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


@lru_cache(maxsize=1)
def _secrets() -> tuple[str, ...]:
    """Longest first, so that none is left of another's end."""
    known = {settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS, settings.METRICS_TOKEN}
    known |= {str(each.get("PASSWORD", "")) for each in settings.DATABASES.values()}
    known |= {unquote(urlsplit(settings.REDIS_URL).password or "")}
    known |= {os.environ.get(name, "") for name in _VARIABLES}
    known |= set(_api_keys(settings.INFERENCE))
    return tuple(sorted((each for each in known if len(each) >= _SHORTEST), key=len, reverse=True))


def _api_keys(given: Any) -> list[str]:
    if not isinstance(given, dict):
        return []
    own = [str(value) for name, value in given.items() if name == "api_key" and value]
    return own + [key for value in given.values() for key in _api_keys(value)]
