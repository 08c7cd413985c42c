"""Reading what a chat model answered: tolerant of what stands around the JSON, not of the JSON."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from memory.keys import InvalidKey, fact_key

MAX_CHARACTERS = 100_000
MAX_FACTS = 50
MAX_CONTEXTS = 20
MAX_VALUE = 500
MAX_QUESTION = 1_000
MAX_ANSWER = 4_000
#: Braces in the text around it, tried as the beginning of the answer.
MOST_BEGINNINGS = 200

_END_OF_THOUGHTS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
#: What models write where they have nothing to say.
_NOTHING = frozenset(
    ("unknown", "none", "null", "nil", "n/a", "na", "undefined", "not specified", "not mentioned")
)
# Numbers are no texts, and one of 5,000 digits would raise.
_decoder = json.JSONDecoder(parse_int=lambda digits: None)


class UnreadableReply(Exception):
    """An answer without the JSON that was asked for. It is worth asking again."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"The model's answer {problem}. It will be asked again; if this goes on, take a model"
            " that follows instructions better."
        )


Reply = tuple[dict[str, str], list[tuple[str, str]]]


def read_reply(text: str) -> Reply:
    """Facts by their keys, and pairs of question and answer. Raises UnreadableReply.

    Code fences, text before and behind and a model's thoughts are passed over. Of several values
    of one key the last counts. Whatever is no text, empty or too long is left out.
    """
    if len(text) > MAX_CHARACTERS:
        raise UnreadableReply(f"is longer than {MAX_CHARACTERS:,} characters")
    answer = _answer(_END_OF_THOUGHTS.split(text)[-1])
    return _facts(answer.get("facts")), _contexts(answer.get("context"))


def _answer(text: str) -> Mapping[str, Any]:
    """The last object of the asked form: what comes before may be a draft."""
    found = [value for value in _objects(text) if _is_answer(value)]
    if not found:
        raise UnreadableReply('holds no JSON object with "facts" and "context"')
    return found[-1]


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """What JSON objects there are in the text, outermost ones only."""
    start = text.find("{")
    for _ in range(MOST_BEGINNINGS):
        if start < 0:
            return
        try:
            value, end = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield value
        start = text.find("{", end)


def _is_answer(value: Mapping[str, Any]) -> bool:
    facts, contexts = value.get("facts", {}), value.get("context", [])
    return bool(value.keys() & {"facts", "context"}) and (
        isinstance(facts, dict | None) and isinstance(contexts, list | None)
    )


def _facts(given: Mapping[str, Any] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for raw, value in (given or {}).items():
        text = _text(value, most=MAX_VALUE)
        try:
            key = fact_key(raw)
        except InvalidKey:
            continue
        if text and text.casefold() not in _NOTHING and (key in found or len(found) < MAX_FACTS):
            # behind the others: it is the later statement
            found.pop(key, None)
            found[key] = text
    return found


def _contexts(given: list[Any] | None) -> list[tuple[str, str]]:
    pairs: dict[tuple[str, str], None] = {}
    for item in given or []:
        if not isinstance(item, dict) or len(pairs) >= MAX_CONTEXTS:
            continue
        question = _text(item.get("q"), most=MAX_QUESTION)
        answer = _text(item.get("a"), most=MAX_ANSWER)
        if question and answer:
            pairs[question, answer] = None
    return list(pairs)


def _text(value: Any, *, most: int) -> str:
    """The text in single spaces; empty where it is none, too long, or cannot be stored."""
    if not isinstance(value, str) or len(value) > 10 * most or "\0" in value:
        return ""
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        return ""
    text = _SPACE.sub(" ", value).strip()
    return text if len(text) <= most else ""
