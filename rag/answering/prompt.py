"""The prompt for answering from passages, cut to a token budget. Begin with `build_prompt`.

Passages are data: each is delimited by a random marker drawn for every prompt, which no stored text
can know; the marker is removed from texts that contain it. Without Django.
"""

import re
import secrets
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.text import may_combine
from inference.interfaces import ChatMessage
from memory.injection import estimated_tokens
from rag.answering.phrases import language_code, not_found_text
from rag.events import Passage

#: Where a cut text may end, best first: after a paragraph, a sentence, a word.
_CUT_POINTS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"[.!?…][\"'”’)\]»]*\s+|[。！？｡]+[」』”’）】]*|\n"),
    re.compile(r"\s+"),
)
#: A cut at a sentence must keep at least this share of what would fit.
_MIN_KEPT_SHARE = 0.5


def truncate_to_tokens(text: str, most: int, count: Callable[[str], int]) -> str:
    """The beginning of `text` with at most `most` tokens, cut after a sentence if one ends in the
    second half, else after a word. Empty if nothing fits."""
    if count(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= most else (low, middle - 1)
    while 0 < low < len(text) and may_combine(text[low - 1], text[low]):
        low -= 1
    for number, ends in enumerate(_CUT_POINTS):
        places = [match.end() for match in ends.finditer(text) if match.end() <= low]
        if places and (places[-1] >= low * _MIN_KEPT_SHARE or number == len(_CUT_POINTS) - 1):
            return text[: places[-1]].rstrip()
    return text[:low].rstrip()


#: Share of the token budget for the history, and what is left of it where passages need the room.
HISTORY_SHARE = 0.25
MIN_HISTORY_SHARE = 0.1
#: A passage is cut to at least this many tokens, or left out.
MIN_PASSAGE_TOKENS = 30
MARKER_BYTES = 8

with (Path(__file__).parent / "prompts.toml").open("rb") as _file:
    _PROMPTS: dict[str, dict[str, str]] = tomllib.load(_file)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages, and which passages they include: those that did not fit are left out, and the
    last may be cut."""

    messages: tuple[ChatMessage, ...]
    passages: tuple[Passage, ...]
    tokens: int


def build_prompt(
    question: str,
    passages: Sequence[Passage],
    history: Sequence[ChatMessage] = (),
    *,
    budget_tokens: int,
    count: Callable[[str], int] = estimated_tokens,
    language: str = "",
    instructions: str = "",
    in_language: str = "",
    marker: str = "",
) -> Prompt:
    """System rules, recent history, and the passages with the question after them.

    All of it is at most `budget_tokens` by `count`, unless rules and question alone are more: these
    are never cut. `language` is the question's: the rules and the refusal that the model is to use
    are written in it, in English where there are none. `in_language` is what the answer is to be
    in, if not in the question's. `instructions` are appended to the rules. `marker` is for tests
    only.
    """
    marker = marker or secrets.token_hex(MARKER_BYTES)
    wanted = language_code(in_language)
    words = _PROMPTS.get(wanted or language_code(language), _PROMPTS["en"])
    answered_in = words["own"] if wanted else in_language or words["question_language"]
    rules = (
        words["rules"]
        .strip()
        .format(
            marker=marker,
            not_found=not_found_text(wanted or language),
            answered_in=answered_in,
        )
    )
    system = f"{rules}\n\n{instructions.strip()}" if instructions.strip() else rules
    room = budget_tokens - count(system) - count(_question_message(question, [], marker, words))
    needed = sum(count(delimit_passage(passage, marker)) + 2 for passage in passages)
    for_history = min(room * HISTORY_SHARE, max(room - needed, room * MIN_HISTORY_SHARE))
    recent = recent_turns(history, int(for_history), count)
    room -= sum(count(message.content) for message in recent)
    chosen = _fit_passages(passages, room, count, marker)
    while True:
        messages = (
            ChatMessage("system", system),
            *recent,
            ChatMessage(
                "user",
                _question_message(question, [block for _, block in chosen], marker, words),
            ),
        )
        tokens = sum(count(message.content) for message in messages)
        if tokens <= budget_tokens or not chosen:
            return Prompt(messages, tuple(passage for passage, _ in chosen), tokens)
        chosen.pop()  # joined texts may have more tokens than their sum


def delimit_passage(passage: Passage, marker: str, *, text: str | None = None) -> str:
    """A passage between marker lines, with its number and headings."""
    body = passage.text if text is None else text
    heading = " ".join(passage.heading.replace(marker, "").split())
    head = f"[{passage.number}] {heading}".rstrip()
    return f"<<<{marker}\n{head}\n{body.replace(marker, '')}\n{marker}>>>"


def _question_message(
    question: str, blocks: Sequence[str], marker: str, words: Mapping[str, str]
) -> str:
    joined = "\n\n".join(blocks) or f"<<<{marker}\n{words['nothing']}\n{marker}>>>"
    asked = question.replace(marker, "").strip()
    return f"{words['passages']}\n\n{joined}\n\n{words['question']} {asked}"


def recent_turns(
    history: Sequence[ChatMessage], budget: int, count: Callable[[str], int]
) -> list[ChatMessage]:
    """The last turns that fit, oldest first, beginning with a user message. The last answer is cut
    where it alone does not fit."""
    turns: list[ChatMessage] = []
    half = budget // 2
    for message in reversed(history):
        if message.role not in ("user", "assistant") or not message.content.strip():
            continue
        text = message.content
        if not turns and message.role == "assistant" and count(text) > budget:
            text = truncate_to_tokens(text, half, count)
        budget -= count(text)
        if budget < 0 or not text:
            break
        turns.append(ChatMessage(message.role, text))
    while turns and turns[-1].role != "user":
        turns.pop()
    return turns[::-1]


def _fit_passages(
    passages: Sequence[Passage], room: int, count: Callable[[str], int], marker: str
) -> list[tuple[Passage, str]]:
    """The best passages that fit, in order. The first that does not fit is cut at a sentence."""
    chosen: list[tuple[Passage, str]] = []
    for passage in passages:
        block = delimit_passage(passage, marker)
        needed = count(block) + 2
        if needed > room:
            head = count(delimit_passage(passage, marker, text="")) + 2
            text = (
                truncate_to_tokens(passage.text, room - head, count)
                if room - head > MIN_PASSAGE_TOKENS
                else ""
            )
            if text:
                chosen.append((passage, delimit_passage(passage, marker, text=text)))
            break
        chosen.append((passage, block))
        room -= needed
    return chosen
