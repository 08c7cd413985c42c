"""Whether something printed has the shape of what the documentation shows.

Numbers may differ, and so may what is drawn at random: keys, ids, times. `…` stands for anything.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

_RANDOM = re.compile(r"(?=\w*\d)(?=\w*[A-Za-z])[\w-]{12,}")
_TIME = r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)"
_ANY = r"(?:.|\n)*?"
#: What stays as it is written; the rest of a text is matched loosely.
_HEX = r"(?<!\w)(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,}(?!\w)"
_TOKENS = re.compile(rf"{_TIME}|{_HEX}|\s*…\s*|\s+|[─━]+|[\w-]{{12,}}|\d[\d.,]*\d|\d|\w+|.", re.S)


#: Characters as JSON writes them that is sent in ASCII.
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")
_UNITS = ("bytes", "B", "KB", "kB", "MB", "GB")


#: What is matched by its kind, in this order: white space, lines of a table, what is drawn at
#: random, units of size, numbers.
_LOOSE = {
    r"\s+": r"\s+",
    "[─━]+": "[─━]+",
    _TIME: r"\S+",
    _RANDOM.pattern: r"\S+",
    _HEX: r"\S+",
    "|".join(_UNITS): f"(?:{'|'.join(_UNITS)})",
    r"\d[\d.,]*": r"\d[\d.,]*",
}


def text_pattern(shown: str) -> str:
    """A regular expression for what has the shape of `shown`."""
    return "".join(map(_token_pattern, _TOKENS.findall(shown.strip())))


def _token_pattern(token: str) -> str:
    if "…" in token:
        return _ANY
    for kind, pattern in _LOOSE.items():
        if re.fullmatch(kind, token):
            return pattern
    return re.escape(token)


def fits_text(shown: str, printed: str) -> bool:
    """Whether `printed` has lines, one after the other, of the shape of `shown`."""
    readable = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), printed)
    return re.search(rf"(?<!\S){text_pattern(shown)}(?!\S)", readable) is not None


def shown_json(shown: str) -> Any:
    """What JSON with gaps says. Raises ValueError where it is none without its gaps, either."""
    whole = re.sub(r"(?<=[,{\[])\s*…\s*,", "", shown)  # a gap within
    return json.loads(re.sub(r",?\s*…(?=\s*[}\]])", "", whole), strict=False)  # and at an end


def misfit(shown: Any, got: Any, at: str = "") -> str:
    """Where `got` has another shape than `shown`, in words; empty where it fits."""
    if isinstance(shown, dict):
        return _misfit_object(shown, got, at)
    if isinstance(shown, list):
        if not isinstance(got, list) or len(got) < len(shown):
            return f"{at}: a list of {len(shown)} is shown, it is {got!r:.200}"
        found = (misfit(s, g, f"{at}[{n}]") for n, (s, g) in enumerate(zip(shown, got)))  # noqa: B905
        return next(filter(None, found), "")
    if isinstance(shown, bool) or shown is None:
        return "" if got is shown else f"{at}: {shown!r} is shown, it is {got!r:.200}"
    if isinstance(shown, str):
        fits = isinstance(got, str) and re.fullmatch(text_pattern(shown), got.strip())
        return "" if fits or shown == got else f"{at}: {shown!r} is shown, it is {got!r:.300}"
    is_number = isinstance(got, int | float) and not isinstance(got, bool)
    return "" if is_number else f"{at}: the number {shown} is shown, it is {got!r:.200}"


def _misfit_object(shown: dict[str, Any], got: Any, at: str) -> str:
    if not isinstance(got, dict):
        return f"{at}: an object is shown, it is {got!r:.200}"
    names = [name for name in shown if name != "…"]
    if missing := [name for name in names if name not in got]:
        return f"{at}: no {', '.join(missing)} in {', '.join(got) or 'nothing'}"
    return next(filter(None, (misfit(shown[n], got[n], f"{at}.{n}") for n in names)), "")


def documents(printed: str) -> Iterator[Any]:
    """Every JSON object in what was printed."""
    decoder, at = json.JSONDecoder(), 0
    while (at := printed.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(printed, at)
        except ValueError:
            at += 1
        else:
            yield value
