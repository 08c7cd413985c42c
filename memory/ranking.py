"""Ranking of a user's rows for a question: fusion, dates, speakers, recency, relevance. Pure.

Begin with `rank`. The constants were measured in docs/decisions/0025.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import fmean
from typing import Annotated

import numpy as np

from common.bm25 import Ids
from common.fusion import (
    RERANK_FEATURES,
    TRIGRAM_DEPTH,
    Arm,
    Numbers,
    adapted_weights,
    contribution,
    fuse,
    normalized_similarity,
)
from common.trigrams import rarity_weighted, trigram_matches

#: January to December in English, German, French, Spanish, Italian, Portuguese and Dutch.
_NAMES = (
    "january januar jänner janvier enero gennaio janeiro januari",
    "february februar février febrero febbraio fevereiro februari",
    "march märz mars marzo março maart",
    "april avril abril aprile",
    "may mai mayo maggio maio mei",
    "june juni juin junio giugno junho",
    "july juli juillet julio luglio julho",
    "august août agosto augustus",
    "september septembre septiembre settembre setembro",
    "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro",
    "december dezember décembre diciembre dicembre dezembro",
)
_MONTHS = {name: month for month, names in enumerate(_NAMES, 1) for name in names.split()}
#: Small letters in the middle of a sentence are verbs.
_ALSO_VERBS = {"may", "march"}

_MONTH = "|".join(_MONTHS)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_NAMED = re.compile(rf"\b({_MONTH})\b", re.IGNORECASE)
_DAY_FIRST = re.compile(
    rf"\b({_DAY})(?:st|nd|rd|th|er|º|\.)?(?: of| de)? ({_MONTH})\b", re.IGNORECASE
)
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) ({_DAY})(?:st|nd|rd|th)?\b", re.IGNORECASE)
_ISO = re.compile(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b")
_DOTTED = re.compile(rf"\b({_DAY})\.(0?[1-9]|1[0-2])\.(\d{{4}})\b")


#: Years, months and days, each combinable with the others.
Dates = tuple[set[int], set[int], set[int]]


def date_agreement(dates: Dates, moment: datetime) -> float:
    """0..1: how well `moment` matches the mentioned dates. A day counts within its month."""
    years, months, days = dates
    same_month = moment.month in months
    checks = (
        (years, 1, moment.year in years),
        (months, 2, same_month),
        (days, 2, same_month and moment.day in days),
    )
    whole = sum(weight for said, weight, _ in checks if said)
    return sum(weight for said, weight, holds in checks if said and holds) / whole if whole else 0.0


def mentioned_dates(question: str) -> Dates:
    """The explicit dates in a question such as `What did I say on 3 August, 2023?`; no relative
    ones.
    """
    years = {int(year) for year in _YEAR.findall(question)}
    named = [(int(day), name) for day, name in _DAY_FIRST.findall(question)]
    named += [(int(day), name) for name, day in _MONTH_FIRST.findall(question)]
    days = {day for day, _ in named}
    months = {_MONTHS[name.casefold()] for _, name in named}
    for match in _NAMED.finditer(question):
        name = match[0].casefold()
        if name not in _ALSO_VERBS or (match[0][0].isupper() and match.start() > 0):
            months.add(_MONTHS[name])
    dotted = [(year, month, day) for day, month, year in _DOTTED.findall(question)]
    for year, month, day in [*_ISO.findall(question), *dotted]:
        years.add(int(year))
        months.add(int(month))
        days |= {int(day)} if day else set()
    return years, months, days


#: Fewer rows may begin with the same words and a colon without its being somebody's name.
MIN_TURNS = 3

_WORD = re.compile(r"[^\W_]+")
_SPEAKER = re.compile(r"^[ \t]*([^\W\d_][^:\n]{0,39}):[ \t]", re.MULTILINE)


def named_speakers(question: str, texts: Mapping[int, str]) -> dict[int, int]:
    """1 for texts with a speaker whom the question names, −1 for those with only other speakers.
    Texts without a speaker are missing; the result is empty where the question names none.
    """
    spoken = {
        row: {name.casefold().strip() for name in _SPEAKER.findall(text)}
        for row, text in texts.items()
        if ":" in text
    }
    turns = Counter(name for names in spoken.values() for name in names)
    known = {name for name, times in turns.items() if times >= MIN_TURNS}
    words = set(_WORD.findall(question.casefold()))
    # `Dr. Smith` is asked about as Smith.
    named = {name for name in known if max(_WORD.findall(name), key=len, default="") in words}
    if not named:
        return {}
    return {row: 1 if names & named else -1 for row, names in spoken.items() if names & known}


#: Logits: the question names nobody, a row's speaker, or (-1) only others; and it names the row's
#: day.
SPEAKER_LOGITS = np.array([0.0, 1.5, -2.0])
DATE_LOGIT = 1.5

#: Usual mean similarity of a question to all rows, above what the model gives to unrelated texts,
#: and below how many rows the mean is unreliable.
USUAL_BASELINE = 0.15
FEW_ROWS = 20


def relevance(
    similarity: Numbers, coverage: Numbers, *, speaker: Ids | int = 0, date: Numbers | float = 0.0
) -> Numbers:
    """0..1, by logistic regression (docs/decisions/0025); a threshold of 0.3 loses hardly any
    evidence.

    `similarity` is normalised, NaN without a vector; `coverage` the share of the question's words
    in the row; `speaker` 1 where a named person speaks in it, -1 where only others do; `date` how
    well a mentioned date matches.
    """
    told = SPEAKER_LOGITS[speaker] + DATE_LOGIT * date
    by_words, by_both = 4 * coverage + told - 1.7, 6 * similarity + 2 * coverage + told - 2.5
    logits = np.where(np.isnan(similarity), by_words, by_both)
    shares: Numbers = 1 / (1 + np.exp(-logits))
    return shares


def shrunk_baseline(baseline: float | None, *, rows: int, unrelated: float = 0.0) -> float:
    """The mean similarity to all rows, shrunk towards the usual one where there are few rows: two
    rows that both answer the question would otherwise seem common. `unrelated` is the similarity
    that the model gives to unrelated texts.

    None is for similarities that are normalised already.
    """
    if baseline is None:
        return 0.0
    doubt = (FEW_ROWS / (FEW_ROWS + rows)) ** 2
    usual = unrelated + USUAL_BASELINE * (1 - unrelated)
    return baseline + doubt * (usual - baseline)


#: Turns are short: words and trigrams count more than in passages. These and the other constants
#: were measured in docs/decisions/0025.
WEIGHTS: Mapping[str, float] = {"lexical": 0.36, "vector": 0.64}
TRIGRAM_WEIGHT = 0.3
FEEDBACK_WEIGHT = RERANK_FEATURES["likeness"]
#: Share of the better neighbour's score that a row gets, at distance one and two: an answer follows
#: its question and need not repeat its words.
NEIGHBOUR_SHARES = (0.3, 0.15)
#: Bonus for rows by a speaker, or from a date, that the question names.
SPEAKER_BONUS = 0.15
DATE_BONUS = 0.5

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1) // MICROSECOND


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows with their lexical and vector scores, in arrays of one length.

    `moments` are microseconds since 1970. `lexical` is the BM25 score, `coverage` the share of the
    question's words in a row, rare ones counting most. `similarities` and `feedback_similarities`,
    the cosines to the question and to the best hits, are NaN without a vector. `previous` and
    `following` are ids of neighbours in the conversation. A text may be empty where the row is a
    candidate only as a neighbour.
    """

    ids: Ids
    moments: Ids
    texts: Sequence[str]
    lexical: Numbers
    coverage: Numbers
    similarities: Numbers
    feedback_similarities: Numbers
    previous: Ids
    following: Ids


