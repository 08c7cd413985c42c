"""Codes and numbers as words."""

import pytest

from documents.templatetags.documents import duration, gist, media_label, metadata_text, rate, tone


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (0.04, "40 ms"),
        (0.0001, "1 ms"),
        (0.096, "0.1 s"),
        (9.96, "10.0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_seconds_are_said_as_people_say_them(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("per_second", "words"),
    [
        (2.34, "2.3 files a second"),
        (1234.5, "1,234 files a second"),
        (0.2, "12 files a minute"),
        (0.01, "0.6 files a minute"),
    ],
)
def test_slow_things_are_counted_by_the_minute(per_second: float, words: str) -> None:
    assert rate(per_second, "file") == words


def test_a_passage_is_listed_without_the_signs_of_markdown() -> None:
    assert gist("## The `set_up`\n\n- **bold** | cell |\n|---|---|") == "The set_up bold cell"
    assert gist("word " * 40) == "word " * 12 + "wor…"


def test_unknown_codes_are_still_shown() -> None:
    assert media_label("application/vnd.nobody+zip") == "vnd.nobody+zip"
    assert media_label("") == "Unknown"
    assert tone("embedding") == "busy"


def test_metadata_is_written_without_brackets_and_quotes() -> None:
    assert metadata_text(["a.csv", "b.pdf"]) == "a.csv, b.pdf"
    assert metadata_text({"from": "ada@example.com", "rows": [1, 2]}) == (
        "from: ada@example.com; rows: 1, 2"
    )
    assert metadata_text(8) == "8"
