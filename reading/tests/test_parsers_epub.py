"""Books: chapters in reading order, with their headings and notes."""

import io
import zipfile

import pytest

from reading.parsers import Heading, ParseError, parse
from reading.tests.factories_books import epub
from reading.tests.factories_office import changed


def test_chapters_are_read_in_order_with_exact_headings() -> None:
    book = epub(
        "<h1>One</h1><p>First words<a id='n'/>.</p><aside>A note.</aside>",
        "<h2>Two</h2><p>Last words.</p>",
        core={"title": "The Book", "creator": "Ada", "language": "de-DE"},
    )
    document = parse(book, name="a.epub")
    assert document.text == "# One\n\nFirst words.\n\nA note.\n\n## Two\n\nLast words.\n"
    second = document.text.index("## Two")
    assert document.headings == (Heading(0, 1, "One"), Heading(second, 2, "Two"))
    assert (document.title, document.language) == ("The Book", "de")
    assert document.metadata["author"] == "Ada"
    assert document.rendering == "markdown"


def test_a_chapter_that_is_no_web_page_has_its_fallback_read() -> None:
    book = epub("<p>Readable</p>", "<p>Last</p>")
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        package = archive.read("OEBPS/book.opf").decode()
    package = package.replace(
        "<manifest>",
        '<manifest><item id="a" href="a.xml" media-type="application/x-own" fallback="b"/>'
        '<item id="b" href="b.pdf" media-type="application/pdf" fallback="c 1.xhtml"/>'
        '<item id="loop" href="l" media-type="application/x-own" fallback="loop"/>',
    ).replace('<itemref idref="c 1.xhtml"/>', '<itemref idref="a"/><itemref idref="loop"/>')
    book = changed(book, {"OEBPS/book.opf": package})
    assert parse(book, name="a.epub").text == "Readable\n\nLast\n"


def test_chapters_without_text_and_missing_ones_are_passed_over() -> None:
    book = changed(
        epub("<img src='x.png'/>", "<p>Gone</p>", "<p>Text</p>"), {"OEBPS/c 2.xhtml": None}
    )
    assert parse(book, name="my-book.epub").text == "Text\n"
    assert parse(book, name="my-book.epub").title == "My book"


def test_a_book_of_pictures_has_no_text() -> None:
    with pytest.raises(ParseError, match="OCR") as caught:
        parse(epub("<img src='x.png'/>"), name="a.epub")
    assert caught.value.code == "no_text"


def test_a_copy_protected_book_is_refused_and_one_with_locked_fonts_is_read() -> None:
    locked = (
        "<encryption><EncryptedData><CipherData><CipherReference URI='{}'/></CipherData>"
        "</EncryptedData></encryption>"
    )
    book = epub("<p>Text</p>")
    member = {"META-INF/encryption.xml": locked.format("OEBPS/c 1.xhtml")}
    with pytest.raises(ParseError, match="copy-protected") as caught:
        parse(changed(book, member), name="a.epub")
    assert caught.value.code == "encrypted"
    member = {"META-INF/encryption.xml": locked.format("OEBPS/font.otf")}
    assert parse(changed(book, member), name="a.epub").text == "Text\n"


def test_a_book_without_its_list_of_parts_is_damaged() -> None:
    with pytest.raises(ParseError, match="missing") as caught:
        parse(changed(epub("<p>x</p>"), {"OEBPS/book.opf": None}), name="a.epub")
    assert caught.value.code == "malformed"


def test_a_bomb_in_a_book_is_refused() -> None:
    with pytest.raises(ParseError) as caught:
        parse(changed(epub("<p>x</p>"), {"OEBPS/c 1.xhtml": b" " * 20_000_000}), name="a.epub")
    assert caught.value.code == "too_large"
