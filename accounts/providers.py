"""Servers that vouch for people, and what becomes of those people here. Begin with `providers`."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from django.conf import settings

from accounts.credentials import SignInMethod
from accounts.models import Role
from accounts.services import DEFAULT_WORKSPACE


@dataclass(frozen=True, slots=True)
class Provider:
    """One server. `issuer` is what its people are known by here: an address, or of SAML the slug.
    `username`, `email` and `groups` name its claims, attributes or headers; the
    fields from `create` on say what becomes of the people (docs/how-to/sign-in.md).
    """

    slug: str
    method: SignInMethod
    issuer: str
    name: str = ""
    username: str = ""
    email: str = ""
    groups: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()
    metadata: str = ""
    addresses: tuple[str, ...] = ()
    create: bool = True
    workspace: str = DEFAULT_WORKSPACE
    role: str = Role.VIEWER
    link_by_email: bool = False
    domains: tuple[str, ...] = ()
    allowed_groups: tuple[str, ...] = ()
    session_hours: float = 12.0

    @property
    def label(self) -> str:
        """As the button of the login page names it."""
        return self.name or self.slug

    @property
    def networks(self) -> list[IPv4Network | IPv6Network]:
        """Addresses of the proxy. Raises ValueError."""
        return [ip_network(each) for each in self.addresses]


_OPTIONS = {each.name for each in fields(Provider)}
#: Names that most servers use.
_USUAL: dict[str, dict[str, Any]] = {
    SignInMethod.OIDC: {
        "username": "preferred_username",
        "email": "email",
        "scopes": ["openid", "profile", "email"],
    },
    SignInMethod.SAML: {},
    SignInMethod.PROXY: {"issuer": "proxy"},
}


def _provider(method: SignInMethod, slug: str, options: dict[str, Any]) -> Provider:
    given = {name: value for name, value in options.items() if value or value is False}
    if method == SignInMethod.PROXY:
        given["username"] = options["header"]
    usual = {"issuer": "", **_USUAL[method]}
    told: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in {**usual, **given}.items()
        if name in _OPTIONS
    }
    told["issuer"] = told["issuer"].rstrip("/")
    if method == SignInMethod.SAML:
        told["issuer"] = f"saml:{slug}"
    return Provider(slug=slug, method=method, **told)


def providers() -> Iterator[Provider]:
    """Those that the login page offers."""
    for slug, options in settings.OIDC_PROVIDERS.items():
        yield _provider(SignInMethod.OIDC, slug, options)
    for slug, options in settings.SAML_PROVIDERS.items():
        yield _provider(SignInMethod.SAML, slug, options)


def find_provider(method: SignInMethod, slug: str) -> Provider | None:
    return next((each for each in providers() if (each.method, each.slug) == (method, slug)), None)


def proxy_provider() -> Provider | None:
    """The proxy that names people in a header, if the settings trust one."""
    options = settings.PROXY_SIGN_IN.get("proxy")
    return _provider(SignInMethod.PROXY, "proxy", options) if options else None
