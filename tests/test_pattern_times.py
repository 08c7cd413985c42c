"""What is read out of people's, authors' and models' words is read in linear time.

The worst repeats of what each pattern looks for. Processor time is counted, so that a busy machine
changes nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from time import thread_time
from typing import Any

import pytest

from common.plain_words import without_signs
from graph.extraction.capitals import runs
from graph.extraction.code import identifiers
from graph.extraction.dates import dates
from graph.extraction.forms import form, question_forms
from graph.extraction.names import names
from graph.extraction.titles import title_names
from memory.dates import mentioned
from memory.extraction.replies import read_reply
from memory.extraction.sentences import sentences as said_sentences
from memory.injection.asking import asking_part
from memory.injection.rendering import find_block
from memory.keys import fact_key
from rag.answering.citations import scan
from rag.answering.followups import completed, leans
from rag.answering.quotable import parts
from rag.answering.smalltalk import small_talk
from rag.pipelines.conditions import parse as parse_condition
from rag.pipelines.replies import picked, score, tasks, without_thoughts
from rag.sql.prompt import statement_in
from search.filters.text_reading import read_text
from search.query import parse_query
from search.snippets import sentences

CHARACTERS = 20_000
#: Linear work takes some 0.05 s, quadratic more than 5.
MOST_SECONDS = 1.5
REPEATS = (
    " ", "\n", "\t", "a", "A", "1", ".", "-", "_", "'", '"', "`", "*", "#", "|", "[", "(", "<",
    "{", "\\", ":", ";", ",", "?", "@", "/", "é", "中", "\u0301", "a ", "A ", "a.", "a-", "a'",
    "A.", "1.", "1,", "1 ", "- ", "\n ", "| ", "[1", "[1]", "](", "<!--", "<think>", "[memory",
    "a:", "``", "\\a", "x=", "A B ", "the ", "I am ", "who ", "2020-", "x:1 ", "```\n", "> ",
    "# ", "SELECT ", "{}", '{"', "a::b", "a_B", "“", " \n", ".\n", "“a",
)  # fmt: skip
READERS: dict[str, Callable[[str], Any]] = {
    "words of a passage": without_signs,
    "sentences": sentences,
    "query": lambda text: parse_query(text[:4000]),
    "filter": read_text,
    "condition": parse_condition,
    "citations": lambda text: scan(text, {}),
    "quotable parts": lambda text: parts(text[:4000]),
    "small talk": small_talk,
    "follow-up": leans,
    "completed": lambda text: completed(text, []),
    "thoughts": without_thoughts,
    "route": lambda text: picked(text, ["one", "two"]),
    "score": score,
    "tasks": lambda text: tasks(text, most=5),
    "SQL in a reply": statement_in,
    "remembered sentences": said_sentences,
    "facts in a reply": read_reply,
    "block of memory": find_block,
    "what is asked": asking_part,
    "dates of a question": mentioned,
    "key of a fact": fact_key,
    "capitals": lambda text: list(runs(text)),
    "names": lambda text: list(names(text)),
    "identifiers": lambda text: list(identifiers(text)),
    "dates": lambda text: list(dates(text)),
    "title": lambda text: title_names(text[:500]),
    "form": form,
    "forms of a question": question_forms,
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
