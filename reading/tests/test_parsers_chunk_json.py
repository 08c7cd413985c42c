"""Chunk JSON: chunks that their author cut, one file each, many to a document."""

import json
from typing import Any

import pytest

from reading.parsers import (
    CHUNK_JSON,
    ParseError,
    assemble,
    chunk_offsets,
    is_chunk_json_name,
    parse,
    parse_chunk_json,
)
from reading.tests.factories_files import chunk_fields, chunk_json

NAME = "leaflets/07_examplol_chunk_001.json"


def read(**changes: Any) -> Any:
    return parse_chunk_json(chunk_json(1, **changes), name=NAME)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        (NAME, True),
        ("a_chunk.json", True),
        ("A_CHUNK_9.JSON", True),
        ("C:\\x\\a_chunk_1.json", True),
        ("x_chunks/a.json", False),
        ("chunk_1.json", False),
        ("a_chunk_1.jsonl", False),
    ],
)
def test_chunk_files_are_known_by_their_name(name: str, answer: bool) -> None:
    assert is_chunk_json_name(name) is answer


def test_a_record_knows_its_document_and_place() -> None:
    record = read()
    assert record.chunk_id == record.chunk.key == "07_examplol_chunk_001"
    assert record.source_document == "examplol_leaflet"
    assert record.ordinal == 1


@pytest.mark.parametrize("data", [b"[1]", b"[" * 100_000])
def test_a_record_that_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError, match=r"not an object|Not usable JSON") as caught:
        parse_chunk_json(data, name=NAME)
    assert caught.value.code == "malformed"


def records(*numbers: int, **changes: Any) -> list[Any]:
    return [
        parse_chunk_json(chunk_json(number, **changes), name=f"{number}_chunk.json")
        for number in numbers
    ]


def test_chunks_of_a_document_are_joined_in_the_order_of_their_numbers() -> None:
    document = assemble(records(10, 2, 1))
    assert [chunk.key[-3:] for chunk in document.chunks] == ["001", "002", "010"]
    assert document.text == "\n\n".join(chunk.text for chunk in document.chunks)
    assert document.title == "Examplol leaflet"
    assert document.media_type == CHUNK_JSON
    assert document.metadata == {"source_document": "examplol_leaflet"}


def test_offsets_point_at_the_chunks() -> None:
    document = assemble(records(1, 2, 3))
    found = [document.text[start:end] for start, end in chunk_offsets(document)]
    assert found == [chunk.text for chunk in document.chunks]


def test_an_id_used_twice_names_both_files() -> None:
    twins = [*records(1), parse_chunk_json(chunk_json(1), name="copy_chunk.json")]
    with pytest.raises(ParseError, match=r"1_chunk\.json and in copy_chunk\.json"):
        assemble(twins)


def test_chunks_of_two_documents_are_refused() -> None:
    with pytest.raises(ParseError, match=r"is of examplol_leaflet but \w+ is of other"):
        assemble(records(1) + records(2, source_document="other"))


def test_no_record_is_no_document() -> None:
    with pytest.raises(ParseError, match="no chunk"):
        assemble([])


def test_one_file_alone_is_a_document_of_one_chunk() -> None:
    document = parse(json.dumps(chunk_fields(3)).encode("utf-8-sig"), name=NAME)
    assert len(document.chunks) == 1
    assert document.text == document.chunks[0].text


def test_the_language_is_taken_from_chunks_that_agree() -> None:
    assert assemble(records(1, 2, metadata={"language": "en-GB"})).language == "en"
    assert assemble(records(1, metadata={"language": "en"}) + records(2)).language == ""
