"""Questions in English, German or Spanish become plans: what to compute of which tables. Begin with
`plan_question`. Nothing is guessed: each word that says what is asked for must be understood.
Without Django.
"""

from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import replace
from datetime import date

from tables.questions.compounds import parts_of_compounds
from tables.questions.matching import Match, SchemaIndex
from tables.questions.measures import PlanBuilder, Reading
from tables.questions.parsing import read_question
from tables.questions.plan import (
    Plan,
    TableSchema,
    Unsure,
)
from tables.questions.reader import NotOfTables
from tables.questions.shapes import Shape, shapes_of
from tables.questions.spelling import corrections, replaced
from tables.questions.words import Question, concepts_of, known_words

#: How near each of some words is to each of some names, both in order: 0 unrelated, 1 the same.
Similarity = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
#: How near a word must be to a name to mean it, and how much nearer than to the next.
MIN_SIMILARITY, MIN_LEAD = 0.75, 0.08
#: Words of a question that may be written wrongly.
MAX_CORRECTED = 2
#: With more values none is compared by its letters.
MAX_SPELLED_VALUES = 20_000
#: Readings of one question for one shape.
MAX_READINGS = 4
#: Below it nothing in the question says which table is meant, if several may be.
MIN_STRENGTH = 2.0
#: Questions with more words are none of a table's.
MAX_WORDS = 60


def plan_question(
    text: str,
    tables: Sequence[TableSchema],
    *,
    today: date,
    language: str = "",
    similarity: Similarity | None = None,
) -> Plan | Unsure | None:
    """The plan that answers the question; two readings where it is not sure, or None where the
    question is none of a table's. Times such as “last month” are seen from `today`."""
    if not tables:
        return None
    question = read_question(text, today=today, language=language)
    if len(question.words) > MAX_WORDS or question.has("unsupported"):
        return None
    shapes = shapes_of(tables)
    readings: list[Reading] = []
    matched = [
        _meaningful(question, SchemaIndex(shape, question).matches(question)) for shape in shapes
    ]
    named = _places(match for matches in matched for match in matches)
    # What one table is called, or has by name, is guessed of no other.
    known = _places(m for matches in matched for m in matches if m.strength >= 3)
    for shape, matches in zip(shapes, matched, strict=True):
        readings += _read_shape(question, shape, matches, similarity, known)
    if all(each.unknown for each in readings):
        unexplained = {word for at, word in enumerate(question.words) if at not in named}
        unexplained -= known_words(1)
        values = sum(len(column.values) for shape in shapes for column in shape.columns)
        for shape in shapes if unexplained and values <= MAX_SPELLED_VALUES else ():
            readings += _respelled(text, question, unexplained, shape, today=today)
    if not readings:
        return None
    readings.sort(key=lambda each: (len(each.unknown), -each.strength))
    best = readings[0]
    equals = [
        each
        for each in readings
        if len(each.unknown) == len(best.unknown)
        and (best.strength < MIN_STRENGTH or each.strength >= best.strength - 0.5)
    ]
    plans = tuple({_computed(each.plan): each.plan for each in reversed(equals)}.values())[::-1]
    if len(plans) == 1 and not best.is_unsure and (not best.unknown or best.names_rows):
        return best.plan
    if len(best.unknown) > 1:
        return None
    return Unsure(readings=plans[:2], unknown=tuple(question.words[at] for at in best.unknown))


def _computed(plan: Plan) -> Plan:
    """What is computed: the same for plans whose rows are only named by different columns."""
    is_of_rows = plan.group is None and plan.measure in ("most", "least", "list")
    return plan if is_of_rows else plan.model_copy(update={"label": None})


def _is_group(question: Question, at: int) -> bool:
    span = question.span(at)
    return span is not None and "group" in span.marks


def _places(matches: Iterable[Match]) -> frozenset[int]:
    """The words that these name."""
    return frozenset(at for match in matches for at in range(match.start, match.end))


