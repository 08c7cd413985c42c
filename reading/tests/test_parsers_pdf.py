"""PDF: pages, outline, metadata, and the many ways in which a PDF cannot be read."""

import zlib

import pytest

from reading.parsers import Heading, Page, ParseError, parse
from reading.parsers.pdf_writer import find_title_line
from reading.sandbox import parse_in_sandbox
from reading.sandbox.limits import ParserLimits
from reading.sandbox.protocol import ParseRequest
from reading.tests.factories_files import encrypted_pdf, pdf, scanned_pdf
from reading.tests.factories_pdf import finished, page, self_drawing


def test_pages_are_numbered_and_their_offsets_point_at_their_text() -> None:
    document = parse(pdf("First page.", "Second page.", "Third (page)."), name="a.pdf")
    assert document.text == "First page.\n\nSecond page.\n\nThird (page)."
    assert document.pages == (Page(0, 1), Page(13, 2), Page(27, 3))
    assert document.media_type == "application/pdf"
    assert document.rendering == "plain"


def test_the_outline_gives_headings_where_their_words_stand() -> None:
    data = pdf(
        ["A book", "1 Introduction", "Words."],
        ["2 Results and", "discussion", "Words about Results and discussion."],
        outline=[("A Book", 0), ("Introduction", 0), ("Results and discussion", 1), ("Lost", 1)],
    )
    document = parse(data, name="a.pdf")
    assert document.headings == (
        Heading(document.text.index("# A book"), 1, "A Book"),
        Heading(document.text.index("## 1 Introduction"), 2, "Introduction"),
        Heading(document.text.index("## 2 Results"), 2, "Results and discussion"),
    )


def test_metadata_title_and_language_are_read() -> None:
    information = {
        "Title": "A  fine title",
        "Author": "Ann",
        "CreationDate": "D:20240203040506+01'00'",
        "ModDate": "nonsense",
    }
    document = parse(pdf("Text.", metadata=information, language="de-CH"), name="a.pdf")
    assert document.title == "A fine title"
    assert document.language == "de"
    assert document.metadata["author"] == "Ann"
    assert document.metadata["created_at"] == "2024-02-03T04:05:06+01:00"


def test_attached_files_are_named_in_the_metadata() -> None:
    document = page()
    document.embed_file(basename="offer.xml", bytes=b"<offer/>")
    document.cell(text="An invoice")
    assert parse(finished(document), name="a.pdf").metadata["attachments"] == ["offer.xml"]


@pytest.mark.parametrize("title", ["", "Microsoft Word - draft.docx", "Untitled1"])
def test_a_title_made_by_a_program_is_ignored(title: str) -> None:
    document = parse(pdf("Text.", metadata={"Title": title}), name="annual_report.pdf")
    assert document.title == "Annual report"


def test_an_empty_user_password_opens() -> None:
    assert parse(encrypted_pdf("Open text.", user_password=""), name="a.pdf").text == "Open text."


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
    limits = ParserLimits(seconds=60.0, memory_bytes=400 * 1024**2)
    with pytest.raises(ParseError, match="lack of memory") as caught:
        parse_in_sandbox(ParseRequest(name="a.pdf", data=self_drawing()), limits=limits)
    assert caught.value.code == "too_much_memory"


def test_one_unreadable_page_costs_only_itself() -> None:
    data = pdf("One.", "Two.", "Three.").replace(b"/Contents 7 0 R", b"/Contents (oops)")
    document = parse(data, name="a.pdf")
    assert "One." in document.text
    assert "Three." in document.text
    assert document.pages[2].number == 3


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


def test_running_heads_and_page_numbers_are_dropped() -> None:
    words = ["alpha", "beta", "gamma", "delta", "eta"]
    texts = [[f"{word} is", "said", f"of {word}"] for word in words]
    pages = [["The Book", *lines, f"Page {n}"] for n, lines in enumerate(texts, start=8)]
    document = parse(pdf(*pages), name="a.pdf")
    assert document.text == "\n".join(line for lines in texts for line in lines)


@pytest.mark.parametrize(
    "pages",
    [
        [[head, f"{head} a", "b", f"{head} c", head] for head in ("One", "One", "Two", "Three")],
        [[str(n), f"{n} a", "b", f"{n} c", f"Total: {n * 7 % 10}"] for n in (5, 1, 4, 9, 3)],
        [["Slide"], ["Slide"], ["Slide"], [""]],
    ],
)
def test_lines_that_differ_or_are_rare_stay(pages: list[list[str]]) -> None:
    text = parse(pdf(*pages), name="a.pdf").text
    assert text.split() == [word for lines in pages for line in lines for word in line.split()]


def test_a_head_of_a_chapter_is_dropped_and_the_title_that_it_repeats_stays() -> None:
    chapters = [f"Chapter {'ABCDE'[number // 6]}" for number in range(30)]
    pages = [[head, f"a{n}", f"b{n}", f"c{n}", f"d{n}"] for n, head in enumerate(chapters)]
    assert "Chapter" not in parse(pdf(*pages), name="a.pdf").text


def test_a_sentence_that_runs_over_the_page_is_not_torn_into_paragraphs() -> None:
    document = parse(pdf("It goes", "", "on. End.", "New"), name="a.pdf")
    assert document.text == "It goes\non. End.\n\nNew"
    assert [page.offset for page in document.pages] == [0, 7, 8, 18]


def test_a_title_in_the_middle_of_a_line_is_no_heading() -> None:
    assert find_title_line("As the Introduction says, it is so.", "Introduction says") == (0, 35)
    assert find_title_line("This is said by the Introduction too.", "Introduction") is None
    assert find_title_line("x\n\nThe\ntitle\ny", "the title") == (3, 12)


def _with_compressed_content(content: bytes) -> bytes:
    start, _, rest = pdf("x").partition(b"<< /Length ")
    end = rest[rest.index(b"endstream") :]
    stream = b"<< /Filter /FlateDecode /Length %d >>\nstream\n" % len(content)
    return start + stream + content + b"\n" + end
