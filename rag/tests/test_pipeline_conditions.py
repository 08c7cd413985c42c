"""Conditions: what they hold for, and what is none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.pipelines.conditions import NAMES, ConditionError, parse_condition


def holds(text: str, output: str = "", **facts: Any) -> bool:
    return bool(parse_condition(text)[0]({"output": output, **facts}))


@pytest.mark.parametrize(
    ("text", "output", "expected"),
    [
        ('output contains "yes"', "Oh YES, sure", True),
        ('output contains "yes"', "no", False),
        ('output == "APPROVED"', " APPROVED\n", True),
        ('output == "APPROVED"', "approved", False),
        ('output != "x"', "y", True),
        ("output startswith 'ok'", "OK then", True),
        ("output endswith 'ok'", "it is OK ", True),
        ('not output contains "a" and output contains "b"', "b", True),
        ('output == "a" or output == "b" and output == "c"', "a", True),
        ('(output == "a" or output == "b") and output == "c"', "a", False),
        ("output.score >= 0.7", '{"score": 0.7}', True),
        ("output.score >= 0.7", '```json\n{"score": "0.9"}\n```', True),
        ("output.score >= 0.7", "no JSON", False),
        ("output.items[1].name == 'b'", '{"items": [{}, {"name": "b"}]}', True),
        ("output.items[7] == null", '{"items": []}', True),
        ('output.tags contains "Go"', '{"tags": ["go", "c"]}', True),
        ("output.ok == true", '{"ok": true}', True),
        ("output.ok == true", '{"ok": 1}', False),
        ("output.ok", '{"ok": []}', False),
        ("output > 3", "12", True),
        ("output > 3", "twelve", False),
        ("output < 3", "nan", False),
        (r'output == "say \"hi\""', 'say "hi"', True),
        ("output", "", False),
        ("true", "", True),
    ],
)
def test_what_holds(text: str, output: str, expected: bool) -> None:
    assert holds(text, output) is expected


def test_what_is_known_of_a_run_can_be_asked_for() -> None:
    assert holds("score >= 0.7", score=0.7)
    assert not holds("score >= 0.7", score=None)
    assert holds("iteration < 3", iteration=2)
    assert holds("passed", passed=True)
    assert holds("not passed", passed=False)
    assert parse_condition("score > 0 or iteration > 1")[1] == {"score", "iteration"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "incomplete"),
        ("output ==", "incomplete"),
        ("output == yes", "“yes” is not a value"),
        ('output contains "yes" output', "not expected"),
        ("(output", "“)” is missing"),
        ("output @ 3", "not valid"),
        ("__import__('os')", "not a value"),
        ("score.x > 1", "Only output has fields"),
        ("output[-1]", "not a position"),
        ("output.", "is missing"),
        ("not " * 30 + "output", "nested"),
        ("(" * 50, "nested"),
        ("output " + "and output " * 100, "at most 500"),
    ],
)
def test_what_is_no_condition_says_why(text: str, problem: str) -> None:
    with pytest.raises(ConditionError, match=problem.replace("(", r"\(").replace(")", r"\)")):
        parse_condition(text)


words = st.sampled_from(
    [*NAMES, "and", "or", "not", "(", ")", "==", ">=", "contains", '"x"', "1", "null", ".a", "[0]"]
)


@given(st.lists(words, max_size=12), st.text(max_size=20))
def test_whatever_is_written_is_a_condition_or_refused(parts: list[str], output: str) -> None:
    try:
        condition, _ = parse_condition(" ".join(parts))
    except ConditionError:
        return
    assert condition({"output": output}) in (True, False)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        condition, _ = parse_condition(text)
    except ConditionError:
        return
    assert condition({"output": text}) in (True, False)
