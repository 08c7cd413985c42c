"""The two forms of a filter: what they mean, how they are written, what is refused and where."""

from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from search.filters import ALL, FilterError, Node, read_filter, to_json, to_text
from search.filters.tree import (
    MAX_CHARACTERS,
    MAX_CONDITIONS,
    MAX_DEPTH,
    MAX_PATH_CHARACTERS,
    MAX_PATTERN_CHARACTERS,
    MAX_VALUES,
)
from search.tests.filter_strategies import filters

# --- what the text form means ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", {}),
        (" ; ".strip(" ;"), {}),
        ("year>=2020", {"year": {"$gte": 2020}}),
        ("  year  >=  2020  ;  ", {"year": {"$gte": 2020}}),
        ("year=2020; pages<3.5e2", {"year": 2020, "pages": {"$lt": 350.0}}),
        ("a>1;a<=2", {"$and": [{"a": {"$gt": 1}}, {"a": {"$lte": 2}}]}),
        ("lang=de", {"language": "de"}),
        ("lang=de, fr", {"language": {"$in": ["de", "fr"]}}),
        ("tag!=a,1,true", {"tag": {"$nin": ["a", 1, True]}}),
        ("title~guide", {"title": {"$contains": "guide"}}),
        ("title^=A; title$=z", {"$and": [{"title": {"$startswith": "A"}},
                                         {"title": {"$endswith": "z"}}]}),
        ("draft", {"draft": True}),
        ("!draft", {"draft": {"$ne": True}}),
        ("!!draft", {"draft": True}),
        ("draft=false", {"draft": False}),
        ("year=*", {"year": {"$exists": True}}),
        ("year!=*", {"year": {"$exists": False}}),
        ("year=null", {"year": {"$exists": False}}),
        ("a | b; c", {"$or": [{"a": True}, {"b": True}], "c": True}),
        ("a | (b; c)", {"$or": [{"a": True}, {"b": True, "c": True}]}),
        ("!(a | b)", {"$not": {"$or": [{"a": True}, {"b": True}]}}),
        ("!year>5", {"$not": {"year": {"$gt": 5}}}),
        ('year="2020"', {"year": "2020"}),
        ("title=2020", {"title": "2020"}),
        ("note~2020", {"note": {"$contains": "2020"}}),
        ("created>=2024-05", {"created": {"$gte": "2024-05"}}),
        ("date>=2024-05-31", {"date": {"$gte": "2024-05-31"}}),
        ("page=3", {"page": 3}),
        ("topic=side effects", {"topic": "side effects"}),
        (r'topic="a \"b\" \\ ; c"', {"topic": 'a "b" \\ ; c'}),
        ("topic=“a; b”", {"topic": "a; b"}),
        ('"a b".c=1', None),
        ('"a b.c"=1', {"a b.c": 1}),
        ("author.name=x", {"author.name": "x"}),
        ("metadata.title=x", {"metadata.title": "x"}),
        ("metadata.year=1", {"year": 1}),
        (r"a\.b=1", {r"a\.b": 1}),
        ("og:title=x", {"og:title": "x"}),
        ("größe=über", {"größe": "über"}),
        ("type=text/markdown", {"type": "text/markdown"}),
        ('{"year": 2020}', {"year": 2020}),
        ("!()", {"$not": {}}),
    ],
)  # fmt: skip
def test_text_has_one_meaning(text: str, meant: dict[str, Any] | None) -> None:
    if meant is None:
        with pytest.raises(FilterError):
            read_filter(text)
    else:
        assert to_json(read_filter(text)) == meant


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ({"$and": []}, {}),
        ({"$and": [{"a": 1}]}, {"a": 1}),
        ({"$or": []}, {"$not": {}}),
        ({"$or": [{"a": 1}]}, {"a": 1}),
        ({"a": {"$in": []}}, {"$not": {}}),
        ({"a": {"$nin": []}}, {}),
        ({"a": {"$in": [1]}}, {"a": 1}),
        ({"a": {"$in": [None, 1]}}, {"$or": [{"a": {"$exists": False}}, {"a": 1}]}),
        ({"a": None}, {"a": {"$exists": False}}),
        ({"a": {"$ne": None}}, {"a": {"$exists": True}}),
        ({"a": {"$eq": 1}}, {"a": 1}),
        ({"$not": {"a": 1}}, {"a": {"$ne": 1}}),
        ({"tags": ["x", "y"]}, {"$and": [{"tags": "x"}, {"tags": "y"}]}),
        ({"a": {"b": {"c": 1}, "d.e": {"$gt": 2}}}, {"a.b.c": 1, "a.d\\.e": {"$gt": 2}}),
        ({"a": [{"b": 1}, {"b": 2}]}, {"$and": [{"a.b": 1}, {"a.b": 2}]}),
        ({"a": {"$not": {"$eq": 1}}}, {"a": {"$ne": 1}}),
        ({"a": {"$contains": 1}}, {"a": 1}),
        ({"a": {"$gte": 1, "$lt": 3}}, {"$and": [{"a": {"$gte": 1}}, {"a": {"$lt": 3}}]}),
    ],
)
def test_what_means_the_same_becomes_the_same(
    written: dict[str, Any], same: dict[str, Any]
) -> None:
    assert to_json(read_filter(written)) == same
    assert repr(read_filter(same)) == repr(read_filter(written))


