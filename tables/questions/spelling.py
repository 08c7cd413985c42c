"""Words that are written wrongly in a question: `corrections` finds the one that is meant."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from tables.questions.shapes import Shape
from tables.questions.words import fold, known_words, word_forms

#: Letters of a word that may be written wrongly: of names in tables, of words of the grammar.
MIN_LETTERS, MIN_KNOWN_LETTERS = 5, 7
#: From this many letters on two mistakes are allowed.
TWO_MISTAKES_LETTERS = 9
_TOKEN = re.compile(r"[^\W\d_]+")


def corrections(words: Iterable[str], shape: Shape) -> dict[str, str]:
    """What is meant by these words, folded, each as it is written in the tables. Without those that
    no name is near to, or several are."""
    names = _names(shape)
    found = {}
    for word in words:
        if len(word) >= MIN_LETTERS and word.isalpha():
            meant = _nearest(word, names)
            if meant is None and len(word) >= MIN_KNOWN_LETTERS:
                meant = _nearest(word, known_words(MIN_KNOWN_LETTERS - 1))
            if meant is not None:
                found[word] = names.get(meant, meant)
    return found


def replaced(text: str, corrected: Mapping[str, str]) -> str:
    """The question with these words in place of those that were written."""
    return _TOKEN.sub(lambda token: corrected.get(fold(token[0]), token[0]), text)


def _names(shape: Shape) -> dict[str, str]:
    """The words of columns, values and tables: folded → as written."""
    texts = [column.name for column in shape.columns]
    texts += [value for column in shape.columns for value in column.values]
    texts += [text for table in shape.tables for text in (table.name, table.title)]
    return {
        fold(token): token
        for text in texts
        for token in _TOKEN.findall(text.replace("'", "").replace("’", ""))
        if len(token) >= MIN_LETTERS - 1
    }


def _nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that differs by the fewest mistakes, if it is the only one."""
    most = 1 if len(word) < TWO_MISTAKES_LETTERS else 2
    by_mistakes: dict[int, list[str]] = {}
    for candidate in candidates:
        if candidate[0] == word[0] and abs(len(candidate) - len(word)) <= most:
            mistakes = _mistakes(word, candidate)
            # Another ending is another form of the word rather than a mistake.
            is_ending = candidate[-1] != word[-1] and sorted(candidate) != sorted(word)
            if mistakes <= (int(len(word) >= MIN_KNOWN_LETTERS) if is_ending else most):
                by_mistakes.setdefault(mistakes, []).append(candidate)
    if not by_mistakes:
        return None
    first, *others = by_mistakes[min(by_mistakes)]
    return first if all(word_forms(first) & word_forms(each) for each in others) else None


@lru_cache(maxsize=10_000)
def _mistakes(first: str, second: str) -> int:
    """Letters added, left out, replaced or swapped with the next: optimal string alignment."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        before, above = row, before
        row = [i]
        for j, other in enumerate(second, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if above and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
    return row[-1]
