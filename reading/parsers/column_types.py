"""What the columns of a table hold: numbers, dates, yes or no, or text."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

_DATE = re.compile(
    r"(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}([./-])\d{1,2}\1(?:\d{4}|\d{2}))"
    r"(?:[T ]\d{1,2}:\d\d(?::\d\d)?Z?)?"
)
_NUMBER = re.compile(
    r"[-+(]?[$€£¥]?\s?(?:\d[\d.,'’\s]*|\.\d+)(?:[eE][-+]?\d+)?\s?[$€£¥%]?\)?(?:\s?[A-Z]{3})?"
)
_YES_OR_NO = frozenset({"true", "false", "yes", "no"})
#: A telephone number or a code keeps its leading zero, which a number would not have.
_CODE = re.compile(r"0\d")
_SAMPLE_ROWS, _SAMPLE_CHARACTERS = 1_000, 40


class ColumnTypes:
    """Counts rows and, in the first thousand, what is in each column."""

    def __init__(self) -> None:
        self.count = 0
        self._found: defaultdict[int, Counter[str]] = defaultdict(Counter)

    def seen(self, row: Sequence[str]) -> Sequence[str]:
        """Count the row and the types in it; returns it, so that rows are counted as they pass."""
        self.count += 1
        if self.count <= _SAMPLE_ROWS:
            for at, cell in enumerate(row):
                if text := cell.strip():
                    self._found[at][_type_of(text)] += 1
        return row

    def types(self, header: Sequence[str]) -> list[str]:
        """`number`, `date`, `boolean`, `text` or, without a value, `empty`, of the named columns.

        One value in twenty may differ, such as `n/a` among numbers.
        """
        types = []
        for at, name in enumerate(header):
            if not name.strip():
                continue
            kind, times = next(iter(self._found[at].most_common(1)), ("empty", 0))
            types.append(kind if times * 20 >= self._found[at].total() * 19 else "text")
        return types


def _type_of(text: str) -> str:
    if len(text) <= _SAMPLE_CHARACTERS:
        if text.lower() in _YES_OR_NO:
            return "boolean"
        if _DATE.fullmatch(text):
            return "date"
        if _NUMBER.fullmatch(text) and not _CODE.match(text):
            return "number"
    return "text"
