"""Middleware: a proxy that has authenticated the person names them in a header.

Only listed addresses are believed (RAGSITE_PROXY_ADDRESSES). The same header from elsewhere is
refused: whoever sends it wants to be taken for somebody.
"""

import contextlib
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from django.contrib.auth import logout
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from accounts.audit import Channel
from accounts.credentials import SignInMethod
from accounts.external_people import ExternalPerson, external_user
from accounts.middleware import channel_of
from accounts.providers import Provider, proxy_provider
from accounts.sign_in import METHOD_KEY, SignInRefused, record_refusal, sign_in
from common.web import error_page

#: In the session: whom the proxy named at its beginning.
SUBJECT_KEY = "proxy_subject"


def proxy_sign_in(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Sign in whom the trusted proxy names, and end the session of whom it names no more. Programs
    show keys, and the API takes no header for one.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        provider = proxy_provider()
        if provider is None or channel_of(request.path) not in (Channel.PAGE, Channel.ADMIN):
            return get_response(request)
        subject = _header(request, provider.username)
        if subject and not _is_trusted(request, provider):
            message = gettext("The site does not accept sign-ins from this address.")
            return error_page(request, status=403, message=message)
        session = request.session
        is_of_proxy = session.get(METHOD_KEY) == SignInMethod.PROXY
        if is_of_proxy and session.get(SUBJECT_KEY) != subject:
            logout(request)
        if subject and not request.user.is_authenticated:
            try:
                user = external_user(provider=provider, person=_person(request, provider, subject))
            except SignInRefused as error:
                record_refusal(reason=error.reason, method=SignInMethod.PROXY)
                return error_page(request, status=error.status, message=str(error))
            sign_in(request, user, method=SignInMethod.PROXY)
            request.session[SUBJECT_KEY] = subject
        return get_response(request)

    return middleware


def _is_trusted(request: HttpRequest, provider: Provider) -> bool:
    """Whether the request comes from the proxy: by the address that connects, never by a header."""
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return any(address in network for network in _networks(provider.addresses))


@lru_cache(maxsize=4)
def _networks(addresses: tuple[str, ...]) -> list[IPv4Network | IPv6Network]:
    return [ip_network(each, strict=False) for each in addresses]


def _header(request: HttpRequest, name: str) -> str:
    """The header's text, as UTF-8 where it is that; empty without one."""
    value: str = request.META.get(f"HTTP_{name.upper().replace('-', '_')}", "") if name else ""
    with contextlib.suppress(UnicodeError):
        value = value.encode("latin-1").decode()
    return value.replace("\0", "").strip()


def _person(request: HttpRequest, provider: Provider, subject: str) -> ExternalPerson:
    groups = None
    if provider.groups:
        told = _header(request, provider.groups).replace(";", ",").split(",")
        groups = frozenset(each.strip() for each in told if each.strip())
    email = _header(request, provider.email)
    return ExternalPerson(
        subject=subject,
        username=subject,
        email=email,
        is_email_verified=bool(email),  # the proxy is believed in all that it says
        groups=groups,
    )
