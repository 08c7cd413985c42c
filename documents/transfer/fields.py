"""The fields of a line from a file that anybody may have written."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INT4 = 2**31 - 1
INT8 = 2**63 - 1
SHA256 = re.compile("[0-9a-f]{64}")


class BrokenLine(ValueError):
    """A line that says something that cannot be."""


@dataclass(frozen=True, slots=True)
class Fields:
    """A line's values by name; each method raises BrokenLine unless the value is such a one."""

    values: Mapping[str, Any]

    def text(self, name: str, longest: int, *, shortest: int = 0) -> str:
        """A string of so many characters."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise BrokenLine(f"“{name}” must be text")
        if not shortest <= len(value) <= longest:
            raise BrokenLine(f"“{name}” must have {shortest} to {longest:,} characters")
        return value

    def optional_text(self, name: str, longest: int, *, default: str) -> str:
        """A string, or `default` where there is none: files of earlier releases lack the field."""
        return self.text(name, longest) if name in self.values else default

    def number(self, name: str, *, least: int = 0, most: int = INT4) -> int:
        """A whole number."""
        value = self.values.get(name)
        if type(value) is not int or not least <= value <= most:
            raise BrokenLine(f"“{name}” must be a whole number from {least} to {most:,}")
        return value

    def optional_number(self, name: str) -> int | None:
        """A whole number, or nothing."""
        return None if self.values.get(name) is None else self.number(name)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.values.get(name)
        if not isinstance(value, bool):
            raise BrokenLine(f"“{name}” must be true or false")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        """An object."""
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise BrokenLine(f"“{name}” must be an object")
        return value

    def texts(self, name: str, longest: int) -> list[str]:
        """A list of strings."""
        value = self.values.get(name)
        if not isinstance(value, list) or not all(
            isinstance(part, str) and len(part) <= longest for part in value
        ):
            raise BrokenLine(f"“{name}” must be a list of texts of at most {longest:,} characters")
        return value

    def optional_texts(self, name: str, longest: int) -> list[str] | None:
        """A list of strings, or nothing."""
        return None if self.values.get(name) is None else self.texts(name, longest)

    def digest(self, name: str) -> str:
        """A SHA-256 in hexadecimal digits, or an empty string."""
        value = self.text(name, 64)
        if value and not SHA256.fullmatch(value):
            raise BrokenLine(f"“{name}” must be a SHA-256 in lower-case hexadecimal digits")
        return value
