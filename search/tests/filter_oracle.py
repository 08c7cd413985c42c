"""What a filter in JSON form means, said a second time in plain Python, to hold the SQL against."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from documents.languages import CONFIGURATIONS

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
TEXTS: dict[str, Callable[[str, str], bool]] = {
    "$contains": lambda whole, part: part in whole,
    "$startswith": str.startswith,
    "$endswith": str.endswith,
}


@dataclass
class Row:
    """A passage with what may be asked of it."""

    metadata: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    source: str = ""
    media_type: str = "text/plain"
    chunk: str = ""
    heading: tuple[str, ...] = ()
    page: int | None = None
    language: str = "en"
    configuration: str = "english"
    created: datetime = datetime(2024, 5, 31, 12, tzinfo=UTC)
    collection: str = "notes"
    url: str = ""
    said: dict[str, Any] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """The site of its address, or the folder of its source."""
        if self.url:
            return (urlsplit(self.url).hostname or "").removeprefix("www.")
        return self.source.rpartition("/")[0]

    @property
    def dated(self) -> datetime:
        """What the first of its document's dates says, or when it was brought."""
        for key in DATE_KEYS:
            found = DAY.search(str(self.said.get(key, "")))
            if found:
                year, month, day = (int(part or 1) for part in found.groups())
                return datetime(year, month, 1, tzinfo=UTC) + timedelta(days=day - 1)
        return self.created


DATE_KEYS = ["date", "published", "published_at", "issued", "year", "created", "created_at"]
DAY = re.compile(r"\b([12][0-9]{3})(?:-(0[1-9]|1[0-2])(?:-(0[1-9]|[12][0-9]|3[01]))?)?(?![0-9])")


def holds(asked: Mapping[str, Any], row: Row) -> bool:
    """Whether `row` is what `asked` wants."""
    return all(_entry(key, value, row) for key, value in asked.items())


def _entry(key: str, value: Any, row: Row) -> bool:
    match key:
        case "$and":
            return all(holds(part, row) for part in value)
        case "$or":
            return any(holds(part, row) for part in value)
        case "$not":
            return not holds(value, row)
        case _:
            return _conditions(key, value, row)


def _conditions(path: str, value: Any, row: Row) -> bool:
    conditions = value if isinstance(value, dict) else {"$eq": value}
    return all(
        not _conditions(path, wanted, row) if name == "$not" else _passes(path, name, wanted, row)
        for name, wanted in conditions.items()
    )


def _passes(path: str, name: str, wanted: Any, row: Row) -> bool:
    if name in {"$ne", "$nin"}:
        return not _passes(path, {"$ne": "$eq", "$nin": "$in"}[name], wanted, row)
    if name == "$in":
        return any(_passes(path, "$eq", each, row) for each in wanted)
    if name == "$exists" or wanted is None:
        return _exists(path, row) is (wanted is True)
    if path in {"language", "lang"}:
        return _speaks(row, wanted)
    if path in {"created", "dated"}:
        return _at(getattr(row, path), name, wanted)
    return any(_compares(value, name, wanted) for value in _values(path, row))


def _exists(path: str, row: Row) -> bool:
    if path in {"language", "lang"}:
        return row.language != ""
    if path in COLUMNS:
        return COLUMNS[path](row) not in ("", None, ())
    return any(value is not None for value in _found(path, row))


def _values(path: str, row: Row) -> list[Any]:
    """Each element where there is a list."""
    found = [COLUMNS[path](row)] if path in COLUMNS else _found(path, row)
    return [
        element
        for value in found
        for element in (value if isinstance(value, list | tuple) else [value])
    ]


COLUMNS: dict[str, Callable[[Row], Any]] = {
    "title": lambda row: row.title,
    "source": lambda row: row.source,
    "media_type": lambda row: row.media_type,
    "chunk": lambda row: row.chunk,
    "heading": lambda row: row.heading,
    "chapter": lambda row: row.heading[0] if row.heading else None,
    "section": lambda row: row.heading[1] if len(row.heading) > 1 else None,
    "page": lambda row: row.page,
    "collection": lambda row: row.collection,
    "created": lambda row: row.created,
    "dated": lambda row: row.dated,
    "origin": lambda row: row.origin,
}


def _found(path: str, row: Row) -> list[Any]:
    """What stands at the end of a path; a list on the way stands for its objects."""
    found: list[Any] = [row.metadata]
    for key in keys_of(path):
        objects = [
            each for value in found for each in (value if isinstance(value, list) else [value])
        ]
        found = [each[key] for each in objects if isinstance(each, dict) and key in each]
    return found


def keys_of(path: str) -> list[str]:
    """The keys of a dotted path."""
    keys, letters = [""], iter(path)
    for letter in letters:
        if letter == ".":
            keys.append("")
        else:
            keys[-1] += next(letters) if letter == "\\" else letter
    return keys[1:] if keys[0] == "metadata" else keys


def _compares(value: Any, name: str, wanted: Any) -> bool:
    if name in TEXTS and isinstance(wanted, str):
        return isinstance(value, str) and TEXTS[name](_folded(value), _folded(wanted))
    if _type(value) != _type(wanted) or isinstance(value, dict | list):
        return False
    compare = COMPARE["$eq" if name == "$contains" else name]
    return compare(_exact(value), _exact(wanted))


def _folded(text: str) -> str:
    return "".join(letter.lower() for letter in text)


def _type(value: Any) -> type:
    return Decimal if type(value) in {int, float} else type(value)


def _exact(value: Any) -> Any:
    return Decimal(repr(value)) if _type(value) is Decimal else value


def _speaks(row: Row, code: str) -> bool:
    code = code.lower().split("-")[0]
    if code in CONFIGURATIONS:
        return row.configuration == CONFIGURATIONS[code]
    return row.language == code


def _at(moment: datetime, name: str, wanted: str) -> bool:
    if len(wanted) <= len("2024-05-31"):
        return COMPARE[name](moment.astimezone(UTC).isoformat()[: len(wanted)], wanted)
    return COMPARE[name](moment, datetime.fromisoformat(wanted))
