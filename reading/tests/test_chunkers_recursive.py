"""Where the default chunker cuts, what it repeats, and what it tells of each span."""

from itertools import pairwise

import pytest

from reading.chunkers import get_chunker
from reading.chunkers.base import Span
from reading.chunkers.boundaries import WINDOW_CHARACTERS
from reading.parsers import Heading, Page, ParsedDocument
from reading.tests.factories_chunkers import CharacterCounter, byte_pairs, minilm, plain, texts

COUNTER = minilm()
WORDS = "Ten plain words make up this short sentence about things."


def split(document: ParsedDocument, max_tokens: int, overlap: int = 0) -> list[Span]:
    chunker = get_chunker("recursive", counter=COUNTER, max_tokens=max_tokens, overlap=overlap)
    return chunker.split(document)


def cut(text: str, max_tokens: int, overlap: int = 0) -> list[str]:
    document = plain(text)
    return texts(document, split(document, max_tokens, overlap))


def test_a_text_that_fits_is_one_span_without_the_white_space_around_it() -> None:
    (span,) = split(plain("  \n one two \n"), 10)
    assert (span.start, span.end, span.token_count) == (4, 11, 2)


def test_paragraphs_are_kept_together_rather_than_chunks_filled() -> None:
    paragraph = " ".join([WORDS] * 3)
    assert cut(f"{paragraph}\n\n{paragraph}\n\n{paragraph}", 50) == [paragraph] * 3


def test_sentences_are_kept_together() -> None:
    assert cut(" ".join([WORDS] * 8), 25) == [f"{WORDS} {WORDS}"] * 4


def test_a_line_end_within_a_sentence_is_no_better_than_a_space() -> None:
    wrapped = "This sentence is wrapped\nby its page width. And the next one\nis so too."
    assert cut(wrapped, 14) == [
        "This sentence is wrapped\nby its page width.",
        "And the next one\nis so too.",
    ]


def test_abbreviations_and_initials_end_no_sentence() -> None:
    text = "It was J. S. Bach, e.g. the one of Leipzig. He wrote music for the organ there."
    assert cut(text, 20) == [
        "It was J. S. Bach, e.g. the one of Leipzig.",
        "He wrote music for the organ there.",
    ]


def test_chinese_is_cut_behind_its_full_stops() -> None:
    sentence = "北京是中华人民共和国的首都。"
    assert set(cut(sentence * 40, 100)) <= {sentence * count for count in range(1, 8)}


def test_thai_is_cut_between_words() -> None:
    words = ["สวัสดี", "ชาวโลก", "ยินดี", "ต้อนรับ"]
    edges = set()
    place = 0
    for word in words * 30:
        place += len(word)
        edges.add(place)
    chunker = get_chunker("recursive", counter=byte_pairs(), max_tokens=400, overlap=0)
    spans = chunker.split(plain("".join(words * 30)))
    assert len(spans) > 2
    assert {span.end for span in spans} <= edges | {place - len("โลก") for place in edges}


@pytest.mark.parametrize("crumb", range(1, 12))
def test_no_crumb_remains_at_the_end(crumb: int) -> None:
    text = " ".join([*["word"] * 40, *["crumb"] * crumb])
    sizes = [span.token_count for span in split(plain(text), 40, overlap=10)]
    assert min(sizes) >= 20


def test_neighbours_share_whole_sentences() -> None:
    numbered = [f"Sentence number {number} is here." for number in range(30)]
    chunks = cut(" ".join(numbered), 40, overlap=15)
    for one, two in pairwise(chunks):
        repeated = two.split(". ")[0] + "."
        assert one.endswith((repeated, f"{repeated} {two.split('. ')[1]}."))


def test_overlap_is_used_and_never_more_than_asked_for() -> None:
    document = plain(" ".join(f"w{number}" for number in range(400)))
    spans = split(document, 60, overlap=20)
    shared = [COUNTER.count(document.text[two.start : one.end]) for one, two in pairwise(spans)]
    assert all(10 < tokens <= 20 for tokens in shared)


def test_without_overlap_nothing_is_repeated() -> None:
    chunks = cut(" ".join(f"w{number}" for number in range(400)), 60)
    assert " ".join(chunks).split() == [f"w{number}" for number in range(400)]


