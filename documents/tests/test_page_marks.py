"""Quotations on the page: the very words, and nothing where their place is not certain."""

from collections import Counter
from itertools import pairwise

from documents.page_marks import Mark, Word, place_quotation
from reading.parsers import parse
from reading.parsers.page_image import read_page_layer
from reading.tests.factories_pdf import columns

NONE: frozenset[str] = frozenset()


def line(text: str, y: float, x: float = 0.1) -> list[Word]:
    """Words side by side, each letter a hundredth of the width."""
    words: list[Word] = []
    for word in text.split():
        words.append((word, round(x, 4), y, round(x + 0.01 * len(word), 4), round(y + 0.02, 4)))
        x += 0.01 * (len(word) + 1)
    return words


def marked(text: str, quotation: str, *pages: list[Word], at: int = 0) -> list[tuple[int, float]]:
    """Page and top of each mark."""
    start = text.index(quotation, at)
    words = dict(enumerate(pages, 1))
    marks = place_quotation(text, start, start + len(quotation), words, NONE)
    return [(number, mark.y0) for number, listed in marks.items() for mark in listed]


def test_hyphens_ligatures_accents_and_table_pipes_do_not_matter() -> None:
    words = [*line("The oﬃce was repain-", 0.1), *line("ted. Cafe\u0301 Zoë", 0.2)]
    words += [*line("Quay 12", 0.3), *line("4.50", 0.3, x=0.6)]
    text = "The office was repainted. Café Zoë\n\n| Quay 12 | 4.50 |"

    assert marked(text, "office was repainted", words) == [(1, 0.1), (1, 0.2)]
    assert marked(text, "Café Zoë", words) == [(1, 0.2)]
    assert marked(text, "| Quay 12 | 4.50 |", words) == [(1, 0.3), (1, 0.3)]


def test_a_sentence_that_stands_there_twice_is_marked_at_its_own_place() -> None:
    said = "Payment is due in May."
    words = [*line("Of the harbour.", 0.1), *line(said, 0.2), *line("Of the quay.", 0.3)]
    words += [*line("On boats.", 0.4), *line(said, 0.5), *line("On ropes.", 0.6)]
    text = f"Of the harbour. {said} Of the quay.\n\nOn boats. {said} On ropes."

    assert marked(text, said, words) == [(1, 0.2)]
    assert marked(text, said, words, at=60) == [(1, 0.5)]
    # Of two with the same surroundings nobody knows which.
    twice = [*line(said, 0.1), *line(said, 0.5)]
    assert marked(said, said, twice) == []


def test_over_a_page_break_both_pages_are_marked() -> None:
    first = [*line("Running head", 0.05), *line("The divers finished", 0.9)]
    second = [*line("Running head", 0.05), *line("their work in spring.", 0.1)]
    text = "The divers finished their work in spring."

    assert marked(text, text, first, second) == [(1, 0.9), (2, 0.1)]


def test_words_that_are_not_there_mark_nothing() -> None:
    words = [*line("The harbour dues are not raised.", 0.1)]
    text = "Somebody wrote other words by hand, of the harbour."

    assert marked(text, text, words) == []


def test_found_words_have_marks_of_their_own_within_the_passage() -> None:
    text = "The harbour dues"
    marks = place_quotation(text, 0, 16, {1: line(text, 0.1)}, frozenset({"harbour"}))[1]

    assert marks == [
        Mark(0.1, 0.1, 0.26, 0.12),
        Mark(0.14, 0.1, 0.21, 0.12, is_found=True),
    ]


def test_every_sentence_of_columns_is_marked_where_its_words_are() -> None:
    data = columns(2)
    parsed = parse(data, name="a.pdf", max_bytes=10**7)
    words = read_page_layer(data, page=1).words
    stops = [0, *(at + 1 for at, letter in enumerate(parsed.text) if letter == ".")]
    placed = 0
    for start, end in pairwise(stops):
        marks = place_quotation(parsed.text, start, end, {1: words}, NONE).get(1, [])
        # No word in the marks is of another sentence.
        inside = [
            word.text
            for word in words
            if any(
                mark.x0 <= (word.x0 + word.x1) / 2 <= mark.x1
                and mark.y0 <= (word.y0 + word.y1) / 2 <= mark.y1
                for mark in marks
            )
        ]
        if marks:
            placed += 1
            said = Counter(filter(str.isalnum, parsed.text[start:end]))
            assert Counter(filter(str.isalnum, "".join(inside))) <= said
    assert placed > 3
