"""Citations are found in a stream wherever it is cut, and sentences without a source are found."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answering.citations import AnswerPiece, CitationScanner
from rag.answering.groundedness import check_claims, unsupported
from rag.events import Citation
from rag.tests.answering import passage, scan_citations

KNOWN = {number: passage(f"The text of {number}.", number) for number in range(1, 6)}
SOURCES = [
    passage(
        "The Eiffel Tower was built by the company of Gustave Eiffel between 1887 and 1889. It is"
        " 330 metres tall and was the first structure above 300 metres. It has three levels.",
        title="Eiffel Tower",
    ),
    passage("Paris is the capital of France. It has 2,102,650 inhabitants.", 2, title="Paris"),
]


def numbers(pieces: Sequence[AnswerPiece]) -> list[int]:
    return [piece.passage.number for piece in pieces if isinstance(piece, Citation)]


@pytest.mark.parametrize(
    ("said", "shown", "cited"),
    [
        ("It is iron [1].", "It is iron [1].", [1]),
        ("It is iron [1, 2] and tall [3;4]", "It is iron [1][2] and tall [3][4]", [1, 2, 3, 4]),
        ("It is iron [1][2].", "It is iron [1][2].", [1, 2]),
        ("It is iron [1-3].", "It is iron [1][2][3].", [1, 2, 3]),
        ("Built in 1889[1].", "Built in 1889[1].", [1]),
        ("鉄です［１］。", "鉄です[1]。", [1]),
        ("Iron 【2†source】 tower", "Iron [2] tower", [2]),
        ("Iron [Source 1, Source 2] tower", "Iron [1][2] tower", [1, 2]),
        ("Iron [^3]", "Iron [3]", [3]),
        ("Iron [1 and 2]", "Iron [1][2]", [1, 2]),
    ],
)
def test_citations_are_told_in_one_form(said: str, shown: str, cited: list[int]) -> None:
    scanned = scan_citations(said, KNOWN)
    assert scanned.text == shown
    assert [each.passage.number for each in scanned.cited] == cited
    assert scanned.dropped == 0


@pytest.mark.parametrize(
    "said",
    [
        "`a[1]` and ``b `[2]` ``",
        "```python\na[1] = b [2]\n```\n",
        "~~~\nx [1]\n~~~",
        "[1](https://example.org/) and ![2](picture.png)",
        "[1]: https://example.org/",
        "take x[1] and my_list[2]",
        "in [2024] and [12345]",
        "\\[1\\]",
        "- [x] done, - [ ] not done",
        "[a note] and [",
        "an unfinished [1",
        "[1-300]",
    ],
)
def test_what_is_no_citation_stays_as_it_is(said: str) -> None:
    assert scan_citations(said, KNOWN) == (type(scan_citations("", KNOWN)))(
        text=said, cited=(), dropped=0
    )


@pytest.mark.parametrize(
    ("said", "shown", "dropped"),
    [
        ("It is iron [9].", "It is iron.", 1),
        ("It is iron [9] and tall", "It is iron and tall", 1),
        ("It is iron [1, 9].", "It is iron [1].", 1),
        ("It is iron [8][9] [1].", "It is iron [1].", 2),
        ("It is iron [4-7].", "It is iron [4][5].", 2),
        ("It is iron [0]", "It is iron", 1),
    ],
)
def test_numbers_that_nothing_is_known_by_are_taken_out(
    said: str, shown: str, dropped: int
) -> None:
    scanned = scan_citations(said, KNOWN)
    assert (scanned.text, scanned.dropped) == (shown, dropped)


def test_behind_code_citations_count_again() -> None:
    scanned = scan_citations("```\na [1]\n```\nSo says [2]. Use `a[3]` [4].", KNOWN)
    assert [each.passage.number for each in scanned.cited] == [2, 4]


def test_an_unfinished_citation_is_held_back_and_other_text_is_not() -> None:
    scanner = CitationScanner(KNOWN)
    assert scanner.feed("It is iron ") == ["It is iron"]
    assert scanner.feed("[") == []
    assert scanner.feed("1") == []
    assert numbers(scanner.feed("] and tall")) == [1]
    assert scanner.finish() == []


def test_a_citation_names_its_passage_and_place() -> None:
    (cited,) = scan_citations("Iron [2].", KNOWN).cited
    assert (cited.at, cited.start, cited.end) == (5, KNOWN[2].start, KNOWN[2].end)
    assert cited.quote == KNOWN[2].text


SNIPPETS = st.lists(
    st.sampled_from(
        [
            "[", "]", "［", "】", "(", ")", "1", "2", "9", "12", "-", ",", " ", "\n", "`", "```",
            "~~~", "\\", "x", "a_b", "word", "Source ", ".", ":", "^", "†", "\u00a0", "\n\n",
        ]
    ),
    max_size=24,
).map("".join)  # fmt: skip


@given(said=st.one_of(SNIPPETS, st.text(max_size=60)), cuts=st.lists(st.integers(1, 7)))
def test_cuts_change_neither_text_nor_citations(said: str, cuts: list[int]) -> None:
    whole = scan_citations(said, KNOWN)
    scanner = CitationScanner(KNOWN)
    pieces: list[AnswerPiece] = []
    at = 0
    for size in [*cuts, len(said) + 1]:
        pieces += scanner.feed(said[at : at + size])
        at += size
    pieces += scanner.finish()
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    cited = tuple(piece for piece in pieces if isinstance(piece, Citation))
    assert (text, cited, scanner.dropped) == (whole.text, whole.cited, whole.dropped)
    assert all(text.startswith(f"[{each.passage.number}]", each.at) for each in cited)


@given(said=st.text(max_size=80))
def test_without_brackets_nothing_is_changed(said: str) -> None:
    plain = said.translate(dict.fromkeys(map(ord, "[［【]］】")))
    assert scan_citations(plain, KNOWN).text == plain


def flagged(answer: str) -> list[str]:
    found = unsupported(answer, SOURCES)
    assert all(answer[each["start"] : each["end"]] == each["text"] for each in found)
    return [each["text"] for each in found]


@pytest.mark.parametrize(
    "answer",
    [
        "The company of Gustave Eiffel built the tower from 1887 to 1889 [1].",
        "It is 330 metres tall [1]. It has 3 levels [1].",
        "Paris has 2102650 inhabitants [2].",
        "The Eiffel Tower stands 330 metres tall, built by Eiffel's company [1].",
        "Yes [1].",
        "Is that what you meant?",
        "The sources do not say: nothing that was found answers this question.",
        "```\nanything = 7777\n```",
    ],
)
def test_what_a_source_says_is_supported(answer: str) -> None:
    assert flagged(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "The tower is 412 metres tall [1].",
        "The tower was designed by the engineer Nikola Hartmann [1].",
        "Bananas ripen faster when stored beside apples [2].",
        "Paris has 9 million inhabitants [2].",
    ],
)
def test_what_no_source_says_is_found(answer: str) -> None:
    assert flagged(answer) == [answer]


def test_only_the_wrong_sentence_of_an_answer_is_named() -> None:
    wrong = "It opened in 1925 [1]."
    answer = (
        f"The tower was built by the company of Gustave Eiffel [1]. {wrong} It has three levels."
    )
    assert flagged(answer) == [wrong]


def test_an_answer_in_another_language_is_judged_by_its_numbers() -> None:
    true = "Der Turm ist 330 Meter hoch und wurde von der Firma von Eiffel gebaut [1]."
    false = "Der Turm ist 512 Meter hoch und wurde von der Firma von Eiffel gebaut [1]."
    assert flagged(true) == []
    assert flagged(false) == [false]


def test_without_sources_every_claim_is_unsupported() -> None:
    claim = "The tower was built by Gustave Eiffel's company."
    assert [each["text"] for each in unsupported(claim, [])] == [claim]


def test_a_sentence_in_other_words_than_its_sources_is_unsupported() -> None:
    open_claim = "The structure attracts photographers above Paris rooftops."
    assert flagged(open_claim) == [open_claim]


def test_scripts_without_spaces_are_compared_by_their_letters() -> None:
    source = [passage("富士山は日本で一番高い山です。", language="ja")]
    assert unsupported("富士山は一番高い山です。", source) == []
    false = "琵琶湖には珍しい魚類が多数生息している。"
    assert [each["text"] for each in unsupported(false, source)] == [false]


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The tower has three levels.", 1),
        ("Paris has 2,102,650 inhabitants.", 2),
        ("330 metres.", 1),
        ("Der Turm wurde von der Firma in Paris für die Stadt und mit viel Eisen gebaut.", None),
        ("Paris has 330 inhabitants.", None),
        ("Yes.", None),
    ],
)
def test_a_claim_names_the_passage_that_says_it(claim: str, source: int | None) -> None:
    (found,) = check_claims(claim, SOURCES)
    assert (found.source and found.source.number) == source
