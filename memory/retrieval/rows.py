"""All rows of a user in columns: their scores, the best of them, and their neighbours. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import numpy as np

from common.bm25 import Ids, Postings, Scores64, Statistics, Term, score

#: How rare words are is judged as among so many rows at least.
LEAST_ROWS = 100
#: Turns of a conversation with a longer pause between them are not about the same thing.
PAUSE = timedelta(hours=1)


@dataclass(slots=True)
class Rows:
    """Columns, by ascending id: 0 stands for no space, NaN for no similarity. `moments` are in
    microseconds, and `coverage` is the share that a row holds of the question's weight."""

    ids: Ids
    moments: Ids
    threads: Ids
    spaces: Ids
    similarities: Scores64
    lexical: Scores64
    coverage: Scores64

    def backgrounds(self) -> dict[int, tuple[float, int]]:
        """By space the mean similarity, and of how many rows."""
        known = ~np.isnan(self.similarities)
        found = {}
        for space in np.unique(self.spaces[known]).tolist():
            of_it = self.similarities[known & (self.spaces == space)]
            found[space] = float(of_it.mean()), len(of_it)
        return found

    def listed(self, depth: int) -> "Listed":
        """The best `depth` by words, the best by meaning, and the neighbours of both: an answer
        follows its question."""
        words = np.lexsort((self.ids, -self.lexical))[: np.count_nonzero(self.lexical)]
        meaning = np.lexsort((self.ids, -self.similarities))
        meaning = meaning[~np.isnan(self.similarities[meaning])]
        _, nearest = np.unique(self.spaces[meaning], return_index=True)
        best = np.zeros(len(self.ids), bool)
        best[words[:depth]] = best[meaning[:depth]] = True
        listed = best.copy()
        previous, following = np.zeros_like(self.ids), np.zeros_like(self.ids)
        order = np.lexsort((self.ids, self.moments, self.threads))
        for steps in (1, 2):
            before, after = order[:-steps], order[steps:]
            together = self.threads[before] == self.threads[after]
            if steps == 1:
                pauses = self.moments[after] - self.moments[before]
                together &= pauses <= PAUSE // timedelta(microseconds=1)
                previous[after[together]] = self.ids[before[together]]
                following[before[together]] = self.ids[after[together]]
            listed[after[together & best[before]]] = True
            listed[before[together & best[after]]] = True
        return Listed(
            ids=self.ids[listed].tolist(),
            best=self.ids[best].tolist(),
            first=self.ids[np.concatenate((words[:1], meaning[nearest]))].tolist(),
            previous=previous,
            following=following,
        )


@dataclass(frozen=True, slots=True)
class Listed:
    """Ids of the rows that are ranked, of the best among them, and of the first by words and, in
    each space, by meaning. `previous` and `following` are columns of all rows: the ids of their
    neighbours in the conversation, or 0."""

    ids: list[int]
    best: list[int]
    first: list[int]
    previous: Ids
    following: Ids


def scored(answer: Sequence[Sequence[Any]]) -> Rows:
    """The rows that `statement.scan` answers with, scored with the statistics of these alone."""
    if not answer:
        none, nothing = np.zeros(0, np.int64), np.zeros(0)
        return Rows(none, none, none, none, nothing, nothing, nothing)
    *columns, asked_in, times, numbers, held, frequencies = answer[0]
    order = np.argsort(columns[0])
    ids, lengths, moments, languages, threads, spaces, similarities = (
        column[order] for column in columns
    )
    groups: dict[int, tuple[Statistics, list[Term]]] = {}
    for language in np.unique(languages).tolist():
        of_it = lengths[languages == language]
        groups[language] = Statistics(len(of_it), int(of_it.sum()), least=LEAST_ROWS), []
    order = np.lexsort((held, numbers))
    places, frequencies = np.searchsorted(ids, held[order]), frequencies[order]
    ends = np.searchsorted(numbers[order], np.arange(len(times) + 1), side="right").tolist()
    for language, count, (start, end) in zip(
        asked_in.tolist(), times.tolist(), pairwise(ends), strict=True
    ):
        of_it = places[start:end]
        part = Postings(of_it, frequencies[start:end], lengths[of_it])
        groups[language][1].append(Term(float(count), [part]))
    coverage = np.zeros(len(ids))
    for statistics, asked in groups.values():
        weights = [term.weight(statistics) for term in asked]
        for term, weight in zip(asked, weights, strict=True):
            for part in term.counted:
                coverage[part.ids] += weight / sum(weights)
    lexical = score(groups.values()).of(np.arange(len(ids)))
    return Rows(ids, moments, threads, spaces, similarities, lexical, coverage)
