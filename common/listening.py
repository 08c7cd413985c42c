"""Where `manage.py up` listens: `listen_defaults`, and the address of the site there."""

import os

_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # nosec B104  # noqa: S104 - only read


def listen_defaults() -> tuple[str, str]:
    """Address and port: BIND and PORT of the environment, or 127.0.0.1 and 8000."""
    return os.environ.get("BIND") or "127.0.0.1", os.environ.get("PORT") or "8000"


def site_url(bind: str, port: int | str) -> str:
    """The site's address in a browser of this machine, without a slash at its end."""
    return f"http://{bracketed(reachable_host(bind))}:{port}"


def reachable_host(bind: str) -> str:
    return "localhost" if bind in _EVERY_ADDRESS else bind


def bracketed(host: str) -> str:
    """As URLs write it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host
