"""German compounds of a question taken apart: “Rotwein” is “rot Wein” before a table that has both.
Begin with `parts_of_compounds`."""

from collections.abc import Iterable

from tables.questions.shapes import Shape
from tables.questions.words import concepts_of, known_words, split_words, word_forms

#: Letters of the first and of the last part.
_MIN_FIRST, _MIN_LAST = 3, 4
#: Letters of a part that the compounds of a table begin with, such as “Pflege” of “Pflegekosten”.
_MIN_BEGINNING = 4
#: Between two parts.
_JOINTS = ("", "s", "n", "en", "es", "e")


def parts_of_compounds(words: Iterable[str], shape: Shape) -> dict[str, str]:
    """The parts of these folded words, joined by a space: of those whose first part is in the
    tables and whose last part is there, too, or is known to the grammar."""
    texts = [column.name for column in shape.columns]
    texts += [value for column in shape.columns for value in column.values]
    texts += [text for table in shape.tables for text in (table.name, table.title)]
    table_words = {word for text in texts for word in split_words(text)}
    forms = {form for word in table_words for form in word_forms(word)}
    found = {}
    for word in words:
        for at in range(len(word) - _MIN_LAST, _MIN_FIRST - 1, -1):
            first, last = word[:at], word[at:]
            bare = next(
                (first.removesuffix(each) for each in _JOINTS if first.removesuffix(each) in forms),
                "",
            )
            is_first = len(bare) >= _MIN_FIRST or _begins(first, table_words)
            if is_first and (_is_named(last, forms, table_words) or _is_known(last)):
                found[word] = f"{bare or first} {last}"
                break
    return found


def _is_named(part: str, forms: set[str], table_words: set[str]) -> bool:
    return bool(word_forms(part) & forms) or _begins(part, table_words)


def _begins(part: str, table_words: set[str]) -> bool:
    return len(part) >= _MIN_BEGINNING and any(
        word.startswith(part) and len(word) >= len(part) + _MIN_LAST for word in table_words
    )


def _is_known(part: str) -> bool:
    return bool(concepts_of(part, is_question=True)) or part in known_words(_MIN_LAST)
