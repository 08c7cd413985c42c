"""What a file is, whatever its name says; what is refused; bytes to text, and the hash of what a
reader sees."""

import codecs
import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import (
    FORMATS,
    ParseError,
    content_sha256,
    decode_text,
    detect_media_type,
    normalise_text,
    parse,
)
from reading.tests.factories_files import GZIP, PNG, chunk_json, docx, pdf, zipped

HTML = b"<!DOCTYPE html><title>T</title><p>Some text in a page.</p>"
OFFICE = "application/vnd.openxmlformats-officedocument."
PDF = pdf("Text of a page.")


@pytest.mark.parametrize(
    ("data", "name", "media_type"),
    [
        (b"hello", "a.txt", "text/plain"),
        (b"hello", "README", "text/plain"),
        (b"hello", "a.unheard-of", "text/plain"),
        (b"a,b\n1,2", "table.csv", "text/csv"),
        (b"x = 1", "src/models.PY", "text/x-python"),
        (b"FROM debian", "app/Dockerfile", "text/x-dockerfile"),
        (b"SELECT 1", "a.sql", "text/x-sql"),
        (b"# Hello", "folder/A.MD", "text/markdown"),
        (b"%PDF- is the mark of a PDF", "notes.md", "application/pdf"),
        (b"A PDF begins with %PDF-1.7", "notes.md", "text/markdown"),
        (PDF, "a.pdf", "application/pdf"),
        (PDF, "a.txt", "application/pdf"),
        (b"junk before\n" + PDF, "a.pdf", "application/pdf"),
        (HTML, "a.html", "text/html"),
        (HTML, "a.txt", "text/html"),
        (b"\n<!-- note -->\n<HTML><body>x", "a", "text/html"),
        (b"<p>fragment</p>", "a.htm", "text/html"),
        (b"<html> is a tag", "a.json", "text/html"),
        (PNG, "a.txt", "image/png"),
        (docx(), "a.docx", f"{OFFICE}wordprocessingml.document"),
        (zipped({"a.txt": "x"}), "a.zip", "application/zip"),
        (b"PK\x03\x04 torn \x00\x00\x00", "a.docx", "application/zip"),
        (b"{\\rtf1 hello}", "a.txt", "application/rtf"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00", "a.gz", "application/gzip"),
        (b"\x00\x01\x02\x03\xfe\xfd\x00\x07" * 9, "a.bin", "application/octet-stream"),
        (chunk_json(), "x/07_examplol_chunk_001.json", "application/vnd.ragsite.chunk+json"),
        (b"{}", "settings.json", "application/json"),
        (b'{"a": 1}', "settings.txt", "text/plain"),
    ],
)  # fmt: skip
def test_the_media_type_is_found_by_content_then_by_name(
    data: bytes, name: str, media_type: str
) -> None:
    assert detect_media_type(data, name=name) == media_type


@pytest.mark.parametrize(
    ("data", "name", "code", "message"),
    [
        (b"", "a.txt", "empty", "empty"),
        (b" \n\t ", "a.pdf", "empty", "empty"),
        (b"\xef\xbb\xbf", "a.txt", "empty", "no text"),
        (GZIP, "a.txt", "binary", "named .txt but is a gzip archive"),
        (GZIP, "a.md", "binary", "named .md but is a gzip archive"),
        (GZIP, "a.gz", "unsupported", "a gzip archive. Supported formats"),
        (docx(), "a.docx", "malformed", "main part is missing"),
        (zipped({"a": "b"}), "a.bin", "wrong_type", "a ZIP archive. Rename it to .zip"),
        (b"PK\x03\x04 torn \x00\x00\x00", "a.docx", "truncated", "ends too early"),
        (b"\x00\x01\x02\x03\xfe\xfd\x00\x07" * 9, "a.bin", "binary", "not text"),
        (b"just text", "a.pdf", "wrong_type", "named .pdf but is a text file"),
        (HTML, "a.pdf", "wrong_type", "named .pdf but is an HTML page"),
        (GZIP, "a.pdf", "wrong_type", "named .pdf but is a gzip archive"),
        (b"x" * 101, "a.txt", "too_large", "101 bytes; 100 are allowed"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_cure(
    data: bytes, name: str, code: str, message: str
) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse(data, name=name, max_bytes=100 if code == "too_large" else 10_000)
    assert caught.value.code == code
    assert str(caught.value) == caught.value.message


_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"


@pytest.mark.parametrize(
    ("members", "name", "message"),
    [
        ({"Index/Document.iwa": ""}, "a.pages", "Apple iWork document .*Export it as PDF"),
        ({"Index/Document.iwa": ""}, "a.zip", "Apple iWork document"),
        ({"[Content_Types].xml": '<Override ContentType="application/vnd.ms-visio.drawing.main"/>'},
         "a.vsdx", "Visio drawing .*PDF"),
        ({"a.key/Index.zip": "", "a.key/Data/a.txt": ""}, "a.key", "Apple iWork document"),
        ({"FixedDocumentSequence.fdseq": ""}, "a.xps", "XPS document .*PDF"),
        ({"FixedDocSeq.fdseq": "", "Documents/1.fdoc": ""}, "a.xps", "XPS document .*PDF"),
        ({"FixedDocSeq.fdseq/[0].piece": ""}, "a.oxps", "XPS document .*PDF"),
    ],
)  # fmt: skip
def test_archives_of_other_programs_are_refused_by_name(
    members: dict[str, str], name: str, message: str
) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse(zipped(members), name=name)
    assert caught.value.code == "unsupported"


def test_a_workbook_is_known_by_its_type_wherever_its_parts_are() -> None:
    types = f'<Types><Override PartName="/w/book.xml" ContentType="{_TYPE}"/></Types>'
    data = zipped({"[Content_Types].xml": types, "w/book.xml": "<workbook/>"})
    assert detect_media_type(data, name="a.xlsx") == f"{OFFICE}spreadsheetml.sheet"


def test_a_language_of_latin_letters_is_not_believed_for_other_letters() -> None:
    page = '<!doctype html><html lang="en"><body><p>Аренда начинается.</p></body></html>'
    assert parse(page.encode(), name="a.html").language == ""


@pytest.mark.parametrize("name", ["prices.csv", "manual.pdf", "a.txt"])
def test_a_pointer_of_git_lfs_is_refused_with_a_cure(name: str) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 90405\n" % 1
    with pytest.raises(ParseError, match="git lfs pull"):
        parse(pointer, name=name)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("Wert\u00adpapier\u00adindex Be\u200bsichtigung Nutzer\u2060kreis".encode(), "a.txt"),
        ("Wert\u00adpapier\u00adindex Be\u200bsichtigung Nutzer\u2060kreis".encode(), "a.md"),
        (rb'{"a": "Wert\u00adpapierindex Be\u200bsichtigung Nutzer\u2060kreis"}', "a.json"),
        (b"<!doctype html><p>Wert&shy;papierindex Be&#8203;sichtigung Nutzer&#8288;kreis", "a.htm"),
        (
            "Subject: x\n\nWert\u00adpapierindex Be\u200bsichtigung Nutzer\u2060kreis".encode(),
            "a.eml",
        ),
    ],
)
def test_words_are_whole_without_their_invisible_characters(data: bytes, name: str) -> None:
    assert "Wertpapierindex Besichtigung Nutzerkreis" in parse(data, name=name).text


def test_zero_width_spaces_part_words_of_scripts_without_spaces() -> None:
    text = "ភាសា\u200bខ្មែរ"
    assert parse(text.encode(), name="a.txt").text.strip() == text


def test_a_pdf_named_txt_is_read_as_pdf() -> None:
    assert parse(PDF, name="report.txt").text == "Text of a page."


def test_text_is_normalised_and_titled_by_its_file() -> None:
    document = parse(b"one\r\ntwo\r\n", name="C:\\docs\\side-effects_2024.txt")
    assert document.text == "one\ntwo\n"
    assert document.title == "Side effects 2024"
    assert (document.rendering, document.headings, document.chunks) == ("plain", (), ())


def test_no_two_parsers_claim_the_same() -> None:
    claims = [claim for entry in FORMATS for claim in (*entry.media_types, *entry.suffixes)]
    assert len(claims) == len(set(claims))


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "cp1252"]
)
def test_usual_encodings_are_recognised(encoding: str) -> None:
    assert decode_text("Grüße, naïve café: 5 €".encode(encoding)) == "Grüße, naïve café: 5 €"


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert decode_text(codecs.BOM_UTF8 + b"text") == "text"


