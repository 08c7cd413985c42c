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
PREFIX = "Package leaflet of examplol, section: 4. Possible side effects."


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


def test_the_shown_text_is_the_original_without_its_context() -> None:
    chunk = read().chunk
    assert chunk.text == "This is passage number 1 of the leaflet."
    assert chunk.context == PREFIX
    assert chunk.summary == "About side effects."
    assert chunk.token_count == 12


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"original_text": None}, "This is passage number 1 of the leaflet."),
        ({"original_text": f"{PREFIX}\n\nBare text."}, "Bare text."),
        ({"original_text": PREFIX, "chunk_text": PREFIX}, PREFIX),
    ],
    ids=["without original text", "repeated in the original", "nothing but the prefix"],
)
def test_the_prefix_is_taken_off_unless_there_is_nothing_else(
    changes: dict[str, Any], text: str
) -> None:
    assert read(**changes).chunk.text == text


def test_titles_are_nested_and_make_the_context_where_no_prefix_is() -> None:
    metadata = {"chapter_title": "C", "section_title": " S ", "subsection_title": ["a", "", "b"]}
    chunk = read(contextual_prefix=None, metadata=metadata).chunk
    assert chunk.heading_path == ("C", "S", "a", "b")
    assert chunk.context == "C > S > a > b"


def test_titles_summary_and_count_may_be_at_the_top() -> None:
    flat = {
        "chapter_title": "C",
        "section_title": "S",
        "subsection_title": ["a"],
        "summary": "Short.",
        "page": 3,
        "metadata": {"audience": "patients", "token_count": 9},
    }
    chunk = read(**flat, contextual_prefix=None, token_count=None).chunk
    assert chunk.heading_path == ("C", "S", "a")
    assert (chunk.summary, chunk.token_count, chunk.page) == ("Short.", 9, 3)
    assert chunk.metadata == {
        "processing_metadata": {"phase_1_model": "none"},
        "audience": "patients",
    }


def test_tokens_may_be_left_to_be_counted() -> None:
    assert read(token_count=None).chunk.token_count is None


def test_a_section_without_a_chapter_stays_the_second_heading() -> None:
    assert read(metadata={"section_title": "S"}).chunk.heading_path == ("Examplol leaflet", "S")


def test_one_subsection_may_be_a_string() -> None:
    metadata = {"chapter_title": "C", "subsection_title": "only"}
    assert read(metadata=metadata).chunk.heading_path == ("C", "only")


def test_everything_else_is_kept_as_metadata_once() -> None:
    fields = {"section_title": "S", "page": 7, "audience": "patients"}
    chunk = read(metadata=fields, licence="free").chunk
    assert chunk.page == 7
    assert chunk.metadata == {
        "processing_metadata": {"phase_1_model": "none"},
        "licence": "free",
        "audience": "patients",
    }


def test_a_page_that_is_no_number_is_only_metadata() -> None:
    chunk = read(metadata={"page": "7-8"}).chunk
    assert chunk.page is None
    assert chunk.metadata["page"] == "7-8"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chunk_text": None}, "chunk_text is missing"),
        ({"chunk_text": "  "}, "chunk_text is missing or empty"),
        ({"chunk_text": "short"}, "chunk_text has fewer than 10 characters"),
        ({"chunk_text": 5}, "chunk_text must be a string, not a number"),
        ({"chunk_id": ["a"]}, "chunk_id must be a string, not a mixed list"),
        ({"token_count": 2**20}, r"token_count is more than \d+, the record's bytes"),
        ({"token_count": 0}, "token_count must be above 0, not 0"),
        ({"token_count": -3}, "token_count must be above 0, not -3"),
        ({"token_count": 1.5}, "token_count must be a whole number above 0, not a fraction"),
        ({"token_count": True}, "must be a whole number above 0, not true or false"),
        ({"token_count": "12"}, "must be a whole number above 0, not a string"),
        ({"original_text": {}}, "original_text must be a string, not an object"),
        ({"contextual_prefix": []}, "contextual_prefix must be a string, not a mixed list"),
        ({"metadata": "x"}, "metadata must be an object, not a string"),
        (
            {"metadata": {"section_title": 4}},
            "metadata.section_title must be a string",
        ),
        (
            {"metadata": {"subsection_title": [1]}},
            "subsection_title must be a list of strings",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_cure(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        read(**changes)
    assert caught.value.code == "malformed"


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b'{"chunk_id": "a", "source_document": ', "truncated", "line 1, column 38"),
        (b'{"chunk_id": "a" "b"}', "malformed", "line 1, column 18"),
        (b"\xff\xfe bad", "malformed", "Byte 0 is not UTF-8"),
        (b"[1]", "malformed", "not an object"),
        (b'{"token_count": NaN}', "malformed", "NaN is not a number"),
        (b"[" * 100_000, "malformed", "Not usable JSON"),
        (b'{"a": ' + b"[" * 30 + b"]" * 30 + b"}", "malformed", "nested too deep"),
        (b'{"token_count": ' + b"9" * 5000 + b"}", "malformed", "Not usable JSON"),
        (b"", "empty", "empty"),
    ],
)
def test_a_broken_file_says_what_is_wrong_with_it(data: bytes, code: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse_chunk_json(data, name=NAME)
    assert caught.value.code == code


def test_escapes_that_postgresql_cannot_store_are_replaced() -> None:
    data = chunk_json(1, original_text=None, contextual_prefix=None).replace(
        b"passage", b"pass\\u0000age \\ud800"
    )
    assert "passage \ufffd" in parse_chunk_json(data, name=NAME).chunk.text


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
