"""Small chunks that know the larger passage they are a part of."""

from itertools import groupby, pairwise
from typing import Any

from reading.chunkers import get_chunker
from reading.chunkers.base import Span
from reading.parsers import ParsedDocument
from reading.tests.factories_chunkers import marked, minilm, plain

COUNTER = minilm()
WORDS = "Ten plain words make up this short sentence about things."


def split(document: ParsedDocument, **options: Any) -> list[Span]:
    return get_chunker("parent_child", counter=COUNTER, **options).split(document)


def families(spans: list[Span]) -> list[list[Span]]:
    return [list(family) for _, family in groupby(spans, key=lambda span: span.parent)]


def test_parents_hold_their_children_and_are_larger_than_what_the_model_reads() -> None:
    document = plain("\n\n".join([" ".join([WORDS] * 4)] * 60))
    spans = split(document)
    found = families(spans)
    assert [family[0].parent for family in found] == list(range(len(found)))
    assert max(span.token_count for span in spans) <= 120
    sizes = [COUNTER.count(document.text[family[0].start : family[-1].end]) for family in found]
    assert max(sizes) <= 800
    assert min(sizes) > 400, "larger than the 254 tokens of the model"
    assert all(len(family) > 3 for family in found)


def test_a_parent_ends_at_a_heading_rather_than_in_a_section() -> None:
    section = "## Head\n\n" + "\n\n".join([" ".join([WORDS] * 4)] * 6)
    document = marked("\n\n".join([section] * 5))
    starts = [family[0].start for family in families(split(document, parent_tokens=400))]
    assert len(starts) == 5
    assert all(document.text.startswith("## Head", start) for start in starts)


def test_only_children_of_one_parent_overlap() -> None:
    document = plain("\n\n".join([" ".join([WORDS] * 4)] * 40))
    spans = split(document, overlap=30, parent_tokens=300)
    inside = [(one, two) for one, two in pairwise(spans) if one.parent == two.parent]
    assert any(two.start < one.end for one, two in inside)
    for one, two in pairwise(spans):
        assert one.parent == two.parent or one.end <= two.start


def test_a_table_that_fits_its_parent_is_not_torn_between_two() -> None:
    rows = "\n".join(f"| drug {n} | {n} mg |" for n in range(40))
    table = f"| name | dose |\n|---|---|\n{rows}"
    prose = " ".join([WORDS] * 12)
    for filler in range(0, 200, 40):
        document = marked(f"{prose} {'filler ' * filler}\n\n{table}\n\n{prose}")
        start = document.text.index("| name")
        inside = {
            span.parent
            for span in split(document, parent_tokens=COUNTER.count(table) + 30)
            if start <= span.start < start + len(table)
        }
        assert len(inside) == 1


def test_a_short_text_is_one_child_of_one_parent() -> None:
    assert [span.parent for span in split(plain(WORDS))] == [0]