@dataclass(frozen=True, slots=True)
class Ranked:
    """Scores of a row; all 0..1."""

    id: int
    score: Annotated[float, "Orders the hits: how strong it is beside the strongest, × `recency`."]
    relevance: Annotated[
        float,
        "Relevance for the question, comparable between questions and independent of age."
        " `threshold` applies to it.",
    ]
    recency: Annotated[float, "How fresh it is."]
    parts: Annotated[Mapping[str, float], "The contribution of each kind of evidence."] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class Ranking:
    """All candidates in arrays, the best first; fields as in `Ranked`."""

    ids: Ids
    scores: Numbers
    relevance: Numbers
    recency: Numbers
    parts: Mapping[str, Numbers]

    def __len__(self) -> int:
        return len(self.ids)

    def best(self, most: int, *, least: float = 0.0) -> list[Ranked]:
        """The best `limit` rows whose relevance is at least `min_relevance`."""
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
    baseline_similarity: float | None,
    unrelated_similarity: float = 0.0,
    now: datetime,
    recency_weight: float,
    half_life_days: float,
    evidence: bool = True,
) -> Ranking:
    """Rank all candidates, the best first; ties by time, the newest first.

    `baseline_similarity` is the mean similarity of the question to all rows of this memory; None
    for similarities that are normalised already; `unrelated_similarity` what the model gives to
    unrelated texts. Without `evidence` only lexical and vector scores
    count, as in a search by one of them.
    """
    known = candidates.similarities[~np.isnan(candidates.similarities)]
    baseline_similarity = shrunk_baseline(
        baseline_similarity, rows=len(known), unrelated=unrelated_similarity
    )
    nearest = normalized_similarity(float(known.max()), baseline_similarity) if len(known) else None
    weights = adapted_weights(WEIGHTS, nearest)
    speakers, dates = np.zeros(len(candidates.ids), np.int64), np.zeros(len(candidates.ids))
    if evidence:
        for place, named in named_speakers(question, dict(enumerate(candidates.texts))).items():
            speakers[place] = named
        said = mentioned_dates(question)
        if any(said):
            moments = [EPOCH + moment * MICROSECOND for moment in candidates.moments.tolist()]
            dates[:] = [date_agreement(said, moment) for moment in moments]
        parts = _with_evidence(question, candidates, weights, speakers, dates)
    else:
        similarities = candidates.similarities
        parts = fuse(candidates.ids, _arms(candidates, similarities, weights)).contributions
    strengths = sum(parts.values(), np.zeros(len(candidates.ids)))
    best = strengths.max(initial=0.0) or 1.0
    days = ((now - EPOCH) // MICROSECOND - candidates.moments) / DAY
    fresh = recency_factor(days, weight=recency_weight, half_life=half_life_days)
    scores = strengths / best * fresh
    order = np.lexsort((candidates.ids, -candidates.moments, -scores))
    close = normalized_similarity(candidates.similarities, baseline_similarity)
    return Ranking(
        ids=candidates.ids[order],
        scores=scores[order],
        relevance=relevance(close, candidates.coverage, speaker=speakers, date=dates)[order],
        recency=fresh[order],
        parts={name: part[order] / best for name, part in parts.items()},
    )


def recency_factor(days: Numbers, *, weight: float, half_life: float) -> Numbers:
    """Factor by age in days: 1 for now; with weight 1 a half after `half_life` days and a third
    after twice as many; with weight 0 always 1. Future rows count as now.
    """
    return 1 - weight + weight / (1 + np.maximum(days, 0.0) / half_life)


def _with_evidence(
    question: str,
    candidates: Candidates,
    weights: Mapping[str, float],
    speakers: Ids,
    dates: Numbers,
) -> Mapping[str, Numbers]:
    """Contributions of lexical and vector scores and of all other evidence to each row."""
    words = candidates.lexical
    similarities = _impute_similarity(candidates.similarities, words)
    likenesses = _impute_similarity(candidates.feedback_similarities, words)
    arms = _arms(candidates, similarities, weights)
    fusion = fuse(candidates.ids, [*arms, Arm("likeness", likenesses, weight=FEEDBACK_WEIGHT)])
    near = fusion.order()[:TRIGRAM_DEPTH]
    held = rarity_weighted(
        trigram_matches(question, [candidates.texts[place] for place in near.tolist()])
    )
    letters = contribution(Arm("letters", held, weight=TRIGRAM_WEIGHT))
    fusion = fusion.with_evidence("letters", near, letters)
    # What each row gains from its neighbours' scores: the better one of each distance.
    scores = fusion.scores
    before, after = (
        np.append(_positions(candidates.ids, links), -1)
        for links in (candidates.previous, candidates.following)
    )
    scores = np.append(scores, 0.0)  # at -1, of no row
    earlier, later, neighbour_scores = before[:-1], after[:-1], np.zeros(len(candidates.ids))
    for weight in NEIGHBOUR_SHARES:
        neighbour_scores += weight * np.maximum(scores[earlier], scores[later])
        earlier, later = before[earlier], after[later]
    return {
        **fusion.contributions,
        "neighbours": neighbour_scores,
        "speaker": np.where(speakers > 0, SPEAKER_BONUS, 0.0),
        "date": DATE_BONUS * dates,
    }


def _arms(candidates: Candidates, similarities: Numbers, weights: Mapping[str, float]) -> list[Arm]:
    everyone = np.ones(len(candidates.ids), np.int64)
    return [
        Arm("lexical", candidates.lexical, everyone, weights["lexical"]),
        Arm("vector", similarities, everyone, weights["vector"]),
    ]


def _impute_similarity(values: Numbers, words: Numbers) -> Numbers:
    """Similarities, with missing ones estimated from the lexical score: otherwise the newest rows,
    not yet embedded, would come last.
    """
    unknown = np.isnan(values)
    if not unknown.any() or unknown.all():
        return values
    known = values[~unknown]
    mean, best = fmean(known.tolist()), float(known.max())
    most = words.max() or 1.0
    return np.where(unknown, mean + (best - mean) * words / most, values)


def _positions(ids: Ids, targets: Ids) -> Ids:
    """Indices of the targets among `ids`; -1 for missing ones."""
    if not len(ids):
        return targets
    order = np.argsort(ids)
    places = order[np.searchsorted(ids, targets, sorter=order).clip(max=len(ids) - 1)]
    return np.where(ids[places] == targets, places, -1)
