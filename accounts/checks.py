"""Checks of the limits of requests and logins, and of who may sign in by what."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from accounts.rate_limits import parse_rate
from common.checks import SETTINGS


@register(SETTINGS)
def check_rates(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check that each rate limit can be parsed."""
    messages: list[CheckMessage] = []
    for name in (
        *("API_RATE", "API_MODEL_RATE", "LOGIN_RATE", "LOGIN_ADDRESS_RATE"),
        *("MODEL_TOKENS_PER_WORKSPACE", "MODEL_TOKENS_PER_USER"),
    ):
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


_CHOICES = {
    "LOCAL_LOGIN": ("everyone", "owners"),
    "SECOND_FACTOR": ("off", "optional", "owners", "all"),
}
_SLUG = re.compile(r"[a-z0-9_-]{1,30}")
_HEADER = re.compile(r"[A-Za-z0-9-]+")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
#: More addresses than these are hardly one's own proxies.
_MANY_ADDRESSES = 65_536


@register(SETTINGS)
def check_sign_in(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Choices are among those that there are, and servers that vouch for people are described."""
    messages: list[CheckMessage] = [
        Error(
            f"RAGSITE_{name} is “{getattr(settings, name)}”.",
            hint=f"Set it to {', '.join(choices)}, or leave it out.",
            id="accounts.E002",
        )
        for name, choices in _CHOICES.items()
        if getattr(settings, name) not in choices
    ]
    for kind, named in (
        ("OIDC", settings.OIDC_PROVIDERS),
        ("SAML", settings.SAML_PROVIDERS),
        ("PROXY", settings.PROXY_SIGN_IN),
    ):
        for slug, options in named.items():
            messages += [
                Error(f"RAGSITE_{kind}, “{slug}”: {problem}", hint=hint, id="accounts.E003")
                for problem, hint in _problems(kind, slug, options)
            ]
    addresses = settings.PROXY_SIGN_IN.get("proxy", {}).get("addresses", [])
    wide = [each for each in addresses if _size(each) > _MANY_ADDRESSES]
    if wide:
        messages.append(
            Warning(
                f"Whoever connects from {wide[0]} can sign in as anybody.",
                hint="Name the proxy's own addresses in RAGSITE_PROXY_ADDRESSES.",
                id="accounts.W001",
            )
        )
    return messages


def _problems(kind: str, slug: str, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with a server, and the cure."""
    from accounts.models import Role  # noqa: PLC0415 (checks are imported as apps are ready)

    if not _SLUG.fullmatch(slug):
        yield "this is no name for an address.", "Use 1 to 30 of a-z, 0-9, - and _."
    if options["role"] not in Role.values:
        yield f"there is no role “{options['role']}”.", f"There are: {', '.join(Role.values)}."
    if kind == "OIDC":
        url = urlsplit(options["issuer"])
        is_safe = url.scheme == "https" or (url.scheme == "http" and url.hostname in _LOOPBACK)
        if not (is_safe and url.hostname):
            yield f"the issuer is “{options['issuer']}”.", "Give its address, with https."
        if not options["client_id"]:
            yield "it has no client id.", "Give the one that the provider has for this site."
    elif kind == "SAML":
        if not Path(options["metadata"]).is_file():
            yield f"there is no file “{options['metadata']}”.", "Save the server's metadata there."
        if find_spec("onelogin") is None:
            yield "packages are missing.", "pip install -r requirements-saml.txt"
    else:
        yield from _proxy_problems(options)


def _proxy_problems(options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if not options["addresses"]:
        yield "no address is trusted.", "Name the proxy's in RAGSITE_PROXY_ADDRESSES."
    for each in options["addresses"]:
        if not _size(each) or ip_network(each, strict=False).prefixlen == 0:
            yield f"“{each}” is no address of a proxy.", "Write it like 10.0.0.5 or 10.0.0.0/24."
    for name in (options["header"], options["groups"], options["email"]):
        if name and not _HEADER.fullmatch(name):
            yield f"“{name}” is no name of a header.", "Write it like X-Remote-User."


def _size(network: str) -> int:
    """How many addresses it has; 0 for what is none."""
    try:
        return ip_network(network, strict=False).num_addresses
    except ValueError:
        return 0
