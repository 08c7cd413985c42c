"""System checks of monitoring and fusion settings, and when Django's own checks of pages run."""

import os
from typing import Any

from django.conf import settings
from django.contrib.admin.checks import check_admin_app
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks.registry import registry
from django.urls import get_resolver

from common.checks import SETTINGS
from common.errors import InvalidInput

_FORMATS = ("line", "json")
#: Fewer characters can be tried one after another.
_MIN_TOKEN_CHARACTERS = 16


@register(SETTINGS)
def check_monitoring(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The log format is known, and the metrics token can be sent and not be guessed."""
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
    if token and (len(token) < _MIN_TOKEN_CHARACTERS or not is_sendable):
        messages.append(
            Error(
                "RAGSITE_METRICS_TOKEN is too short, or has spaces or letters beyond ASCII.",
                hint=f"Set it to {_MIN_TOKEN_CHARACTERS} random characters or more, or"
                " leave it out.",
                id="ragsite.E002",
            )
        )
    return messages


_FUSION = ("RAGSITE_FUSION", "RAGSITE_RRF_K", "RAGSITE_FUSION_WEIGHTS", "RAGSITE_SEARCH_DEPTH")


@register(SETTINGS)
def check_fusion(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The options of fusion are valid, if some were set."""
    if os.environ.keys().isdisjoint(_FUSION):
        return []
    from common.fusion_options import FusionOptions  # noqa: PLC0415 (loads pydantic)

    try:
        FusionOptions.of_site(settings)
    except InvalidInput as error:
        return [Error(str(error), hint=f"See {', '.join(_FUSION)}.", id="ragsite.E003")]
    return []


@register(Tags.admin, deploy=True)
def check_admin_pages(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Django's own check of the admin, after the URLs have registered the models."""
    _ = get_resolver().url_patterns
    messages: list[CheckMessage] = check_admin_app(app_configs, **kwargs)
    return messages


def skip_page_checks() -> None:
    """Run the checks of URLs, admin and templates only with `--deploy`, as `make check` does: they
    import every page, which takes three seconds.
    """
    of_pages = {
        check
        for check in registry.registered_checks
        if not {Tags.urls, Tags.admin, Tags.templates}.isdisjoint(check.tags)
    }
    registry.registered_checks -= of_pages
    registry.deployment_checks |= of_pages - {check_admin_app}
