"""Addresses of pages: what may be asked for at all, and how they are written as keys."""

import httpx2

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_PORT = 65_535
MAX_CHARACTERS = 1024


class FetchError(Exception):
    """A page that cannot be had; the message says why and the cure."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def checked_url(text: str) -> httpx2.URL:
    """The address as it is asked for and kept: host in lower case, without default port and
    fragment. Raises FetchError for what is no address of a page."""
    try:
        url = httpx2.URL(text.strip())
    except (httpx2.InvalidURL, ValueError) as error:
        raise FetchError("malformed", f"This is no address ({error}). Correct it.") from error
    if url.scheme not in DEFAULT_PORTS or not url.host:
        raise FetchError(
            "malformed", "Only addresses that begin with http:// or https:// are fetched."
        )
    if url.port is not None and not 0 < url.port <= MAX_PORT:
        raise FetchError("malformed", f"There is no port {url.port}. Correct the address.")
    if url.userinfo:
        raise FetchError(
            "malformed", "The address holds a login. Pages behind one are not fetched: upload them."
        )
    port = None if url.port == DEFAULT_PORTS[url.scheme] else url.port
    plain = url.copy_with(fragment=None, port=port, path=url.path or "/")
    if len(str(plain)) > MAX_CHARACTERS:
        raise FetchError("malformed", f"The address has more than {MAX_CHARACTERS:,} characters.")
    return plain