def test_headings_of_the_document_are_the_best_places_and_never_stand_alone() -> None:
    body = " ".join([WORDS] * 3)
    text = f"{body}\nOne\n{body}\nTwo\nInner\n{body}\nEnd"
    headings = [Heading(text.index(f"\n{title}\n") + 1, level, title)
                for title, level in (("One", 1), ("Two", 1), ("Inner", 2))]  # fmt: skip
    headings.append(Heading(text.rindex("End"), 1, "End"))
    document = plain(text, *headings)
    spans = split(document, 50, overlap=20)
    assert texts(document, spans) == [
        body,
        f"One\n{body}",
        f"Two\nInner\n{body}\nEnd",
    ]
    assert [span.heading_path for span in spans] == [(), ("One",), ("Two",)]


def test_the_heading_path_is_the_chain_in_force() -> None:
    text = "\n".join(["A", WORDS, "B", WORDS, "C", WORDS, "D", WORDS])
    levels = {"A": 1, "B": 2, "C": 4, "D": 2}
    headings = [Heading(text.index(f"{title}\n"), level, title) for title, level in levels.items()]
    spans = split(plain(text, *headings), 14)
    assert [span.heading_path for span in spans] == [
        ("A",),
        ("A", "B"),
        ("A", "B", "C"),
        ("A", "D"),
    ]


def test_the_page_is_that_of_the_start() -> None:
    page = " ".join([WORDS] * 2)
    document = ParsedDocument(
        text=f"{page}\n\n{page}",
        media_type="application/pdf",
        title="T",
        pages=(Page(0, 1), Page(len(page) + 2, 2)),
    )
    assert [span.page for span in split(document, 25)] == [1, 2]
    assert [span.page for span in split(plain(document.text), 25)] == [None, None]


@pytest.mark.parametrize("word", ["a", "ab/", "Ω", "漢"])
def test_a_word_without_end_is_cut_in_good_time(word: str) -> None:
    text = word * (100_000 // len(word))
    document = plain(text)
    spans = split(document, 200)
    assert "".join(texts(document, spans)) == text
    counts = [COUNTER.count(chunk) for chunk in texts(document, spans)]
    assert counts == [span.token_count for span in spans]
    assert max(counts) <= 200


def test_a_text_of_many_windows_is_cut_like_a_short_one() -> None:
    paragraph = " ".join([WORDS] * 4)
    count = 1_200_000 // len(paragraph)
    assert cut("\n\n".join([paragraph] * count), 60) == [paragraph] * count


@pytest.mark.parametrize("counter", [byte_pairs(100), CharacterCounter(100)])
def test_counts_that_do_not_add_up_are_still_kept(counter: CharacterCounter) -> None:
    document = plain(" ".join([WORDS] * 60))
    spans = get_chunker("recursive", counter=counter, overlap=20).split(document)
    counts = [counter.count(text) for text in texts(document, spans)]
    assert counts == [span.token_count for span in spans]
    assert 70 < max(counts) <= 100


def test_a_cluster_above_the_budget_is_cut_rather_than_lost() -> None:
    document = plain("👩‍👩‍👧‍👦" * 3)
    spans = get_chunker("recursive", counter=byte_pairs(), max_tokens=12, overlap=0).split(document)
    assert "".join(texts(document, spans)) == document.text
    assert max(span.token_count for span in spans) <= 12


@pytest.mark.parametrize("before", ["", "🇩", "a ", "\u200d"])
def test_a_long_row_of_flags_is_cut_between_them(before: str) -> None:
    document = plain(before + "🇩🇪🇫🇷" * 10_000)
    chunks = texts(document, split(document, 60))
    assert "".join(chunks) == document.text
    assert all(len(chunk) % 2 == 0 for chunk in chunks[1:-1])


def test_a_heading_at_the_seam_of_two_windows_stays_with_its_text() -> None:
    lines = f"{WORDS}\n\n" * (WINDOW_CHARACTERS // (len(WORDS) + 2))
    for room in (0, 8, 40):
        before = lines[: WINDOW_CHARACTERS - room].rsplit("\n\n", 1)[0] + "\n\n"
        heading = Heading(len(before), 1, "Head")
        document = plain(f"{before}Head\n\n{lines[:2000]}", heading)
        assert not [text for text in texts(document, split(document, 60)) if text.endswith("Head")]