def test_a_mark_that_lies_is_named() -> None:
    with pytest.raises(ParseError, match="UTF-16") as caught:
        decode_text(codecs.BOM_UTF16_LE + b"abc")
    assert caught.value.code == "malformed"


@pytest.mark.parametrize("data", [bytes(range(256)) * 20, b"\x00" * 100, b"\x00\x01\x02 a\x05\x06"])
def test_binary_is_no_text(data: bytes) -> None:
    with pytest.raises(ParseError, match="not look like text") as caught:
        decode_text(data)
    assert caught.value.code == "binary"


def test_a_stray_zero_byte_is_removed() -> None:
    assert decode_text(b"A long line of text with one\x00 zero byte.") == (
        "A long line of text with one zero byte."
    )


def test_line_ends_become_one_kind() -> None:
    assert normalise_text("a\r\nb\rc\nd") == "a\nb\nc\nd"


@given(st.text(st.characters()))
def test_normalised_text_fits_postgresql_and_stays_as_it_is(text: str) -> None:
    normalised = normalise_text(text)
    assert "\x00" not in normalised
    assert "\r" not in normalised
    assert normalised.encode().decode() == normalised
    assert normalise_text(normalised) == normalised


def test_code_points_are_left_alone() -> None:
    assert normalise_text("e\u0301 ﬁ Å") == "e\u0301 ﬁ Å"


@pytest.mark.parametrize(
    "same", ["a \r\nb\t\n\n\n\n\nc", "a\rb\n\n\nc", "a\nb\n \n\t\n\n \nc", "a\nb\n\n\nc "]
)
def test_the_hash_ignores_what_no_reader_sees(same: str) -> None:
    assert content_sha256(same) == content_sha256("a\nb\n\n\nc")


@pytest.mark.parametrize("other", ["a\nb\nc", "a b\n\n\nc", " a\nb\n\n\nc", "a\nb\n\nc"])
def test_the_hash_tells_texts_apart(other: str) -> None:
    assert content_sha256(other) != content_sha256("a\nb\n\n\nc")


_LINES = st.lists(st.sampled_from(["a", "b \t", "\n", "\r\n", " \n", "\n\n\n", "\x0b", "é😀 "]))


@settings(max_examples=50, deadline=None)
@given(_LINES.map("".join), st.sampled_from([0, 300_000]))
def test_the_hash_is_that_of_the_visible_text_however_long_it_is(piece: str, length: int) -> None:
    text = piece * (1 + length // (1 + len(piece)))
    lines = (line.rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    visible = re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines))
    assert content_sha256(text) == hashlib.sha256(visible.encode()).hexdigest()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_windows_line_ends_become_unix_ones_in_every_encoding(encoding: str) -> None:
    data = "Größe\r\nzwei\rdrei, and a longer line of words\n".encode(encoding)
    assert decode_text(data) == "Größe\nzwei\ndrei, and a longer line of words\n"
