"""Addresses of pages, of which a page names some dozens of times."""

from functools import lru_cache
from typing import Any

from django.urls import get_script_prefix, reverse


def address(name: str, *arguments: Any) -> str:
    """`reverse(name, args=arguments)`, worked out once for each prefix that the site is served
    below. What is different each time, as ids are, is better put in by hand."""
    return _address(name, get_script_prefix(), *arguments)


@lru_cache(maxsize=1000)
def _address(name: str, prefix: str, *arguments: Any) -> str:
    return reverse(name, args=arguments)