def _meaningful(question: Question, matches: Sequence[Match]) -> list[Match]:
    """Without names found in small words and, in part, in words of the grammar."""
    kept = []
    for match in matches:
        span = question.covering(match.start)
        is_covered = span is not None and match.end <= span.end
        is_small = is_covered and span is not None and "words" in span.marks
        if (is_small and match.strength < 4) or (
            is_covered
            and match.strength < 3
            and span is not None
            and not span.marks.keys() & {"units", "rows"}
            and not (match.kind == "table" and "months" in span.marks)
        ):
            continue
        if is_small and span is not None and match.kind != "column" and len(span.marks) >= 1:
            continue
        if match.strength == 2 and match.end - match.start == 1 and match.start in question.numbers:
            continue
        kept.append(match)
    return kept


def _read_shape(
    question: Question,
    shape: Shape,
    matches: list[Match],
    similarity: Similarity | None,
    known: Collection[int] = (),
) -> list[Reading]:
    """The readings of a question for one shape: several where it is ambiguous. Words at the places
    `known` are not compared by meaning."""
    found: list[Reading] = []
    choices = 1
    while len(found) < min(choices, MAX_READINGS):
        pick = len(found)
        builder = PlanBuilder(question, shape, matches, pick)
        try:
            reading = builder.read()
            # In “by colleague” the first word is unknown because of the second.
            unexplained = [at for at in reading.unknown if not _is_group(question, at)]
            is_near = len(unexplained) == 1 and unexplained[0] not in known and builder.names_table
            # A word that is known to mean something else, such as revenue, is nearest to nothing.
            is_near = is_near and not concepts_of(question.words[unexplained[0]], is_question=True)
            if is_near and similarity is not None:
                added = _by_meaning(question, shape, unexplained, similarity)
                if added:
                    guess = PlanBuilder(question, shape, [*matches, *added], pick)
                    guessed = guess.read()
                    used = guessed.plan.used_columns - reading.plan.used_columns
                    is_same = guessed.plan.measure == reading.plan.measure
                    if is_same and used & {i for match in added for i in match.columns}:
                        builder, reading = guess, guessed
        except NotOfTables:
            break
        found.append(reading)
        choices = builder.choices
    return found


def _respelled(
    text: str, question: Question, unexplained: Set[str], shape: Shape, *, today: date
) -> list[Reading]:
    """The readings for one shape with other words in place of unexplained ones, if that explains
    them all: German compounds taken apart, else words spelled as the tables do."""
    split = parts_of_compounds(unexplained, shape) if question.language == "de" else {}
    corrected = corrections(sorted(unexplained - split.keys()), shape)
    for words, pairs in ((split, ()), (split | corrected, tuple(corrected.items()))):
        if not words or len(pairs) > MAX_CORRECTED:
            continue
        meant = read_question(replaced(text, words), today=today, language=question.language)
        matches = _meaningful(meant, SchemaIndex(shape, meant).matches(meant))
        found = _read_shape(meant, shape, matches, None)
        if found := [each for each in found if not each.unknown or each.names_rows]:
            return [
                replace(each, plan=each.plan.model_copy(update={"corrected": pairs}), unknown=())
                for each in found
            ]
    return []


def _by_meaning(
    question: Question, shape: Shape, unknown: Sequence[int], similarity: Similarity
) -> list[Match]:
    """What the unexplained words mean by a model: the column whose name is clearly nearest. Values
    are not guessed: a number for another one would be wrong."""
    names = [column.name for column in shape.columns]
    found = []
    words = [question.words[at] for at in unknown]
    for at, scores in zip(unknown, similarity(words, names), strict=True):
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        best = order[0]
        second = scores[order[1]] if len(order) > 1 else 0.0
        if scores[best] >= MIN_SIMILARITY and scores[best] - second >= MIN_LEAD:
            found.append(Match(at, at + 1, "column", (best,), (), 1))
    return found


def names_tables(
    text: str, tables: Sequence[TableSchema], *, today: date, language: str = ""
) -> bool:
    """Whether the question names a table, a column or a value."""
    question = read_question(text, today=today, language=language)
    return any(
        _meaningful(question, SchemaIndex(shape, question).matches(question))
        for shape in shapes_of(tables)
    )
