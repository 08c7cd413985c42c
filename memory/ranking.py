"""From what a question found to one order, and how much each row has to do with it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import fmean

import numpy as np

from common.bm25 import Ids
from common.closeness import closeness
from common.fusion import EVIDENCE, LETTERS_DEPTH, Arm, Numbers, adapted_weights, contribution, fuse
from common.letters import held_trigrams, weighed
from memory.dates import mentioned
from memory.relevance import relevance, settled_background
from memory.speakers import named_speakers

#: What is said in conversations is short: words and letters tell more than of passages. These and
#: the other constants were measured in docs/decisions/0025.
WEIGHTS: Mapping[str, float] = {"lexical": 0.36, "vector": 0.64}
LETTERS = 0.3
LIKENESS = EVIDENCE["likeness"]
#: So much of its better neighbour's score a row gets, of the next ones and of those after them: an
#: answer follows its question and need not repeat its words.
NEIGHBOURS = (0.3, 0.15)
#: Added to what somebody said whom the question names, and to what was said when the question says.
SPEAKER = 0.15
DATE = 0.5

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1) // MICROSECOND


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows, and what words and meaning say of them, in arrays of one length.

    `moments` are microseconds since 1970. `lexical` is the BM25 score, `coverage` the share of the
    question's words that a row holds, rare ones counting most. `similarities` and `likenesses`, the
    cosines to the question and to what was found best, are NaN until it is embedded. `previous` and
    `following` are the ids of its neighbours in a conversation; one that is no candidate is none.
    A text may be empty where the row is a candidate only for being a neighbour.
    """

    ids: Ids
    moments: Ids
    texts: Sequence[str]
    lexical: Numbers
    coverage: Numbers
    similarities: Numbers
    likenesses: Numbers
    previous: Ids
    following: Ids


@dataclass(frozen=True, slots=True)
class Ranked:
    """A row's place, and what it is due to; all 0..1.

    `score` orders: its strength among what was found, the strongest having 1, times `recency`.
    `relevance` means the same for every question: thresholds are on it, and it does not age.
    `parts` says what each piece of evidence added to the strength.
    """

    id: int
    score: float
    relevance: float
    recency: float
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranking:
    """All candidates in arrays, the best first, as `Ranked` tells of one of them."""

    ids: Ids
    scores: Numbers
    relevance: Numbers
    recency: Numbers
    parts: Mapping[str, Numbers]

    def __len__(self) -> int:
        return len(self.ids)

    def best(self, most: int, *, least: float = 0.0) -> list[Ranked]:
        """The best `most` whose relevance is at least `least`."""
        return [
            Ranked(
                id=int(self.ids[place]),
                score=float(self.scores[place]),
                relevance=float(self.relevance[place]),
                recency=float(self.recency[place]),
                parts={
                    name: float(part[place]) for name, part in self.parts.items() if part[place]
                },
            )
            for place in np.flatnonzero(self.relevance >= least)[:most].tolist()
        ]


