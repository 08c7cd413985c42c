"""Dates that a question mentions, in the spellings that people use."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.ranking import Dates, date_agreement, mentioned_dates


def dates(
    *, years: Iterable[int] = (), months: Iterable[int] = (), days: Iterable[int] = ()
) -> Dates:
    return set(years), set(months), set(days)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did I say on 3 August, 2023?", dates(years={2023}, months={8}, days={3})),
        ("What did I say on August 3rd?", dates(months={8}, days={3})),
        ("the 3rd of august", dates(months={8}, days={3})),
        ("Was sagte ich am 12. März 2024?", dates(years={2024}, months={3}, days={12})),
        ("el 5 de enero de 2022", dates(years={2022}, months={1}, days={5})),
        ("qu’ai-je dit en août ?", dates(months={8})),
        ("on 2023-05-08 or 2023-06", dates(years={2023}, months={5, 6}, days={8})),
        ("am 8.5.2023", dates(years={2023}, months={5}, days={8})),
        ("Between August 11 and August 15", dates(months={8}, days={11, 15})),
        ("Where did I go in May?", dates(months={5})),
        ("May I ask what I may do, and who will march?", dates()),
        ("How many apples are 12345 or 3000?", dates()),
        ("", dates()),
    ],
)
def test_written_dates_are_read(question: str, expected: Dates) -> None:
    assert mentioned_dates(question) == expected


def test_a_day_is_one_of_its_month() -> None:
    third_of_august = mentioned_dates("on 3 August 2023")
    assert date_agreement(third_of_august, datetime(2023, 8, 3, tzinfo=UTC)) == 1
    assert date_agreement(third_of_august, datetime(2023, 8, 4, tzinfo=UTC)) == 3 / 5
    assert date_agreement(third_of_august, datetime(2023, 7, 3, tzinfo=UTC)) == 1 / 5
    assert date_agreement(third_of_august, datetime(2021, 7, 3, tzinfo=UTC)) == 0


def test_nothing_agrees_with_no_date() -> None:
    assert (
        date_agreement(mentioned_dates("Where do I live?"), datetime(2023, 8, 3, tzinfo=UTC)) == 0
    )


@given(st.text(max_size=200), st.datetimes(timezones=st.just(UTC)))
def test_any_text_is_read_and_agreement_is_a_share(question: str, moment: datetime) -> None:
    assert 0 <= date_agreement(mentioned_dates(question), moment) <= 1
