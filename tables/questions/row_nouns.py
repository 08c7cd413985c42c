"""Nouns that a question has for the rows of a table that does not say what they are: “members” of
names, plans and fees. Begin with `may_name_rows`."""

from tables.questions.conditions import PERSONS, ROW_CONCEPTS
from tables.questions.reader import ShapeReader
from tables.questions.words import concepts_of

#: Some of the rows, and not all of them.
_PARTS_OF_ROWS = frozenset(
    (
        *("women", "woman", "girls", "boys", "males", "females", "children", "kids", "adults"),
        *("seniors", "juniors", "frauen", "manner", "madchen", "jungen", "kinder", "erwachsene"),
        *("mujeres", "hombres", "chicas", "chicos", "ninos", "ninas", "adultos", "beginners"),
        *("anfanger", "principiantes", "newcomers", "cancellations", "kundigungen", "bajas"),
        *("refunds", "returns", "complaints", "errors", "losses", "debts", "savings", "profit"),
    )
)
_OF = frozenset(("of", "de", "del", "los", "las", "der", "von"))
_PLURALS = frozenset(("los", "las"))
#: Before a noun for what rows have, or where they are: “with garden”.
_PLACING = frozenset(
    (
        *("with", "without", "in", "at", "on", "from", "to", "into", "by", "mit", "ohne", "im"),
        *("am", "bei", "auf", "an", "aus", "zum", "zur", "con", "sin", "en", "a", "desde"),
        *("no", "kein", "keine", "keinen", "ningun", "ninguna", "not", "nicht", "than", "als"),
    )
)
_WHICH = frozenset(("which", "welche", "welcher", "welches", "welchen", "que", "cuales", "cual"))
_ASKING = frozenset(("count", "list", "top", "bottom", "most", "least"))
#: Between what asks and its noun.
_ARTICLES = frozenset(
    (
        *("the", "a", "an", "our", "this", "these", "los", "las", "el", "la", "un", "una"),
        *("nuestros", "nuestras", "die", "der", "den", "dem", "das", "ein", "eine", "einen"),
        *("einer", "einem", "unsere", "unserer", "unseren"),
    )
)


def is_known_noun(word: str) -> bool:
    """Whether it is known what a noun means."""
    return bool(concepts_of(word, is_question=True))


def names_exactly(reader: ShapeReader, columns: set[int]) -> bool:
    """Whether a value, or a name of a column, of these that are computed with is in the question as
    the table has it: enough for a noun of which nothing is known."""
    return any(
        match.kind != "table"
        and (match.strength == 4 or (match.strength == 3 and match.kind == "column"))
        and set(match.columns) & columns
        and reader.used >= set(range(match.start, match.end))
        for match in reader.matches
    )


def may_name_rows(reader: ShapeReader, at: int) -> bool:
    """Whether a word that nothing explains is in the place of a noun for the rows, which no other
    word names: “how many gold members”, “average fee of the members”."""
    if at >= len(reader.words) or reader.question.span(at):
        return False
    word = reader.words[at]
    concepts = set(concepts_of(word, is_question=True))
    return (
        word.isalpha()
        and len(word) >= (3 if concepts else 4)
        and word not in _PARTS_OF_ROWS
        and concepts <= ROW_CONCEPTS
        and not (not concepts and _is_adjective(reader, at))
        and not _are_other_persons(reader, concepts)
        and not any(reader.is_table_at(other) for other in range(len(reader.words)) if other != at)
        and _is_behind_measure(reader, at, is_known=bool(concepts))
    )


def _is_behind_measure(reader: ShapeReader, at: int, *, is_known: bool) -> bool:
    if is_known:
        before = at - 1
        while before >= 0 and (reader.words[before] in _ARTICLES or _is_plain(reader, before)):
            before -= 1
        return before < 0 or reader.words[before] not in _PLACING
    before = at - 1
    while before > 0 and before in reader.used and not reader.question.span(before):
        before -= 1  # “of student members”
    if before < 0:
        return False
    if _is_of(reader, before):
        return True
    for span in reader.question.spans:
        distance = at - span.end
        if any(_is_apart(reader, between) for between in range(span.end, at)):
            continue  # “How many were planted”: no noun
        if (
            (span.marks.keys() & _ASKING and 0 <= distance <= 3)
            or ("how_much" in span.marks and 0 < distance <= 3)
            or (reader.words[span.start] in _WHICH and 0 <= distance <= 1)
        ):
            return True
    return False


def _is_adjective(reader: ShapeReader, at: int) -> bool:
    """Whether a noun follows that is explained: “full closures”."""
    behind = at + 1 < len(reader.words) and _is_plain(reader, at + 1)
    return behind and reader.question.language != "es"


def _is_plain(reader: ShapeReader, at: int) -> bool:
    """Whether a word is explained and no part of the grammar: a value, such as an adjective."""
    return at in reader.used and reader.question.covering(at) is None


def _is_of(reader: ShapeReader, at: int) -> bool:
    """Whether “of” is here, or “de los”."""
    word = reader.words[at]
    return word in _OF and (word not in _PLURALS or (at > 0 and reader.words[at - 1] == "de"))


def _is_apart(reader: ShapeReader, at: int) -> bool:
    """Whether a word parts what asks from a noun behind it: a verb, or another unknown word."""
    span = reader.question.covering(at)
    if at in reader.question.numbers or reader.words[at] in _ARTICLES | _OF:
        return False
    return at not in reader.used or (span is not None and "words" in span.marks)


def _are_other_persons(reader: ShapeReader, concepts: set[str]) -> bool:
    """Whether they are persons, and the columns have persons of another kind: teachers, where the
    rows have students."""
    persons = PERSONS - {"name"}
    held = {each for each in persons if reader.shape.concepts.get(each)}
    return bool(concepts & persons and held and not concepts & held)
