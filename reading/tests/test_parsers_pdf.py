"""PDF: pages, outline, metadata, and the many ways in which a PDF cannot be read."""

import zlib
from pathlib import Path

import pytest

from reading.parsers import ParseError, parse
from reading.parsers.pdf_writer import find_title_line
from reading.sandbox import parse_in_sandbox
from reading.sandbox.limits import ParserLimits
from reading.sandbox.protocol import ParseRequest
from reading.tests.factories_files import encrypted_pdf, pdf, scanned_pdf


def cut(data: bytes, share: float) -> bytes:
    return data[: int(share * len(data))]


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (encrypted_pdf("Secret.", user_password="x"), "encrypted", "Save a copy without"),
        (cut(pdf("Text."), 0.5), "truncated", "ends too early"),
        (b"%PDF-1.7\n", "truncated", "ends too early"),
        (b"%PDF-1.7\ngarbage\nstartxref\n9\n%%EOF", "malformed", "damaged"),
        (scanned_pdf(2), "no_text", "are empty"),
        (pdf(), "no_text", "no page"),
        (pdf(*["Page."] * 4), "too_large", "4 pages; 3 are allowed"),
    ],
)
def test_a_pdf_that_cannot_be_read_is_refused_with_a_cure(
    data: bytes, code: str, message: str
) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse(data, name="a.pdf", max_pages=3)
    assert caught.value.code == code


def test_a_page_that_expands_beyond_reason_is_not_expanded() -> None:
    bomb = zlib.compress(b"(x) Tj " * 6_000_000, level=9)
    with pytest.raises(ParseError) as caught:
        parse(_with_compressed_content(bomb), name="a.pdf")
    assert caught.value.code in {"too_large", "malformed"}


def test_a_page_that_draws_itself_ends_for_want_of_memory() -> None:
    data = Path(__file__).with_name("self-drawing.pdf").read_bytes()
    limits = ParserLimits(seconds=60.0, memory_bytes=400 * 1024**2)
    with pytest.raises(ParseError, match="lack of memory") as caught:
        parse_in_sandbox(ParseRequest(name="a.pdf", data=data), limits=limits)
    assert caught.value.code == "too_much_memory"


def test_nothing_is_logged_or_warned(
    recwarn: pytest.WarningsRecorder,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for data in (pdf("Text."), pdf("Text.").replace(b"0000000", b"0000009")):
        parse(data, name="a.pdf")
    assert not recwarn.list
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_a_title_in_the_middle_of_a_line_is_no_heading() -> None:
    assert find_title_line("As the Introduction says, it is so.", "Introduction says") == (0, 35)
    assert find_title_line("This is said by the Introduction too.", "Introduction") is None
    assert find_title_line("x\n\nThe\ntitle\ny", "the title") == (3, 12)


def _with_compressed_content(content: bytes) -> bytes:
    start, _, rest = pdf("x").partition(b"<< /Length ")
    end = rest[rest.index(b"endstream") :]
    stream = b"<< /Filter /FlateDecode /Length %d >>\nstream\n" % len(content)
    return start + stream + content + b"\n" + end
