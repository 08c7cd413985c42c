"""Names by how they are written, and their normal form."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.extraction import extractors, names
from graph.extraction.mentions import Mention, Source, SourcePassage
from graph.extraction.names import MAX_NAMES
from graph.extraction.normalized_names import (
    MAX_CANDIDATE_WORDS,
    MAX_FORM_CHARACTERS,
    MAX_QUESTION_WORDS,
    candidate_names,
    normalize_name,
)


def source(*texts: str, title: str = "", headings: tuple[str, ...] = ()) -> Source:
    return Source("key", title, [SourcePassage(text, headings) for text in texts])


def found(text: str) -> set[str]:
    return {spot.form for spot in names.names(text)}


def by_form(mentions: object) -> dict[str, Mention]:
    assert hasattr(mentions, "__iter__")
    return {mention.form: mention for mention in mentions}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("He studied at the University of Kansas until then.", "university of kansas"),
        ("It was directed by Ludwig van Beethoven himself.", "ludwig van beethoven"),
        ("a book by J. R. R. Tolkien about", "jrr tolkien"),
        ("lives in St. Louis with", "st louis"),
        ("In the United States this is rare.", "united states"),
        ("won the 2017 World Series easily", "2017 world series"),
        ("a song called “Here comes the Sun” by", "here comes the sun"),
        ('the film "Up and Away" was', "up and away"),
        ("owned by AT&T since", "at and t"),
        ("the iPhone was", "iphone"),
        ("Anna Moravec's opera", "anna moravec"),
        ("die Universität von Köln ist", "universitat von koln"),
        ("родился в городе Санкт-Петербург в", "санкт петербург"),
    ],
)
def test_names_are_found(text: str, name: str) -> None:
    assert name in found(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Water is wet. Green apples are not. When it rains, it pours.", "water"),
        ("Water is wet. Green apples are not.", "green"),
        ("After that He went away.", "after"),
        ("nothing here is written with capitals", "nothing"),
        ("It stopped in Boston. Later they left.", "boston later"),
        ("Boston, Chicago and others", "boston chicago"),
    ],
)
def test_what_only_begins_a_sentence_or_stands_beside_is_none(text: str, name: str) -> None:
    assert name not in found(text)


@pytest.mark.parametrize(
    "code",
    ["`PASSWORD`", "``Reset Password``", "MAX_UPLOAD_BYTES", "--Collection", "--collection=Bikes",
     "https://example.org/Some/Page", "[](../Settings.md#Answers)", "docs/Some Page.md",
     "Manage.py", "ada@Example.org", "```sh\nPOST Content-Type\n```", "~~~\nPOST\n~~~",
     "postgresql://USER:PASSWORD@HOST/DATABASE"],
)  # fmt: skip
def test_code_paths_options_and_addresses_are_no_names(code: str) -> None:
    # “Page” stands behind a space that no path has.
    assert found(f"They met Ada Lovelace at\n{code}\nbefore noon") - {"some page", "page"} == {
        "ada lovelace"
    }


@pytest.mark.parametrize(
    "text",
    ["sang ``Here Comes the Sun '' and ``Yellow Submarine '' there",
     "sang `Here Comes the Sun' and `Yellow Submarine' there",
     "read _Here Comes the Sun_ and _Yellow Submarine_ there",
     "[Come, “Here Comes the Sun”](a.md) or [Yellow Submarine](b.md)"],
)  # fmt: skip
def test_quotations_emphasis_and_texts_of_links_are_not_taken_for_code(text: str) -> None:
    assert {"here comes the sun", "yellow submarine"} <= found(text)


@given(st.text(alphabet='`~]()[:/@-_."“”AaBb \n', max_size=300))
def test_names_are_parts_of_the_text(text: str) -> None:
    for spot in names.names(text):
        assert spot.name == text[spot.start : spot.end]


@pytest.mark.parametrize("text", ["weighs 8 Nm", "for EUR 19", "750 Wh", "see 7.2 Mb"])
def test_quantities_are_no_names(text: str) -> None:
    assert found(text) == set()


def test_units_alone_may_be_names() -> None:
    assert found("lives in Boston, MA with a PA") == {"boston", "ma", "pa"}


def test_the_number_of_a_section_is_no_part_of_its_name() -> None:
    assert found("7.2 Safety Officer") == {"safety officer"}
    assert "2017 world series" in found("2017 World Series")


@pytest.mark.parametrize(
    ("text", "form", "type"),
    [
        ("since April", "april", "date"),
        ("as far as Mars", "mars", "name"),
        ("am Montag kam sie", "montag", "date"),
        ("by YouTube and eBay", "youtube", "name"),
        ("by YouTube and eBay", "ebay", "name"),
        ("by `YouTube` and getValue", "youtube", "code"),
        ("by `YouTube` and getValue", "getvalue", "code"),
        ("the class HttpServer()", "httpserver", "code"),
        ("article P-301", "p 301", "code"),
    ],
)
def test_types_tell_names_from_dates_and_code(text: str, form: str, type: str) -> None:
    assert by_form(extractors.read_by_rules(source(text)).mentions)[form].type == type


def test_a_word_that_begins_a_sentence_counts_if_it_is_a_name_elsewhere() -> None:
    assert "nightfall" in found("Nightfall was late. They played Nightfall again.")


def test_parts_of_a_name_are_names_too() -> None:
    forms = found("the Botanical Garden of the University of Vienna is")
    assert {"botanical garden", "university", "vienna"} <= forms
    assert "botanical garden of the university of vienna" in forms


def test_titles_name_the_document_with_and_without_what_tells_it_from_namesakes() -> None:
    mentions = list(names.title_mentions(source("one", "two", title="Green (Steve Hillage album)")))
    assert {(each.passage, each.form) for each in mentions} == {
        (passage, name) for passage in (0, 1) for name in ("green steve hillage album", "green")
    }
    assert {each.kind for each in mentions} == {"self"}


def test_a_place_is_known_without_what_it_lies_in_but_a_list_is_not() -> None:
    assert names.title_names("Leland, North Carolina") == ["Leland, North Carolina", "Leland"]
    assert names.title_names("Equations, tables and charts") == ["Equations, tables and charts"]
    assert names.title_names("") == []


def test_names_in_titles_and_headings_are_known_as_such() -> None:
    read = source("no name here", title="Brother (Pearl Jam song)", headings=("About Seattle",))
    mentions = by_form(names.name_mentions(read))
    assert mentions["pearl jam"].kind == "heading"
    assert (mentions["pearl jam"].start, mentions["pearl jam"].end) == (0, 0)


def test_a_surname_means_the_one_whose_full_name_the_document_gives() -> None:
    read = source("It was Raoul Walsh who made it.", "Then Walsh left.")
    second = {each.form for each in names.name_mentions(read) if each.passage == 1}
    assert "raoul walsh" in second


def test_a_surname_of_two_means_neither() -> None:
    read = source("Here are Anna Moravec and the late Ilka Moravec.", "Then Moravec left.")
    second = {each.form for each in names.name_mentions(read) if each.passage == 1}
    assert second == {"moravec"}


def test_an_acronym_means_what_it_was_introduced_for() -> None:
    read = source("The World Health Organization (WHO) met.", "A report of the WHO says so.")
    second = {each.form for each in names.name_mentions(read) if each.passage == 1}
    assert "world health organization" in second


def test_places_are_those_of_the_text() -> None:
    text = "It was Raoul Walsh who made it."
    mention = by_form(names.name_mentions(source(text)))["raoul walsh"]
    assert text[mention.start : mention.end] == "Raoul Walsh" == mention.name


def test_all_rules_together_tell_each_form_of_a_passage_once() -> None:
    read = source("Green is an album by Steve Hillage.", title="Green (Steve Hillage album)")
    mentions = extractors.read_by_rules(read).mentions
    assert len({(each.passage, each.form) for each in mentions}) == len(mentions)
    assert by_form(mentions)["green"].kind == "self"
    assert by_form(mentions)["steve hillage"].kind == "heading"


@given(st.text(max_size=500), st.text(max_size=80))
def test_any_text_is_read_within_bounds(text: str, title: str) -> None:
    mentions = list(names.name_mentions(source(text, title=title)))
    assert len(mentions) <= MAX_NAMES
    assert all(each.form and 0 <= each.start <= each.end <= len(text) for each in mentions)


def test_a_page_of_capitals_takes_no_longer_than_its_length() -> None:
    text = "Of The " * 20_000 + "A. " * 20_000 + '"' * 20_000 + "“A" * 10_000
    assert len(list(names.name_mentions(source(text)))) <= MAX_NAMES


def test_a_small_word_before_a_name_makes_no_full_name_of_it() -> None:
    told = source("It runs on PostgreSQL. It needs (This PostgreSQL is old) a new one.")
    assert "this postgresql" not in {
        mention.form for mention in names.name_mentions(told) if mention.name == "PostgreSQL"
    }


def test_amounts_are_no_names() -> None:
    assert found("Recall is 0.97. The index takes 11.7 MB, of 4 GB of memory.") == set()


def test_lists_and_tables_begin_with_capitals_that_name_nothing() -> None:
    text = "- Chunks are small\n- Below 20,000\n> Quoted\n| Measured | Half | HNSW |"
    assert found(text) == {"hnsw"}


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
