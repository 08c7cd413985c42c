"""How a CSV file is written: what parts its columns, and whether it names them."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

#: The first one wins where several fit alike.
_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE = 64 * 1024
_SAMPLE_ROWS = 200
#: The first line that Excel understands.
_DECLARED = re.compile(r"sep=(.)\n")
#: Figures, dates and times as they are written anywhere.
_NUMBER = re.compile(r"[-+(]?[$€£¥]?\s?\d[\d.,'’\s:/-]*[%)]?(?:[eE][-+]?\d+)?\s?[$€£¥]?|[-+]?\.\d+")
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class Dialect:
    """`width` is how many columns most rows have, `start` where the first row begins."""

    delimiter: str
    width: int
    start: int = 0


def guess_dialect(text: str, *, prefers_tab: bool = False) -> Dialect:
    """The delimiter that cuts most rows of the first 64 kB into equally many columns."""
    declared = _DECLARED.match(text)
    if declared:
        start = declared.end()
        return Dialect(declared[1], _fit(text[start:], declared[1])[1], start)
    candidates = sorted(_DELIMITERS, key=lambda mark: mark != "\t") if prefers_tab else _DELIMITERS
    fits = {delimiter: _fit(text, delimiter) for delimiter in candidates}
    best = max(candidates, key=lambda delimiter: fits[delimiter])
    return Dialect(best if fits[best][1] > 1 else candidates[0], fits[best][1])


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: nothing in it looks like a value.

    Names are filled, differ and are no figures; years in a row are names too.
    """
    if not rows:
        return False
    names = [cell.strip() for cell in rows[0]]
    filled = [name for name in names if name]
    figures = [name for name in filled if _NUMBER.fullmatch(name)]
    if len(set(filled)) < len(filled) or len(filled) * 2 < len(names):
        return False
    return not figures or (len(figures) < len(filled) and _are_years(figures))


def _are_years(figures: Sequence[str]) -> bool:
    if len(figures) < 2 or not all(map(_YEAR.fullmatch, figures)):
        return False
    steps = {int(later) - int(earlier) for earlier, later in pairwise(figures)}
    return len(steps) == 1


def _fit(text: str, delimiter: str) -> tuple[float, int]:
    """The share of rows with the most common width, 0 where that is one column, and that width."""
    sample = text[:_SAMPLE]
    if len(text) > _SAMPLE:
        sample = sample[: sample.rfind("\n") + 1] or sample
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, skipinitialspace=True)
    widths = Counter(len(row) for row in islice(reader, _SAMPLE_ROWS) if len(row) > 0)
    if not widths:
        return 0.0, 1
    width, count = max(widths.items(), key=lambda pair: (pair[1], pair[0]))
    return (count / widths.total() if width > 1 else 0.0), width
