"""Addresses of pages that need no arguments: a page names some of them dozens of times."""

from functools import cache

from django.urls import get_script_prefix, reverse


def address(name: str) -> str:
    """`reverse(name)`, worked out once for each prefix that the site is served below."""
    return _address(name, get_script_prefix())


@cache
def _address(name: str, prefix: str) -> str:
    return reverse(name)
