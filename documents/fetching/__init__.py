"""Documents from the web, fetched without being led into the network that the site is in."""

from documents.fetching.addresses import is_public, look_up
from documents.fetching.fetch import Fetched, fetch
from documents.fetching.urls import FetchError, checked_url

__all__ = ["FetchError", "Fetched", "checked_url", "fetch", "is_public", "look_up"]
