"""From what a question found to one order, and how much each row has to do with it. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import exp
from statistics import fmean

from common.closeness import closeness
from common.fusion import EVIDENCE, LETTERS_DEPTH, Arm, Fused, adapted_weights, fuse, with_evidence
from common.letters import letters

#: What is said in conversations is short: words and letters tell more than of passages. These and
#: all other constants of this module were measured in docs/decisions/0025.
WEIGHTS: Mapping[str, float] = {"lexical": 0.36, "vector": 0.64}
LETTERS = 0.3
LIKENESS = EVIDENCE["likeness"]
#: So much of its better neighbour's score a row gets, of the next ones and of those after them: an
#: answer follows its question and need not repeat its words.
NEIGHBOURS = (0.3, 0.15)
#: Added to what somebody said whom the question names.
SPEAKER = 0.15
#: Fewer rows may begin with the same word and a colon without its being a name.
LEAST_TURNS = 3

#: What it says of relevance, as a logit, that the question names others than a row's speaker (−1),
#: or the speaker.
NAMED: Mapping[int, float] = {-1: -2.0, 0: 0.0, 1: 1.5}

#: How similar a question is to any row, where there are too few rows to tell, and how many rows of
#: one's own count as much as this.
USUAL_BACKGROUND = 0.15
FEW_ROWS = 10

_WORD = re.compile(r"[^\W_]+")
_SPEAKER = re.compile(r"^[ \t]*([^\W\d_][^:\n]{0,39}):[ \t]", re.MULTILINE)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row, and what words and meaning say of it.

    `lexical` is its BM25 score, `coverage` the share of the question's words that it holds, rare
    ones counting most. `similarity` and `likeness`, the cosines to the question and to what was
    found best, are None until it is embedded. `previous` and `following` are its neighbours in a
    conversation. `text` may be empty where it is a candidate only for being one.
    """

    id: int
    created_at: datetime
    text: str
    lexical: float
    coverage: float
    similarity: float | None
    likeness: float | None
    previous: int | None = None
    following: int | None = None


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


def rank(
    question: str,
    candidates: Sequence[Candidate],
    *,
    background: float | None,
    now: datetime,
    recency_weight: float,
    half_life_days: float,
    evidence: bool = True,
) -> list[Ranked]:
    """All candidates, the best first; of equals the newest.

    `background` is the mean similarity of the question to all rows of this memory; None says that
    similarities are on a scale on which it is 0. Without `evidence` words and meaning decide alone:
    a search by one of them stays what it is.
    """
    background = _settled(background, candidates)
    speakers = _asked_speakers(question, candidates) if evidence else {}
    fused = _fused(question, candidates, background, speakers, evidence=evidence)
    best = max((entry.score for entry in fused.values()), default=0.0)
    ranked = []
    for each in candidates:
        entry = fused[each.id]
        freshness = recency(each.created_at, now, weight=recency_weight, half_life=half_life_days)
        strength = entry.score / best if best > 0 else 0.0
        ranked.append(
            Ranked(
                id=each.id,
                score=strength * freshness,
                relevance=_relevance(each, background, speakers.get(each.id, 0)),
                recency=freshness,
                parts={name: part / best for name, part in entry.contributions.items() if part},
            )
        )
    moments = {each.id: each.created_at for each in candidates}
    ranked.sort(key=lambda entry: entry.id)
    ranked.sort(key=lambda entry: (entry.score, moments[entry.id]), reverse=True)
    return ranked


def recency(created_at: datetime, now: datetime, *, weight: float, half_life: float) -> float:
    """1 for what was said now, and less by the day: with weight 1 a half after `half_life` days and
    a third after twice as many, with weight 0 always 1. What comes from the future is said now."""
    age = max((now - created_at) / _DAY, 0.0)
    return 1 - weight + weight / (1 + age / half_life)


def relevance(close: float | None, coverage: float, speaker: int = 0) -> float:
    """How sure it is, 0..1, that a row has to do with its question: logistic regression, whose 0.3
    loses hardly any evidence.

    `close` is its closeness, None while it is not embedded; `coverage` the share of the question's
    words; `speaker` 1 where somebody said it whom the question names, −1 where somebody else did.
    """
    named = NAMED[speaker]
    if close is None:
        return _logistic(4 * coverage + named - 1.7)
    return _logistic(6 * close + 2 * coverage + named - 2.5)


def _logistic(logit: float) -> float:
    return 1 / (1 + exp(-logit))


def _relevance(candidate: Candidate, background: float, speaker: int) -> float:
    similarity = candidate.similarity
    close = None if similarity is None else closeness(similarity, background)
    return relevance(close, candidate.coverage, speaker)


