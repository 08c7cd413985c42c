"""Tokens of plans, and pictures of groups."""

from typing import Any

import pytest
from django.core import signing
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidInput
from tables.charts import draw_groups
from tables.plan_tokens import plan_token, read_plan_token
from tables.questions.plan import Filter, Plan

FILTERS = st.builds(
    Filter,
    column=st.integers(0, 2),
    op=st.sampled_from(["=", "!=", ">", "between"]),
    values=st.lists(
        st.booleans()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.dates()
        | st.text(max_size=10),
        min_size=1,
        max_size=3,
    ).map(tuple),
)
PLANS = st.builds(
    Plan,
    tables=st.sets(st.integers(1, 2**40), min_size=1, max_size=50).map(sorted).map(tuple),
    columns=st.just(("Date", "Amount", "Paid")),
    measure=st.sampled_from(["count", "sum", "most", "list"]),
    column=st.none() | st.integers(0, 2),
    filters=st.lists(FILTERS, max_size=2).map(tuple),
    language=st.sampled_from(["en", "de", "es"]),
)


@given(PLANS)
def test_a_token_is_the_plan(plan: Plan) -> None:
    assert read_plan_token(plan_token(plan)) == plan


def test_a_token_of_a_thousand_tables_fits_into_an_address() -> None:
    plan = Plan(tables=tuple(range(10**6, 10**6 + 1000)), columns=("A",), measure="count")
    assert len(plan_token(plan)) < 500


@pytest.mark.parametrize(
    "token",
    ["", "x", "a:b:c", signing.dumps({"tables": 3}, salt="tables.plan", compress=True)],
    ids=["empty", "letter", "parts", "signed"],
)
def test_other_texts_are_no_token(token: str) -> None:
    with pytest.raises(InvalidInput):
        read_plan_token(token)


# Pictures


def group(name: str, value: float | None) -> dict[str, Any]:
    return {"name": name, "value": value, "worded": str(value)}


def test_groups_are_bars_on_both_sides_of_zero() -> None:
    chart = draw_groups([group("Gain", 30.0), group("Loss", -10.0)], period=None)
    assert chart is not None
    assert chart.kind == "bars"
    gain, loss = chart.bars
    assert gain.x == chart.zero
    assert loss.x + loss.width == pytest.approx(chart.zero, abs=0.2)
    assert gain.width == pytest.approx(3 * loss.width, abs=0.5)


def test_months_are_a_line_with_gaps_where_there_is_none() -> None:
    groups = [group("2025-11", 4.0), group("2025-12", 5.0), group("2026-02", 3.0)]
    chart = draw_groups(groups, period="month")
    assert chart is not None
    assert chart.kind == "line"
    assert chart.line is not None
    assert chart.line.values == [4.0, 5.0, None, 3.0]
    assert [name for _, name, _ in chart.times] == ["2025-11", "2025-12", "2026-01", "2026-02"]
    quarters = draw_groups([group("2025-Q4", 1.0), group("2026-Q2", 2.0)], period="quarter")
    assert quarters is not None
    assert [name for _, name, _ in quarters.times] == ["2025-Q4", "2026-Q1", "2026-Q2"]


def test_nothing_is_drawn_of_one_group_or_of_texts() -> None:
    assert draw_groups([group("Only", 3.0)], period=None) is None
    assert draw_groups([group("A", None), group("B", 2.0)], period=None) is None
