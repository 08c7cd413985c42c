"""Reading what models answer to orchestrators, routers and evaluators: tolerant of its form, strict
about what it says. Pure."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

MAX_CHARACTERS = 200_000
_MOST_BEGINNINGS = 200

_END_OF_THOUGHTS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_SCORE = re.compile(r"\bscore\b\W{0,10}(?P<score>[01](?:\.\d{1,6})?)\b", re.IGNORECASE)
_decoder = json.JSONDecoder()


class UnreadableReply(Exception):
    """An answer in which what was asked for is not to be found; it says what."""


def without_thoughts(text: str) -> str:
    """What a model says behind its thoughts."""
    return _END_OF_THOUGHTS.split(text)[-1].strip()


def picked(reply: str, routes: Sequence[str]) -> str:
    """The one of `routes` that the reply names; else its beginning, which is none of them."""
    said = without_thoughts(reply[:MAX_CHARACTERS])
    for value in values(said):
        if isinstance(value, dict):
            named = [each for each in value.values() if isinstance(each, str)]
            said = named[0] if len(named) == 1 else said
    exact = [route for route in routes if _bare(route) == _bare(said)]
    if exact:
        return exact[0]
    found = [route for route in routes if _stands_in(route, said)]
    # “code-review” also names “review”: the longer one is meant.
    found = [
        route
        for route in found
        if not any(other != route and _stands_in(route, other) for other in found)
    ]
    return found[0] if len(found) == 1 else said[:100]


def score(reply: str) -> tuple[float, str]:
    """From 0 to 1, and the reason. Raises UnreadableReply."""
    said = without_thoughts(reply[:MAX_CHARACTERS])
    for value in values(said):
        if isinstance(value, dict) and (number := _number(value.get("score"))) is not None:
            reason = value.get("reason")
            return number, reason if isinstance(reason, str) else ""
    if match := _SCORE.search(said):
        return float(match["score"]), said
    raise UnreadableReply('holds no JSON object with a "score" from 0 to 1')


def tasks(reply: str, *, most: int) -> list[str]:
    """The sub-tasks of a plan, at most so many. Raises UnreadableReply."""
    for value in values(without_thoughts(reply[:MAX_CHARACTERS])):
        listed = _listed(value, "tasks")
        told = [_text(each) for each in listed]
        if listed and all(told):
            return told[:most]
    raise UnreadableReply("holds no JSON list of sub-tasks, each a text")


def steps(reply: str, *, workers: Sequence[str], most: int) -> list[tuple[str, str]]:
    """(worker, task) in their order, at most so many. Raises UnreadableReply."""
    for value in values(without_thoughts(reply[:MAX_CHARACTERS])):
        listed = _listed(value, "steps")
        found = [(_worker(each, workers), _text(each)) for each in listed]
        if found and all(worker and task for worker, task in found):
            return [(str(worker), task) for worker, task in found][:most]
    raise UnreadableReply(
        'holds no JSON list of {"worker", "task"} in which every worker is one of'
        f" {', '.join(workers)}"
    )


def values(text: str) -> Iterator[Any]:
    """What JSON objects and lists there are in a text, the last first: before may be drafts."""
    found: list[Any] = []
    start = _begin(text, 0)
    for _ in range(_MOST_BEGINNINGS):
        if start < 0:
            break
        try:
            value, end = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            found.append(value)
        start = _begin(text, end)
    yield from reversed(found)


def _begin(text: str, at: int) -> int:
    places = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
    return min(places, default=-1)


def _listed(value: Any, name: str) -> list[Any]:
    if isinstance(value, dict):
        value = value.get(name)
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("task")
    return value.strip() if isinstance(value, str) else ""


def _worker(value: Any, workers: Sequence[str]) -> str | None:
    named = value.get("worker") if isinstance(value, dict) else None
    if not isinstance(named, str):
        return None
    return next((worker for worker in workers if _bare(worker) == _bare(named)), None)


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)


def _bare(text: str) -> str:
    return text.strip().strip("\"'`*.“”„«»()[] \n\t").casefold()


def _stands_in(name: str, text: str) -> bool:
    pattern = rf"(?<![\w-]){re.escape(name.casefold())}(?![\w-])"
    return re.search(pattern, text.casefold()) is not None
