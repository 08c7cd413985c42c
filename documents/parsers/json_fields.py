"""Reading a JSON object field by field, with errors that name the field and the cure."""

import json
from typing import Any, NoReturn

from documents.parsers.base import ParseError
from documents.parsers.metadata import MetadataTooLargeError, json_safe

#: What PostgreSQL calls an integer.
MAX_INTEGER = 2**31 - 1


def load_object(data: bytes) -> dict[str, Any]:
    """The object that a file or record in UTF-8 holds, its strings normalised."""
    if not data.strip():
        raise ParseError("empty", "The file is empty. Write the chunk again.")
    try:
        text = data.decode("utf-8-sig")
        value = json.loads(text, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise ParseError(
            "malformed", f"Byte {error.start} is not UTF-8. Save the file as UTF-8."
        ) from error
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(error.doc.rstrip())
        raise ParseError(
            "truncated" if at_end else "malformed",
            f"Not valid JSON{', it ends too early' if at_end else ''}: {error.msg} "
            f"(line {error.lineno}, column {error.colno}). Write the file again.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise ParseError("malformed", f"Not usable JSON: {error}. Write the file again.") from error
    try:
        value = json_safe(value)
    except MetadataTooLargeError as error:
        raise ParseError(
            "malformed", "The JSON is nested too deep or too large. Keep one chunk to a record."
        ) from error
    if not isinstance(value, dict):
        raise ParseError("malformed", "The JSON is no object. Write one chunk as an object.")
    return value


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


class Fields:
    """A JSON object whose fields are asked for by type; `path` leads to it from the file."""

    def __init__(self, values: dict[str, Any], path: str = "") -> None:
        self.values = values
        self._path = path

    def text(self, key: str, *, cure: str) -> str:
        value = self.optional_text(key).strip()
        if not value:
            raise self._error(key, "is missing or empty", cure)
        return value

    def optional_text(self, key: str) -> str:
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self._error(key, f"is {_kind(value)}", "Make it a string.")
        return value or ""

    def optional_positive(self, key: str, *, most: int, cure: str) -> int | None:
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._error(key, f"is {_kind(value)}", "Make it a whole number above 0.")
        if value <= 0:
            raise self._error(key, f"is {value}, it must be above 0", cure)
        if value > most:
            raise self._error(key, f"is larger than {most:,}, the bytes of the record", cure)
        return value

    def mapping(self, key: str) -> "Fields":
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            raise self._error(key, f"is {_kind(value)}", "Make it an object.")
        return Fields(value or {}, f"{self._path}{key}.")

    def texts(self, key: str) -> list[str]:
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return [value] if value else []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._error(key, f"is {_kind(value)}", "Make it a list of strings.")
        return value

    def _error(self, key: str, problem: str, cure: str) -> ParseError:
        return ParseError("malformed", f"{self._path}{key} {problem}. {cure}")


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a fraction", str: "a string"}
    return names.get(
        type(value), "a list of mixed things" if isinstance(value, list) else "an object"
    )
