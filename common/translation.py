"""Texts of modules that know no Django (see `.importlinter`): English and its numbers, until
Django's functions are set.
"""

from collections.abc import Callable


class _Functions:
    gettext: Callable[[str], str] = str
    format_number: Callable[[float, int], str] = "{:,.{}f}".format


def use_functions(
    *, gettext: Callable[[str], str], format_number: Callable[[float, int], str]
) -> None:
    """Have texts and numbers written in the language of the page."""
    _Functions.gettext = staticmethod(gettext)
    _Functions.format_number = staticmethod(format_number)


def gettext(message: str) -> str:
    """The message in the language of the page."""
    return _Functions.gettext(message)


def gettext_noop(message: str) -> str:
    """Marks a message that is translated where it is shown."""
    return message


def format_number(number: float, digits: int = 0) -> str:
    """A number in groups of three digits, rounded to so many decimals. (Django's own
    `number_format` cuts decimals off: 0.96 would be 0.9.)"""
    return _Functions.format_number(round(number, digits), digits)