def _settled(background: float | None, candidates: Sequence[Candidate]) -> float:
    """The background, nearer to the usual one the fewer rows it is the mean of: two rows that both
    answer the question would make each other common."""
    if background is None:
        return 0.0
    rows = sum(each.similarity is not None for each in candidates)
    return (rows * background + FEW_ROWS * USUAL_BACKGROUND) / (rows + FEW_ROWS)


def _fused(
    question: str,
    candidates: Sequence[Candidate],
    background: float,
    speakers: Mapping[int, int],
    *,
    evidence: bool,
) -> dict[int, Fused]:
    everyone = {each.id: 1 for each in candidates}
    words = {each.id: each.lexical for each in candidates}
    similarities = {each.id: each.similarity for each in candidates}
    known = _known(similarities)
    nearest = closeness(max(known.values()), background) if known else None
    weights = adapted_weights(WEIGHTS, nearest)
    lexical = Arm("lexical", everyone, words, weights["lexical"])
    if not evidence:
        alone = fuse([lexical, Arm("vector", everyone, known, weights["vector"])])
        return {entry.hit: entry for entry in alone}
    likenesses = {each.id: each.likeness for each in candidates}
    fused = fuse(
        [
            lexical,
            Arm("vector", everyone, _guessed(similarities, words), weights["vector"]),
            Arm("likeness", {}, _guessed(likenesses, words), LIKENESS),
        ]
    )
    texts = {each.id: each.text for each in candidates}
    near = {entry.hit: texts[entry.hit] for entry in fused[:LETTERS_DEPTH]}
    fused = with_evidence(fused, Arm("letters", {}, letters(question, near), LETTERS))
    scores = {entry.hit: entry.score for entry in fused}
    neighbours = _neighbours(candidates, scores)
    return {
        entry.hit: _with(
            entry,
            neighbours=neighbours[entry.hit],
            speaker=SPEAKER * (speakers.get(entry.hit, 0) > 0),
        )
        for entry in fused
    }


def _known(values: Mapping[int, float | None]) -> dict[int, float]:
    return {row: value for row, value in values.items() if value is not None}


def _guessed(values: Mapping[int, float | None], words: Mapping[int, float]) -> dict[int, float]:
    """Cosines, and where there is none yet as far from the mean to the best as the row is by words:
    with nothing there, what was said a moment ago would come last."""
    known = _known(values)
    if not known:
        return {}
    mean, best = fmean(known.values()), max(known.values())
    most = max(words.values()) or 1.0
    return {row: known.get(row, mean + (best - mean) * words[row] / most) for row in values}


def _with(entry: Fused, **parts: float) -> Fused:
    contributions = {**entry.contributions, **parts}
    return Fused(entry.hit, sum(contributions.values()), contributions, entry.best_rank)


def _neighbours(candidates: Sequence[Candidate], scores: Mapping[int, float]) -> dict[int, float]:
    """What each row gets of its neighbours' scores: of the better one of each distance."""
    before = {each.id: each.previous for each in candidates}
    after = {each.id: each.following for each in candidates}
    shares = {}
    for each in candidates:
        earlier, later, share = each.previous, each.following, 0.0
        for weight in NEIGHBOURS:
            share += weight * max(_score(earlier, scores), _score(later, scores))
            earlier, later = _next(earlier, before), _next(later, after)
        shares[each.id] = share
    return shares


def _score(row: int | None, scores: Mapping[int, float]) -> float:
    return 0.0 if row is None else scores.get(row, 0.0)


def _next(row: int | None, links: Mapping[int, int | None]) -> int | None:
    return None if row is None else links.get(row)


def _asked_speakers(question: str, candidates: Sequence[Candidate]) -> dict[int, int]:
    """1 for rows in which somebody speaks whom the question names, −1 for those in which only
    others do: of a chat whose rows are like `Anna: I moved to Bergen.` Others are not in it."""
    spoken = {
        each.id: {name.casefold().strip() for name in _SPEAKER.findall(each.text)}
        for each in candidates
    }
    turns: dict[str, int] = {}
    for names in spoken.values():
        for name in names:
            turns[name] = turns.get(name, 0) + 1
    words = set(_WORD.findall(question.casefold()))
    known = {name for name, times in turns.items() if times >= LEAST_TURNS}
    asked = {name for name in known if max(_WORD.findall(name), key=len, default="") in words}
    if not asked:
        return {}
    return {row: 1 if names & asked else -1 for row, names in spoken.items() if names & known}