def rank(
    question: str,
    candidates: Candidates,
    *,
    background: float | None,
    now: datetime,
    recency_weight: float,
    half_life_days: float,
    evidence: bool = True,
) -> Ranking:
    """All candidates, the best first; of equals the newest.

    `background` is the mean similarity of the question to all rows of this memory; None says that
    similarities are on a scale on which it is 0. Without `evidence` words and meaning decide alone:
    a search by one of them stays what it is.
    """
    known = candidates.similarities[~np.isnan(candidates.similarities)]
    background = settled_background(background, rows=len(known))
    nearest = closeness(float(known.max()), background) if len(known) else None
    weights = adapted_weights(WEIGHTS, nearest)
    speakers, dates = np.zeros(len(candidates.ids), np.int64), np.zeros(len(candidates.ids))
    if evidence:
        speakers, dates = _told(question, candidates)
        parts = _with_evidence(question, candidates, weights, speakers, dates)
    else:
        similarities = candidates.similarities
        parts = fuse(candidates.ids, _arms(candidates, similarities, weights)).contributions
    strengths = sum(parts.values(), np.zeros(len(candidates.ids)))
    best = strengths.max(initial=0.0) or 1.0
    days = ((now - EPOCH) // MICROSECOND - candidates.moments) / DAY
    fresh = recency(days, weight=recency_weight, half_life=half_life_days)
    scores = strengths / best * fresh
    order = np.lexsort((candidates.ids, -candidates.moments, -scores))
    close = closeness(candidates.similarities, background)
    return Ranking(
        ids=candidates.ids[order],
        scores=scores[order],
        relevance=relevance(close, candidates.coverage, speaker=speakers, date=dates)[order],
        recency=fresh[order],
        parts={name: part[order] / best for name, part in parts.items()},
    )


def recency(days: Numbers, *, weight: float, half_life: float) -> Numbers:
    """By age: 1 for what was said now, and less by the day: with weight 1 a half after `half_life`
    days and a third after twice as many, with weight 0 always 1. What comes from the future is said
    now."""
    return 1 - weight + weight / (1 + np.maximum(days, 0.0) / half_life)


def _told(question: str, candidates: Candidates) -> tuple[Ids, Numbers]:
    """What the question itself says of rows: who spoke (1 one whom it names, -1 another), and how
    much of a date that it mentions is theirs."""
    speakers, dates = np.zeros(len(candidates.ids), np.int64), np.zeros(len(candidates.ids))
    for place, named in named_speakers(question, dict(enumerate(candidates.texts))).items():
        speakers[place] = named
    said = mentioned(question)
    if said:
        dates[:] = [
            said.agreement(EPOCH + moment * MICROSECOND) for moment in candidates.moments.tolist()
        ]
    return speakers, dates


def _with_evidence(
    question: str,
    candidates: Candidates,
    weights: Mapping[str, float],
    speakers: Ids,
    dates: Numbers,
) -> Mapping[str, Numbers]:
    """What words, meaning and all evidence add to each row."""
    words = candidates.lexical
    similarities = _guessed(candidates.similarities, words)
    likenesses = _guessed(candidates.likenesses, words)
    arms = _arms(candidates, similarities, weights)
    fusion = fuse(candidates.ids, [*arms, Arm("likeness", likenesses, weight=LIKENESS)])
    near = fusion.order()[:LETTERS_DEPTH]
    held = weighed(held_trigrams(question, [candidates.texts[place] for place in near.tolist()]))
    letters = contribution(Arm("letters", held, weight=LETTERS))
    fusion = fusion.with_evidence("letters", near, letters)
    return {
        **fusion.contributions,
        "neighbours": _neighbours(candidates, fusion.scores),
        "speaker": np.where(speakers > 0, SPEAKER, 0.0),
        "date": DATE * dates,
    }


def _arms(candidates: Candidates, similarities: Numbers, weights: Mapping[str, float]) -> list[Arm]:
    everyone = np.ones(len(candidates.ids), np.int64)
    return [
        Arm("lexical", candidates.lexical, everyone, weights["lexical"]),
        Arm("vector", similarities, everyone, weights["vector"]),
    ]


def _guessed(values: Numbers, words: Numbers) -> Numbers:
    """Cosines, and where there is none yet as far from the mean to the best as the row is by words:
    with nothing there, what was said a moment ago would come last."""
    unknown = np.isnan(values)
    if not unknown.any() or unknown.all():
        return values
    known = values[~unknown]
    mean, best = fmean(known.tolist()), float(known.max())
    most = words.max() or 1.0
    return np.where(unknown, mean + (best - mean) * words / most, values)


def _neighbours(candidates: Candidates, scores: Numbers) -> Numbers:
    """What each row gets of its neighbours' scores: of the better one of each distance."""
    before, after = (
        np.append(_places(candidates.ids, links), -1)
        for links in (candidates.previous, candidates.following)
    )
    scores = np.append(scores, 0.0)  # at -1, of no row
    earlier, later, shares = before[:-1], after[:-1], np.zeros(len(candidates.ids))
    for weight in NEIGHBOURS:
        shares += weight * np.maximum(scores[earlier], scores[later])
        earlier, later = before[earlier], after[later]
    return shares


def _places(ids: Ids, wanted: Ids) -> Ids:
    """Where they are among `ids`; -1 for those that are not."""
    if not len(ids):
        return wanted
    order = np.argsort(ids)
    places = order[np.searchsorted(ids, wanted, sorter=order).clip(max=len(ids) - 1)]
    return np.where(ids[places] == wanted, places, -1)
