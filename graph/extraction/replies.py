"""Reading what a chat model answered: tolerant of its form, strict about what it claims. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graph.extraction.forms import form
from graph.extraction.found import Extraction, Mention, Relation
from graph.extraction.passages import Words

MAX_CHARACTERS = 200_000
MAX_ENTITIES = 60
MAX_RELATIONS = 60
MAX_NAME = 200
MAX_TYPE = 30
MAX_REL = 64
MAX_EVIDENCE = 2_000
#: Braces in the text around it, tried as the beginning of the answer.
MOST_BEGINNINGS = 200

_END_OF_THOUGHTS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_BEGINNING = re.compile(r'"entities"\s*:\s*\[')
#: An entry of a list whose end is missing.
_ENTRY = re.compile(r"\{[^{}]*\}")
# Numbers are no texts, and one of 5,000 digits would raise.
_decoder = json.JSONDecoder(parse_int=lambda digits: None)


class UnreadableReply(Exception):
    """An answer without the JSON that was asked for. It is worth asking again."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"The model's answer {problem}. It will be asked again; if this goes on, take a model"
            " that follows instructions better."
        )


def read_reply(reply: str, *, text: str, passage: int = 0) -> Extraction:
    """What the answer says of the passage with this text. Raises UnreadableReply.

    An entity that does not stand in the text is left out, and so is a relation without both its
    ends or without a sentence of the text as its evidence. Of an answer that was cut off what is
    whole counts.
    """
    if len(reply) > MAX_CHARACTERS:
        raise UnreadableReply(f"is longer than {MAX_CHARACTERS:,} characters")
    answer = _answer(_END_OF_THOUGHTS.split(reply)[-1])
    words = Words(text)
    mentions: dict[str, Mention] = {}
    relations: dict[tuple[str, str, str], Relation] = {}
    for entry in _entries(answer, "entities", MAX_ENTITIES):
        if found := _standing(words, passage, entry.get("name"), entry.get("type")):
            mentions.setdefault(found.form, found)
    for entry in _entries(answer, "relations", MAX_RELATIONS):
        if said := _relation(entry, words, passage):
            relation, *ends = said
            relations.setdefault((relation.source, relation.rel, relation.target), relation)
            for end in ends:
                mentions.setdefault(end.form, end)
    return Extraction(tuple(mentions.values()), tuple(relations.values()))


def relation_name(value: Any) -> str:
    """`was born in` → `WAS_BORN_IN`; empty for what is none."""
    words = _WORD.findall(value.upper()) if isinstance(value, str) and len(value) < 1000 else []
    name = ""
    for word in words:
        longer = f"{name}_{word}" if name else word
        if len(longer) > MAX_REL:
            break
        name = longer
    return name if any(letter.isalpha() for letter in name) else ""


def _answer(text: str) -> Mapping[str, Any]:
    """The last object of the asked form: what comes before may be a draft."""
    found = [value for value in _objects(text) if _is_answer(value)]
    if found:
        last: Mapping[str, Any] = found[-1]
        return last
    if (cut := _cut_off(text)) is not None:
        return cut
    raise UnreadableReply('holds no JSON object with "entities" and "relations"')


def _objects(text: str) -> Iterator[Any]:
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
    parts = [value.get(name) for name in ("entities", "relations")]
    return bool(value.keys() & {"entities", "relations"}) and all(
        isinstance(part, list | None) for part in parts
    )


def _cut_off(text: str) -> Mapping[str, Any] | None:
    """The whole entries of an answer whose end is missing."""
    beginnings = [match.end() for match in _BEGINNING.finditer(text)]
    if not beginnings:
        return None
    start = beginnings[-1]
    middle = text.find('"relations"', start)
    middle = len(text) if middle < 0 else middle
    entities, relations = _whole(text[start:middle]), _whole(text[middle:])
    return {"entities": entities, "relations": relations} if entities else None


def _whole(text: str) -> list[Any]:
    found = []
    for match in _ENTRY.finditer(text):
        try:
            found.append(_decoder.decode(match[0]))
        except (ValueError, RecursionError):
            continue
    return found


def _entries(answer: Mapping[str, Any], name: str, most: int) -> Sequence[Mapping[str, Any]]:
    """Some models give entities as bare names."""
    given = answer.get(name) or []
    listed = [{"name": entry} if isinstance(entry, str) else entry for entry in given]
    return [entry for entry in listed if isinstance(entry, Mapping)][:most]


def _standing(words: Words, passage: int, name: Any, type: Any = None) -> Mention | None:
    """What stands in the text under this name; None where nothing does."""
    found = form(name) if isinstance(name, str) and len(name) <= MAX_NAME else ""
    places = words.places(name) if found else []
    if not places:
        return None
    start, end = places[0]
    written = " ".join(words.text[start:end].split())
    return Mention(passage, found, written, _type(type), "text", len(places), start, end)


def _type(value: Any) -> str:
    """A lower-case word or two, as `graph.extraction.found` has it."""
    words = _WORD.findall(value.casefold()) if isinstance(value, str) else []
    return " ".join(words[:3])[:MAX_TYPE].strip() or "name"


def _relation(
    entry: Mapping[str, Any], words: Words, passage: int
) -> tuple[Relation, Mention, Mention] | None:
    """It and its ends, where the passage says so."""
    evidence, rel = entry.get("evidence"), relation_name(entry.get("relation"))
    if not rel or not isinstance(evidence, str) or len(evidence) > MAX_EVIDENCE:
        return None
    sentence = words.places(evidence)
    source = _standing(words, passage, entry.get("source"))
    target = _standing(words, passage, entry.get("target"))
    if not sentence or source is None or target is None or source.form == target.form:
        return None
    return Relation(passage, source.form, rel, target.form, *sentence[0]), source, target
