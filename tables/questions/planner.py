"""Questions in English, German or Spanish become plans: what to compute of which tables. Begin with
`plan_question`. Nothing is guessed: each word that says what is asked for must be understood.
Without Django.
"""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Literal

from tables.questions.matching import (
    Match,
    SchemaIndex,
    Shape,
    shapes_of,
)
from tables.questions.measures import PlanBuilder, Reading
from tables.questions.plan import (
    Plan,
    TableSchema,
    Unsure,
)
from tables.questions.reader import NotOfTables
from tables.questions.words import (
    Question,
    read_question,
)

#: How near each of some words is to each of some names, both in order: 0 unrelated, 1 the same.
Similarity = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
#: How near a word must be to a name to mean it, and how much nearer than to the next.
MIN_SIMILARITY, MIN_LEAD = 0.75, 0.08
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
    readings: list[Reading] = []
    for shape in shapes_of(tables):
        matches = _meaningful(question, SchemaIndex(shape, question).matches(question))
        readings += _read_shape(question, shape, matches, similarity)
    if not readings:
        return None
    readings.sort(key=lambda each: (len(each.unknown), -each.strength))
    best = readings[0]
    equals = [
        each
        for each in readings
        if len(each.unknown) == len(best.unknown) and each.strength >= best.strength - 0.5
    ]
    plans = tuple(dict.fromkeys(each.plan for each in equals))
    if not best.unknown and len(plans) == 1 and not best.is_ambiguous:
        return best.plan
    if len(best.unknown) > 1:
        return None
    return Unsure(readings=plans[:2], unknown=tuple(question.words[at] for at in best.unknown))


def _meaningful(question: Question, matches: Sequence[Match]) -> list[Match]:
    """Without names found in small words and, in part, in words of the grammar."""
    kept = []
    for match in matches:
        span = question.span(match.start)
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
    question: Question, shape: Shape, matches: list[Match], similarity: Similarity | None
) -> list[Reading]:
    """The readings of a question for one shape: two where it is ambiguous."""
    found = []
    for pick in (0, 1):
        builder = PlanBuilder(question, shape, matches, pick)
        try:
            reading = builder.read()
            if len(reading.unknown) == 1 and reading.strength >= 1 and similarity is not None:
                added = _by_meaning(question, shape, reading.unknown, similarity)
                if added:
                    builder = PlanBuilder(question, shape, [*matches, *added], pick)
                    reading = builder.read()
        except NotOfTables:
            break
        found.append(reading)
        if not builder.is_ambiguous:
            break
    return found


def _by_meaning(
    question: Question, shape: Shape, unknown: Sequence[int], similarity: Similarity
) -> list[Match]:
    """What the unexplained words mean by a model: the name that is clearly nearest."""
    names: list[tuple[str, Literal["table", "column", "value"], int]] = []
    names += [(table.name, "table", at) for at, table in enumerate(shape.tables) if table.name]
    names += [(column.name, "column", at) for at, column in enumerate(shape.columns)]
    names += [
        (value, "value", at)
        for at, column in enumerate(shape.columns)
        if column.type == "text" and len(column.values) <= 50
        for value in column.values
    ]
    found = []
    words = [question.words[at] for at in unknown]
    for at, scores in zip(unknown, similarity(words, [name for name, _, _ in names]), strict=True):
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        best = order[0]
        second = scores[order[1]] if len(order) > 1 else 0.0
        if scores[best] >= MIN_SIMILARITY and scores[best] - second >= MIN_LEAD:
            name, kind, index = names[best]
            found.append(Match(at, at + 1, kind, (index,), (name,) if kind == "value" else (), 1))
    return found
