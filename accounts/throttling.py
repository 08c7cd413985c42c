"""Requests of programs are limited by the key, or the user, that they are made with.

There are two quotas: one for requests that have a chat model, an embedder or a reranker work for
the caller, and one for all others.
"""

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts.models import ApiKey
from accounts.rates import Quota, TooManyRequests, parse_rate, take
from common.wording import counted

REQUESTS, MODELS = "requests", "models"


class RateThrottle(BaseThrottle):
    """Counts each request once. A view says with `asks_model` which quota it counts towards."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Raises TooManyRequests. Nobody's requests get no further than the login anyway."""
        if request.user is None or not request.user.is_authenticated:
            return True
        name = MODELS if getattr(view, "asks_model", False) else REQUESTS
        rate = parse_rate(settings.API_MODEL_RATE if name == MODELS else settings.API_RATE)
        quota = take(caller=_caller(request), name=name, rate=rate) if rate else None
        if quota is not None:
            view.quota_headers = headers(name, quota)
            if not quota.passes:
                raise _refusal(name, quota)
        return True


def headers(name: str, quota: Quota) -> dict[str, str]:
    """What clients are told: draft-ietf-httpapi-ratelimit-headers, which says what it counts in
    seconds from now, where the many `X-RateLimit-` headers differ in what they mean."""
    return {
        "RateLimit-Policy": f'"{name}";q={quota.rate.limit};w={quota.rate.seconds}',
        "RateLimit": f'"{name}";r={quota.remaining};t={quota.reset}',
    }


def _caller(request: Request) -> str:
    is_key = isinstance(request.auth, ApiKey)
    return f"key:{request.auth.pk}" if is_key else f"user:{request.user.pk}"


def _refusal(name: str, quota: Quota) -> TooManyRequests:
    wait = max(1, quota.wait)
    what = "requests that have a model work" if name == MODELS else "requests"
    return TooManyRequests(
        f"You may make {quota.rate}, of {what}, and have. Try again in {counted(wait, 'second')}.",
        retry_after=wait,
    )
