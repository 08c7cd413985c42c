"""What is read out of people's, authors' and models' words is read in linear time.

The worst repeats of what each pattern looks for. Processor time is counted, so that a busy machine
changes nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from time import thread_time
from typing import Any

import pytest

from common.text import strip_markdown
from documents.sql.replies import extract_sql
from graph.extraction.code import identifiers
from graph.extraction.names import capitalized_runs, dates, names, title_names
from graph.extraction.normalized_names import candidate_names, normalize_name
from inference.reasoning import ReasoningSplitter
from memory.extraction.chat_model import parse_reply
from memory.extraction.rules import split_sentences as said_sentences
from memory.fact_keys import fact_key
from memory.injection import question_part, strip_signed_block
from memory.ranking import mentioned_dates
from rag.answering.citations import CitationScanner
from rag.answering.coreference import is_context_dependent, rewrite_by_rules
from rag.answering.phrases import small_talk
from rag.pipelines.conditions import parse_condition
from rag.pipelines.replies import parse_score, parse_tasks, pick_route
from reading.segments import split_segments
from search.filters.syntax import parse_text_filter
from search.query import parse_query
from search.snippets import sentences

CHARACTERS = 10_000
#: Linear work takes some 0.02 s, quadratic more than 1.2.
MOST_SECONDS = 0.5
REPEATS = (
    " ", "\n", "\t", "a", "A", "1", ".", "-", "_", "'", '"', "`", "*", "#", "|", "[", "(", "<",
    "{", "\\", ":", ";", ",", "?", "@", "/", "é", "中", "\u0301", "a ", "A ", "a.", "a-", "a'",
    "A.", "1.", "1,", "1 ", "- ", "\n ", "| ", "[1", "[1]", "](", "<!--", "<think>", "[memory",
    "a:", "``", "\\a", "x=", "A B ", "the ", "I am ", "who ", "2020-", "x:1 ", "```\n", "> ",
    "# ", "SELECT ", "{}", '{"', "a::b", "a_B", "“", " \n", ".\n", "“a",
)  # fmt: skip
READERS: dict[str, Callable[[str], Any]] = {
    "words of a passage": strip_markdown,
    "sentences": sentences,
    "query": lambda text: parse_query(text[:4000]),
    "filter": parse_text_filter,
    "condition": parse_condition,
    "citations": lambda text: CitationScanner({}).feed(text),
    "quotable parts": lambda text: split_segments(text[:4000]),
    "small talk": small_talk,
    "follow-up": is_context_dependent,
    "completed": lambda text: rewrite_by_rules(text, []),
    "thoughts": lambda text: ReasoningSplitter().feed(text),
    "route": lambda text: pick_route(text, ["one", "two"]),
    "score": parse_score,
    "tasks": lambda text: parse_tasks(text, most=5),
    "SQL in a reply": extract_sql,
    "remembered sentences": said_sentences,
    "facts in a reply": parse_reply,
    "block of memory": lambda text: strip_signed_block(text, keys=[b"a key"]),
    "what is asked": question_part,
    "dates of a question": mentioned_dates,
    "key of a fact": fact_key,
    "capitals": lambda text: list(capitalized_runs(text)),
    "names": lambda text: list(names(text)),
    "identifiers": lambda text: list(identifiers(text)),
    "dates": lambda text: list(dates(text)),
    "title": lambda text: title_names(text[:500]),
    "form": normalize_name,
    "forms of a question": candidate_names,
}


def texts() -> Iterator[str]:
    for repeat in REPEATS:
        many = repeat * (CHARACTERS // len(repeat))
        yield many
        yield f"a{many}!"


@pytest.mark.parametrize("reader", READERS)
def test_the_worst_text_takes_as_long_as_any(reader: str) -> None:
    # Cores that are shared work at half their speed at times: what was quick once is not slow.
    slow = [
        text[:12]
        for text in texts()
        if all(_seconds(READERS[reader], text) > MOST_SECONDS for _ in range(3))
    ]
    assert slow == []


def _seconds(read: Callable[[str], Any], text: str) -> float:
    """Of processor time."""
    started = thread_time()
    with suppress(Exception):  # what is refused is shown elsewhere
        read(text)
    return thread_time() - started
