"""Mutated and hostile files: passages, or a failure with a name and a sentence; nothing else.

`python -m bench.fuzz` goes on for as long as one likes.
"""

import json
from random import Random

import pytest
from django.db import connection

from documents.ingestion.preparation import PreparedDocument
from documents.tests.fuzzing.door import taken
from documents.tests.fuzzing.hostile import hostile
from documents.tests.fuzzing.mutations import mutated, seeds
from reading.parsers import ParseError
from reading.sandbox.limits import ParserLimits

#: By the clock, and other tests run beside: what is quick here takes less than one.
LIMITS = ParserLimits(seconds=60.0, max_bytes=20_000_000)
MUTATIONS = 8
HOSTILE = hostile(long=100_000)
NAMES = sorted(HOSTILE)


@pytest.mark.parametrize("name", seeds())
def test_the_files_that_are_mutated_are_read(name: str) -> None:
    assert isinstance(taken(name, seeds()[name], limits=LIMITS), PreparedDocument)


@pytest.mark.nightly
@pytest.mark.parametrize("name", seeds())
def test_a_mutated_file_is_read_or_refused(name: str) -> None:
    for number in range(MUTATIONS):
        random = Random(f"{name}/{number}")
        other = random.choice(list(seeds().values()))
        taken(name, mutated(random, seeds()[name], other), limits=LIMITS)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:30]).strip("'"))
def test_a_hostile_file_is_read_or_refused(name: str) -> None:
    taken(name, HOSTILE[name](), limits=LIMITS)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("parts.docx", "too_large"),
        ("entity.docx", "malformed"),
        ("laughs.pptx", "malformed"),
        ("deep.json", "malformed"),
        ("big_chunk_1.json", "malformed"),
        ("name_chunk_1.json", "malformed"),
        ("prefix_chunk_1.json", "too_large"),
    ],
)
def test_what_would_do_harm_is_refused_by_its_name(name: str, code: str) -> None:
    outcome = taken(name, HOSTILE[name](), limits=LIMITS)
    assert isinstance(outcome, ParseError)
    assert outcome.code == code


@pytest.mark.parametrize("name", ["entity.html", "entity.epub", "manual.rst"])
def test_no_file_of_the_server_is_read_into_a_document(name: str) -> None:
    data = HOSTILE[name]() if name in HOSTILE else b"Title\n=====\n\n.. include:: /etc/passwd\n"
    outcome = taken(name, data, limits=LIMITS)
    if isinstance(outcome, PreparedDocument):
        assert "root:" not in "".join(chunk.text for chunk in outcome.chunks)


def test_numbers_that_cannot_be_written_leave_the_metadata() -> None:
    outcome = taken("clock-matter.md", HOSTILE["clock-matter.md"](), limits=LIMITS)
    assert isinstance(outcome, PreparedDocument)
    assert outcome.metadata == {"a": None}


def test_mappings_that_merge_each_other_are_text() -> None:
    outcome = taken("merging-matter.md", HOSTILE["merging-matter.md"](), limits=LIMITS)
    assert isinstance(outcome, PreparedDocument)
    assert outcome.metadata == {}


@pytest.mark.django_db
def test_postgresql_stores_what_becomes_of_them() -> None:
    names = ["odd-keys.md", "surrogates.json", "zero_chunk_1.json", "bidi.md", "escape.html"]
    kept = 0
    for name in names:
        outcome = taken(name, HOSTILE[name](), limits=LIMITS)
        if isinstance(outcome, ParseError):
            continue
        kept += 1
        values = [outcome.title, json.dumps(outcome.metadata)]
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s::text, %s::jsonb", values)
            for chunk in outcome.chunks:
                words = [f"{chunk.context} {chunk.text}", json.dumps(chunk.metadata)]
                cursor.execute("SELECT to_tsvector('simple', %s), %s::jsonb", words)
    assert kept >= 4
