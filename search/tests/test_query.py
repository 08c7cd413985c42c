"""What a person types, and what is meant by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.text import has_emoji
from search.query import MAX_QUERY_CHARACTERS, Query, QueryError, parse_query


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        ("what is bm25?", Query("what is bm25?")),
        ('"side effects" of aspirin', Query("side effects of aspirin", phrases=("side effects",))),
        ("“side effects”", Query("side effects", phrases=("side effects",))),
        ("aspirin -children", Query("aspirin", excluded=("children",))),
        ('aspirin -"young children"', Query("aspirin", excluded=("young children",))),
        ("cats OR dogs", Query("cats dogs")),
        ("trans* models", Query("models trans", prefixes=("trans",))),
        ("co-operation state-of-the-art", Query("co-operation state-of-the-art")),
        ("ein - Gedanke", Query("ein Gedanke")),
        ("糖尿病 症状", Query("糖尿病 症状")),
        ('unclosed "quote here', Query("unclosed quote here")),
    ],
)
def test_operators_are_understood(raw: str, meant: Query) -> None:
    assert parse_query(raw) == meant


@pytest.mark.parametrize("raw", ["", "   ", '""', "- * | & ! ( )", "-only -exclusions", "…", "\0"])
def test_a_query_without_a_word_says_what_to_do(raw: str) -> None:
    with pytest.raises(QueryError, match=r"[Tt]ype|Enter|Add"):
        parse_query(raw)


def test_a_query_that_is_too_long_says_how_long_it_may_be() -> None:
    assert parse_query("a " * (MAX_QUERY_CHARACTERS // 2)).text
    with pytest.raises(QueryError, match="4,000 are allowed"):
        parse_query("word " * 2000)


def test_letters_that_stand_alone_are_prefixes_where_no_space_parts_words() -> None:
    assert parse_query("水 H2O 水素").prefixes == ("水",)
    assert parse_query("ibu* 東京*").prefixes == ("ibu",)
    assert parse_query("東京*").text == "東京"


@given(st.text(max_size=200))
def test_anything_can_be_typed(raw: str) -> None:
    try:
        query = parse_query(raw)
    except QueryError:
        return
    assert any(map(str.isalnum, query.text)) or has_emoji(query.text)
    assert "\0" not in query.text


@pytest.mark.parametrize(
    ("raw", "phrases", "named"),
    [
        ('"side effects"', ("side effects",), ()),
        ('"side effects" aripiprazole', ("side effects",), ()),
        ('aripiprazole "side effects" in young people', ("side effects",), ()),
        ('What are "side effects"?', (), ("side effects",)),
        ('Show the id of the document named "Robbin CV".', (), ("Robbin CV",)),
        ('the year in which the song "Thinking Out Loud" came out', (), ("Thinking Out Loud",)),
        ('What are +"side effects"?', ("side effects",), ()),
        ('What are +"side effects" of “aspirin”?', ("side effects",), ("aspirin",)),
        ('"What now?"', ("What now?",), ()),
        ('"糖尿病" 症状', ("糖尿病",), ()),
        ("请告诉我关于“糖尿病”的症状和治疗方法", (), ("糖尿病",)),
        ("“糖尿病”有什么症状？", (), ("糖尿病",)),
        ('"서울대학교" 입학 시험', ("서울대학교",), ()),
    ],
)
def test_search_words_demand_a_phrase_and_a_sentence_names_it(
    raw: str, phrases: tuple[str, ...], named: tuple[str, ...]
) -> None:
    query = parse_query(raw)
    assert (query.phrases, query.named) == (phrases, named)
    for phrase in (*phrases, *named):
        assert phrase in query.text