def test_no_filter_filters_nothing() -> None:
    for nothing in (None, "", "  ", {}):
        assert read_filter(nothing) == ALL


@given(filters)
@hypothesis_settings(max_examples=300, deadline=None)
def test_both_forms_come_back_the_same(asked: dict[str, Any]) -> None:
    tree = repr(read_filter(asked))  # not the tree: 1 == True
    as_json, as_text = to_json(read_filter(asked)), to_text(read_filter(asked))
    assert repr(read_filter(as_json)) == tree
    assert repr(read_filter(as_text)) == tree
    assert to_text(read_filter(as_text)) == as_text


#: What the grammar is made of, so that random text is often nearly a filter.
PIECES = ["a", "year", "title", "page", "created", "=", "!=", ">", ">=", "~", "^=", "$=", ";", "|",
          "(", ")", "!", ",", "*", '"', "\\", " ", "1", "2020", "-1.5e3", "2024-05", "true", "null",
          "{", "}", "\n", "“", "$or", ".", "\x00", "\ud800", "é"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=30))
@hypothesis_settings(max_examples=500, deadline=None)
def test_any_text_is_a_filter_or_refused_with_its_place(text: str) -> None:
    tree = read_or_refused(text)
    if tree is not None:
        assert repr(read_filter(to_text(tree))) == repr(tree)
        assert repr(read_filter(to_json(tree))) == repr(tree)


def read_or_refused(asked: Any) -> Node | None:
    """The tree, or None after a refusal that names a place and can be sent."""
    try:
        return read_filter(asked)
    except FilterError as error:
        refusal = error
    assert str(refusal).startswith("At ")
    str(refusal).encode()
    return None


NAMES = ["a", "$or", "$and", "$not", "$gte", "$in", "$exists", "page", "created", "title", "$x", ""]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
)


@given(anything)
@hypothesis_settings(max_examples=500, deadline=None)
def test_any_json_is_a_filter_or_refused_with_its_place(value: Any) -> None:
    tree = read_or_refused(value)
    if tree is not None:
        assert repr(read_filter(to_json(tree))) == repr(tree)


