"""Random filters and random rows from the same few values, so that they meet often."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from search.tests.filter_oracle import DATE_KEYS, Row

#: What has a meaning to SQL, to jsonpath, to regular expressions, to psycopg or to ourselves.
AWKWARD = [
    *("", "a", "A", "A guide", "guide", "Größe", "größe", "%", "_", "100%", "a_b", "a\\b"),
    *("it's", 'say "hi"', "'); DROP TABLE documents_chunk; --", "%s", "%(workspace)s", "{scope}"),
    *(
        "日本語",
        "👩‍👩‍👧",
        "line\nbreak",
        "tab\t",
        "2020",
        "true",
        "null",
        "*",
        "(a|b)*",
        "^a$",
        "\\",
    ),
    *("$a", "a.b", "“curly”", "a; b", "a,b", "a b", "x=y", "\u2028", "\x7f", "\U0010ffff", "***=a"),
]
#: Letters whose case PostgreSQL and Python change alike.
LETTERS = "aAbBäÄéÉжЖß中1 .%_'\"\\*+([{^$|\n"
NUMBERS = [0, 1, -1, -5, 2020, 2020.0, 2020.5, 0.1, -0.0, 1e-7, 1e22, 1e23, 10**23, 10**30]
NUMBERS += [9007199254740993, 9007199254740992.0, -(10**300), 1.7e308]
KEYS = ["a", "b", "year", "ключ", 'quo"te', "a.b", "back\\slash", "title", "$x", "metadata", "%s"]
MOMENTS = [
    datetime(2023, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 1, 1, tzinfo=UTC),
    datetime(2024, 5, 31, 12, 0, 0, 1, tzinfo=UTC),
    datetime(2024, 6, 1, tzinfo=UTC),
]
TIMES = ["2023", "2024", "2024-01", "2024-05", "2024-05-31", "2024-06-01", "9998"]
TIMES += ["2024-05-31T12:00:00.000001+00:00", "2024-06-01T02:00:00+02:00"]
CODES = ["en", "de", "DE", "de-CH", "zh", "xx"]

FOLDERS = ["", "a", "a/b", "A/b", "/", "x/y/z"]
URLS = ["https://www.Example.org:8080/a/b?x=1#y", "http://user:word@docs.example.org", "ftp://a/b"]
DATES = ["2024-05-31", "2024-05", "2024", 2024, 2023, "31 May 2023", "2024-02-31T08:00:00Z"]
DATES += [
    "20240531",
    "soon",
    "",
    None,
    True,
    12024,
    ["2024-01-01"],
    "0999-01-01",
    "v2024",
    "2024-13",
]

texts = st.sampled_from(AWKWARD) | st.text(LETTERS, max_size=5)
numbers = st.sampled_from(NUMBERS) | st.integers(-3, 3)
scalars = numbers | st.booleans() | texts
values = st.none() | scalars
keys = st.sampled_from(KEYS)
nested = st.recursive(
    values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=5,
)
#: The two that most filters are about, and whatever else.
metadata = st.builds(
    lambda usual, others: {**others, **usual},
    st.fixed_dictionaries(
        {"year": numbers | texts | st.lists(numbers | texts, max_size=3)},
        optional={"a": nested, "b": st.lists(st.dictionaries(keys, values, max_size=3))},
    ),
    st.dictionaries(keys, nested, max_size=3),
)

rows = st.builds(
    Row,
    metadata=metadata,
    title=texts,
    source=texts | st.sampled_from(FOLDERS).map(lambda folder: f"{folder}/file.txt"),
    media_type=st.sampled_from(["text/plain", "application/pdf"]),
    chunk=texts,
    heading=st.lists(texts, max_size=3).map(tuple),
    page=st.none() | st.integers(0, 3),
    language=st.sampled_from(["en", "de", "zh", ""]),
    configuration=st.sampled_from(["english", "german", "simple"]),
    created=st.sampled_from(MOMENTS),
    url=st.sampled_from(["", "", *URLS]),
    said=st.dictionaries(st.sampled_from(DATE_KEYS), st.sampled_from(DATES), max_size=2),
)


def path_of(chain: list[str]) -> str:
    """The path that leads through these keys."""
    written = ".".join(key.replace("\\", "\\\\").replace(".", "\\.") for key in chain)
    return f"metadata.{written}"


def evenly(*choices: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One of `choices`, each as often; `|` would count the parts of each."""
    return st.sampled_from(choices).flatmap(lambda choice: choice)


paths = evenly(
    st.lists(keys, min_size=1, max_size=3).map(path_of),
    st.sampled_from(["a", "year", "b", "a.b", "b.a", "b.year"]),
)


def operators(value: st.SearchStrategy[Any], names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """One operator with a value, or a list where it takes one."""
    nullable = st.none() | value
    single = st.sampled_from(names).flatmap(
        lambda name: st.tuples(st.just(name), nullable if name in {"$eq", "$ne"} else value)
    )
    several = st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(nullable, max_size=4))
    existence = st.tuples(st.just("$exists"), st.booleans())
    return st.lists(evenly(single, single, single, several, existence), min_size=1, max_size=2).map(
        dict
    )


EQUALITY = ["$eq", "$ne"]
ORDER = [*EQUALITY, "$gt", "$gte", "$lt", "$lte"]
TEXT = [*ORDER, "$contains", "$startswith", "$endswith"]


def about(
    fields: st.SearchStrategy[str], value: st.SearchStrategy[Any], names: list[str]
) -> st.SearchStrategy[dict[str, Any]]:
    """A condition on one of `fields`."""
    under = operators(value, names)
    negated = under.map(lambda inner: {"$not": inner})
    condition = evenly(under, under, under, negated, value, st.none() | value)
    return st.builds(lambda name, asked: {name: asked}, fields, condition)


conditions = evenly(
    about(paths, numbers, ORDER),
    about(paths, numbers | texts, ORDER),
    about(paths, texts, TEXT),
    about(paths, scalars, [*EQUALITY, "$contains"]),
    about(st.sampled_from(["title", "source", "media_type", "chunk"]), texts, TEXT),
    about(st.sampled_from(["heading", "chapter", "section"]), texts, TEXT),
    about(st.just("collection"), st.sampled_from(["notes", "other"]), TEXT),
    about(st.just("page"), st.integers(0, 3) | st.sampled_from([1.5, 10**40]), ORDER),
    about(st.sampled_from(["created", "dated"]), st.sampled_from(TIMES), ORDER),
    about(st.just("origin"), st.sampled_from([*FOLDERS, "example.org", "a"]), TEXT),
    about(st.sampled_from(["lang", "language"]), st.sampled_from(CODES), EQUALITY),
)
filters = st.recursive(
    conditions,
    lambda inner: st.one_of(
        st.builds(
            lambda name, parts: {name: parts},
            st.sampled_from(["$and", "$or"]),
            st.lists(inner, max_size=3),
        ),
        inner.map(lambda part: {"$not": part}),
        st.builds(lambda one, other: {**one, **other}, inner, inner),
    ),
    max_leaves=6,
)
