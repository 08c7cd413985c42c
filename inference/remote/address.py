"""Where a model server is and what opens it: addresses, keys and proxies, looked at before use."""

import re
import urllib.request

import httpx2

from inference.base import BackendUnavailable


def versioned(base_url: str) -> str:
    """`base_url` with `/v1` after it, unless it names a version of the API already."""
    base_url = base_url.strip().rstrip("/")
    return base_url if re.search(r"/v\d\w*(/|$)", base_url) else f"{base_url}/v1"


def checked_url(base_url: str) -> httpx2.URL:
    try:
        url = httpx2.URL(base_url.strip().rstrip("/"))
    except httpx2.InvalidURL as error:
        raise BackendUnavailable(f"base_url is no address ({error}): correct it.") from error
    if url.scheme not in {"http", "https"} or not url.host or url.query or url.fragment:
        raise BackendUnavailable(
            "base_url must look like https://host:port/path, without a query: correct it."
        )
    return url


def checked_path(path: str) -> str:
    if not re.fullmatch(r"/[!-~]*", path) or "#" in path:
        raise BackendUnavailable(
            "path must look like /embeddings or /embeddings?api-version=…: correct it."
        )
    return path


def checked_header(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]+", name):
        raise BackendUnavailable("key_header must be a header's name, such as api-key: correct it.")
    return name


def checked_key(api_key: str) -> str:
    # HTTPX would name the offending value, which is the key, in its own error.
    if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise BackendUnavailable(
            "the API key holds a character that keys do not have, such as a blank or a line break:"
            " copy it again."
        )
    return api_key


def environment_proxy(url: httpx2.URL) -> str | None:
    """From HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, which Client reads only for a transport
    of its own making."""
    if urllib.request.proxy_bypass(url.host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(url.scheme) or proxies.get("all")
