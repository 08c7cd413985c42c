"""Parse what models reply to orchestrators, routers and evaluators: the last JSON value counts,
earlier ones may be drafts. Without Django.
"""

import re
from collections.abc import Sequence
from typing import Any

from inference.replies import UnreadableReply, json_values

MAX_REPLY_CHARACTERS = 200_000
_SCORE = re.compile(r"\bscore\b\W{0,10}(?P<score>[01](?:\.\d{1,6})?)\b", re.IGNORECASE)


def pick_route(reply: str, routes: Sequence[str]) -> str:
    """The one of `routes` that the reply names; else its beginning, which is none of them."""
    text = reply[:MAX_REPLY_CHARACTERS].strip()
    for value in reversed(json_values(text)):
        if isinstance(value, dict):
            named = [each for each in value.values() if isinstance(each, str)]
            text = named[0] if len(named) == 1 else text
    exact = [route for route in routes if _normalized(route) == _normalized(text)]
    if exact:
        return exact[0]
    found = [route for route in routes if _mentions(route, text)]
    # “code-review” also names “review”: the longer one is meant.
    found = [
        route
        for route in found
        if not any(other != route and _mentions(route, other) for other in found)
    ]
    return found[0] if len(found) == 1 else text[:100]


def parse_score(reply: str) -> tuple[float, str]:
    """A score from 0 to 1, and the reason. Raises UnreadableReply."""
    text = reply[:MAX_REPLY_CHARACTERS].strip()
    for value in reversed(json_values(text)):
        if isinstance(value, dict) and (number := _number(value.get("score"))) is not None:
            reason = value.get("reason")
            return number, reason if isinstance(reason, str) else ""
    if match := _SCORE.search(text):
        return float(match["score"]), text
    raise UnreadableReply('holds no JSON object with a "score" from 0 to 1')


def parse_tasks(reply: str, *, most: int) -> list[str]:
    """The sub-tasks of a plan, at most `most`. Raises UnreadableReply."""
    for value in reversed(json_values(reply[:MAX_REPLY_CHARACTERS])):
        listed = _list_in(value, "tasks")
        texts = [_task_text(each) for each in listed]
        if listed and all(texts):
            return texts[:most]
    raise UnreadableReply("holds no JSON list of sub-tasks, each a text")


def parse_steps(reply: str, *, workers: Sequence[str], most: int) -> list[tuple[str, str]]:
    """(worker, task) pairs in order, at most `most`. Raises UnreadableReply."""
    for value in reversed(json_values(reply[:MAX_REPLY_CHARACTERS])):
        listed = _list_in(value, "steps")
        found = []
        for each in listed:
            named = each.get("worker") if isinstance(each, dict) else None
            wanted = _normalized(named) if isinstance(named, str) else None
            worker = next((name for name in workers if _normalized(name) == wanted), "")
            found.append((worker, _task_text(each)))
        if found and all(worker and task for worker, task in found):
            return found[:most]
    raise UnreadableReply(
        'holds no JSON list of {"worker", "task"} in which every worker is one of'
        f" {', '.join(workers)}"
    )


def _list_in(value: Any, name: str) -> list[Any]:
    if isinstance(value, dict):
        value = value.get(name)
    return value if isinstance(value, list) else []


def _task_text(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("task")
    return value.strip() if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)


def _normalized(text: str) -> str:
    return text.strip().strip("\"'`*.“”„«»()[] \n\t").casefold()


def _mentions(name: str, text: str) -> bool:
    pattern = rf"(?<![\w-]){re.escape(name.casefold())}(?![\w-])"
    return re.search(pattern, text.casefold()) is not None
