"""One form for every way of writing a name, and what of a question may be one."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.extraction.normalized_names import (
    MAX_CANDIDATE_WORDS,
    MAX_FORM_CHARACTERS,
    MAX_QUESTION_WORDS,
    candidate_names,
    normalize_name,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Beatles", "beatles"),
        ("Beyoncé’s", "BEYONCE"),
        ("J. R. R. Tolkien", "J.R.R. Tolkien"),
        ("U. S. Navy", "U.S. Navy"),
        ("Jean-Luc Godard", "Jean Luc Godard"),
        ("Person - centered therapy", "Person-centered therapy"),
        ("Simon & Garfunkel", "Simon and Garfunkel"),
        ("O'Brien", "O’Brien"),
        ("Straße", "STRASSE"),
        ("ＡＢＣ ﬁle", "abc file"),
        ("user_id", "User ID"),
        ("“Green”", "Green"),
        ("cafe\u0301", "café"),
    ],
)
def test_how_a_name_is_written_makes_no_difference(one: str, other: str) -> None:
    assert normalize_name(one) == normalize_name(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C", "C++"),
        ("C", "C#"),
        ("Vitamin A", "Vitamin B"),
        ("हिन्दी", "हिन्दू"),
        ("Paris", "Paris, Texas"),
        ("The", "A"),
    ],
)
def test_other_names_keep_other_forms(one: str, other: str) -> None:
    assert normalize_name(one) != normalize_name(other)


@pytest.mark.parametrize("text", ["", " ", "—", "!?", "…", "_", "’"])
def test_without_letters_and_digits_there_is_no_form(text: str) -> None:
    assert normalize_name(text) == ""


@pytest.mark.parametrize("text", ["東京大学", "Москва", "القاهرة", "हिन्दी", "서울"])
def test_all_scripts_stay_what_they_are(text: str) -> None:
    assert normalize_name(text) == unicodedata.normalize("NFC", text).casefold()


@given(st.text(max_size=300))
def test_the_form_of_a_form_is_itself_and_fits_an_index(text: str) -> None:
    normal = normalize_name(text)
    assert len(normal) <= MAX_FORM_CHARACTERS
    assert normal == normal.strip()
    assert normalize_name(normal) == normal


@given(st.text(alphabet="abc dEF'é.", max_size=60))
def test_case_makes_no_difference(text: str) -> None:
    assert normalize_name(text) == normalize_name(text.upper()) == normalize_name(text.lower())


def forms_of(question: str) -> set[str]:
    return {asked.form for asked in candidate_names(question)}


def test_every_run_of_words_may_be_a_name() -> None:
    forms = forms_of("When was the University of Kansas's library built?")
    assert {"university of kansas", "kansas", "library built"} <= forms
    assert "library" not in forms


def test_function_words_alone_are_names_only_in_capitals() -> None:
    assert "who" not in forms_of("Who is it?")
    assert "who" in forms_of("Where did The Who play?")
    assert "it" not in forms_of("where is it shown")


def test_capitals_tell_names_but_not_at_the_beginning() -> None:
    asked = {each.form: each for each in candidate_names("Where was Anna Moravec born?")}
    assert asked["anna moravec"].is_capital
    assert not asked["moravec born"].is_capital
    assert not {each.form: each for each in candidate_names("Green apples")}["green"].is_capital


def test_places_are_those_of_the_words() -> None:
    asked = next(each for each in candidate_names("in New York") if each.form == "new york")
    assert (asked.start, asked.end) == (1, 3)


@given(st.text(max_size=2000))
def test_a_pasted_page_asks_for_a_bounded_number_of_forms(text: str) -> None:
    asked = candidate_names(text)
    assert len(asked) <= MAX_QUESTION_WORDS * MAX_CANDIDATE_WORDS
    assert all(0 <= each.start < each.end <= each.start + MAX_CANDIDATE_WORDS for each in asked)


def test_a_question_without_capitals_may_name_anything() -> None:
    assert {"raoul walsh", "spouse"} <= forms_of("raoul walsh spouse")
    assert "nightfall" in forms_of("Nightfall was composed by whom in Pula?")