# --- what is refused, and where ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "place", "cure"),
    [
        ([{"a": 1}], "the filter", "is an object"),
        (7, "the filter", "is an object"),
        ({"a": {"$gtee": 1}}, "a.$gtee", "$gte, "),
        ({"$xor": []}, "$xor", "$and, $or, $not"),
        ({"$gte": 1}, "$gte", "under a field"),
        ({"$or": [{"a": 1}, {"year": {"$gte": True}}]}, "$or[1].year.$gte", "a number or text"),
        ({"$and": {"a": 1}}, "$and", "a list of filters"),
        ({"$or": [1]}, "$or[0]", "is an object"),
        ({"$not": [{"a": 1}]}, "$not", "is an object"),
        ({"a": {"$not": 1}}, "a.$not", "operators"),
        ({"a": {}}, "a", "$exists"),
        ({"title": {"b": 1}}, "title.b", '"title.b"'),
        ({"a": {"b": 1, "$gt": 1}}, "a.b", '"a.b"'),
        ({"a": []}, "a", "$exists"),
        ({"a": [[1]]}, "a[0]", "one of several"),
        ({"language": ["de", "fr"]}, "language", "$in"),
        ({"a": {"$in": 1}}, "a.$in", "a list of values"),
        ({"a": {"$in": [1, [2]]}}, "a.$in[1]", "text, a number"),
        ({"a": {"$exists": 1}}, "a.$exists", "true or false"),
        ({"a": {"$gt": None}}, "a.$gt", "a number or text"),
        ({"a": {"$gt": []}}, "a.$gt", "a number or text"),
        ({"a": {"$contains": None}}, "a.$contains", "text"),
        ({"a": {"$startswith": 1}}, "a.$startswith", "text"),
        ({"a": float("nan")}, "a", "not finite"),
        ({"a": float("inf")}, "a", "not finite"),
        ({"a": 10**400}, "a", "smaller"),
        ({"a": "nul\x00"}, "a", "NUL"),
        ({"a": "\ud800"}, "a", "surrogate"),
        ({"\udfff": 1}, "?", "surrogate"),
        ({"a\x00": 1}, "a\x00", "NUL"),
        ({1: 1}, "the filter", "text"),
        ({"": 1}, "the filter", "is no field"),
        ({"a..b": 1}, "a..b", "single dots"),
        ({".a": 1}, ".a", "single dots"),
        ({"a\\": 1}, "a\\", "backslash"),
        ({"metadata": 1}, "metadata", "metadata.year"),
        ({"a" * (MAX_PATH_CHARACTERS + 1): 1}, "“aaa", "128"),
        ({"title": 5}, "title", "Give text"),
        ({"title": {"$in": ["a", 5]}}, "title.$in[1]", "Give text"),
        ({"page": "3"}, "page", "a number"),
        ({"page": {"$contains": 3}}, "page.$contains", "$gte"),
        ({"created": 2024}, "created", "“2024-05-31”"),
        ({"created": {"$lt": "yesterday"}}, "created.$lt", "“2024-05”"),
        ({"created": "9999"}, "created", "“2024-05”"),
        ({"created": "9999-12-31"}, "created", "“2024-05”"),
        ({"created": "0001-01-01T00:00+05:00"}, "created", "“2024-05”"),
        ({"lang": {"$gt": "de"}}, "lang.$gt", "$eq, $ne, $in, $nin, $exists"),
        ({"title": {"$contains": "x" * (MAX_PATTERN_CHARACTERS + 1)}}, "title.$contains", "part"),
        ({"a": {"$in": list(range(MAX_VALUES + 1))}}, "a.$in", "1,000"),
        ({"$or": [{"a": n} for n in range(MAX_CONDITIONS)]}, "$or[99].a", "100"),
        ({f"a{n}": n for n in range(MAX_CONDITIONS + 1)}, "a100", "100"),
        ({"a": "x" * MAX_CHARACTERS}, "a", "65,536"),
        ("year>=", "character 7 of the filter", "a value"),
        ("year>=2020 lang=de", "character 16 of the filter", "“;”"),
        ("a=b !c", "character 7 of the filter", "“;”"),
        ("a==b", "character 3 of the filter", "quotes"),
        ("=3", "character 1 of the filter", "name of a field"),
        ("a;;b", "character 3 of the filter", "name of a field"),
        ("(a; b", "character 6 of the filter", "“)”"),
        ("a)", "character 2 of the filter", "“;”"),
        ('a="b', "character 3 of the filter", "Close it"),
        ("a=b*", "character 3 of the filter", "^="),
        ("a~b,c", "character 3 of the filter", "“|”"),
        ("title", "character 1 of the filter", "title=*"),
        ("page=x", "character 6 of the filter", "a number"),
        ("a=" + "9" * 5000, "character 3 of the filter", "digits"),
        ("[1]", "character 1 of the filter", "name of a field"),
        ('{"a": 1', "character 8 of the filter", "not JSON"),
        ('{"a": 1, "a": 2}', "the filter", "twice"),
        ('{"a": NaN}', "the filter", "NaN"),
        ('{"a": 1e999}', "a", "not finite"),
        ("a=" + "x" * MAX_CHARACTERS, "the filter", "65,536"),
    ],
)
def test_what_cannot_be_is_refused_with_place_and_cure(asked: Any, place: str, cure: str) -> None:
    with pytest.raises(FilterError) as refusal:
        read_filter(asked)
    assert (refusal.value.status, refusal.value.field) == (400, "filter")
    assert str(refusal.value).startswith(f"At {place}")
    assert cure in str(refusal.value)
    assert len(str(refusal.value)) < 600


def nested(depth: int, key: str) -> dict[str, Any]:
    asked: dict[str, Any] = {"a": 1, "b": 2}
    for _ in range(depth):
        asked = {key: asked if key == "$not" else [asked, {"c": 1}]}
    return asked


@pytest.mark.parametrize("key", ["$and", "$or", "$not"])
def test_nesting_is_read_to_a_depth_and_refused_beyond(key: str) -> None:
    assert read_filter(nested(MAX_DEPTH - 1, key)) != ALL
    with pytest.raises(FilterError, match=r"At \$.*nested more than 12 deep"):
        read_filter(nested(50, key))


@pytest.mark.parametrize(
    "huge",
    [
        '{"$or": [' * 200_000,
        '{"a": ' + "[" * 30_000 + "]" * 30_000 + "}",
        '{"a": "' + "x" * 1_000_000 + '"}',
        "(" * 1_000_000,
        "(" * 60_000,
        "!" * 60_000 + "a",
        "a;" * 30_000,
        "a=" + "1," * 30_000 + "1",
        'a="' + "\\" * 60_000,
        "a=" + " " * 60_000 + "=",
        "a" + "." * 60_000,
        "{" + ", ".join(f'"k{n}": 1' for n in range(5_000)) + ', "k4999": 2}',
        {"a": {"$in": ["x" * 1000] * 1000}},
        {"a": {"$in": list(range(1_000_000))}},
        {f"key{n}": n for n in range(100_000)},
        {"$or": [{"a": 1}] * 1_000_000},
        {"k" * 1_000_000: 1},
        {"a": {"$" + "k" * 1_000_000: 1}},
        nested(100_000, "$not"),
    ],
    ids=range(19),
)
def test_too_much_is_refused_before_it_costs_anything(huge: Any) -> None:
    started = process_time()
    with pytest.raises(FilterError) as refusal:
        read_filter(huge)
    assert process_time() - started < 0.5
    assert len(str(refusal.value)) < 600
