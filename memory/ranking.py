"""From what a question found to one order, and how much each row has to do with it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import fmean

from common.closeness import closeness
from common.fusion import EVIDENCE, LETTERS_DEPTH, Arm, adapted_weights, fuse, with_evidence
from common.letters import letters
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


@dataclass(frozen=True, slots=True)
class _Told:
    """What the question itself says of rows: who spoke (1 one whom it names, −1 another), and how
    much of a date that it mentions is theirs."""

    speakers: Mapping[int, int]
    dates: Mapping[int, float]


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
    similarities = _known({each.id: each.similarity for each in candidates})
    background = settled_background(background, rows=len(similarities))
    close = {row: closeness(value, background) for row, value in similarities.items()}
    told = _told(question, candidates) if evidence else _Told({}, {})
    weights = adapted_weights(WEIGHTS, max(close.values(), default=None))
    if evidence:
        parts = _with_evidence(question, candidates, weights, told)
    else:
        parts = {entry.hit: entry.contributions for entry in fuse(_arms(candidates, weights))}
    strengths = {row: sum(of_row.values()) for row, of_row in parts.items()}
    best = max(strengths.values(), default=0.0) or 1.0
    ranked = []
    # stable sorts: what comes first here stays first among equals
    for each in sorted(candidates, key=lambda each: (-each.created_at.timestamp(), each.id)):
        fresh = recency(each.created_at, now, weight=recency_weight, half_life=half_life_days)
        ranked.append(
            Ranked(
                id=each.id,
                score=strengths[each.id] / best * fresh,
                relevance=relevance(
                    close.get(each.id),
                    each.coverage,
                    speaker=told.speakers.get(each.id, 0),
                    date=told.dates.get(each.id, 0.0),
                ),
                recency=fresh,
                parts={name: part / best for name, part in parts[each.id].items() if part},
            )
        )
    return sorted(ranked, key=lambda entry: -entry.score)


def recency(created_at: datetime, now: datetime, *, weight: float, half_life: float) -> float:
    """1 for what was said now, and less by the day: with weight 1 a half after `half_life` days and
    a third after twice as many, with weight 0 always 1. What comes from the future is said now."""
    age = max((now - created_at) / _DAY, 0.0)
    return 1 - weight + weight / (1 + age / half_life)


def _told(question: str, candidates: Sequence[Candidate]) -> _Told:
    dates = mentioned(question)
    return _Told(
        speakers=named_speakers(question, {each.id: each.text for each in candidates}),
        dates={each.id: dates.agreement(each.created_at) for each in candidates},
    )


def _with_evidence(
    question: str, candidates: Sequence[Candidate], weights: Mapping[str, float], told: _Told
) -> dict[int, Mapping[str, float]]:
    """What words, meaning and all evidence add to each row."""
    words = {each.id: each.lexical for each in candidates}
    likenesses = _guessed({each.id: each.likeness for each in candidates}, words)
    fused = fuse(
        [*_arms(candidates, weights, guess=True), Arm("likeness", {}, likenesses, LIKENESS)]
    )
    texts = {each.id: each.text for each in candidates}
    near = {entry.hit: texts[entry.hit] for entry in fused[:LETTERS_DEPTH]}
    fused = with_evidence(fused, Arm("letters", {}, letters(question, near), LETTERS))
    neighbours = _neighbours(candidates, {entry.hit: entry.score for entry in fused})
    return {
        entry.hit: {
            **entry.contributions,
            "neighbours": neighbours[entry.hit],
            "speaker": SPEAKER * (told.speakers.get(entry.hit, 0) > 0),
            "date": DATE * told.dates[entry.hit],
        }
        for entry in fused
    }


def _arms(
    candidates: Sequence[Candidate], weights: Mapping[str, float], *, guess: bool = False
) -> list[Arm]:
    everyone = {each.id: 1 for each in candidates}
    words = {each.id: each.lexical for each in candidates}
    similarities = {each.id: each.similarity for each in candidates}
    near = _guessed(similarities, words) if guess else _known(similarities)
    return [
        Arm("lexical", everyone, words, weights["lexical"]),
        Arm("vector", everyone, near, weights["vector"]),
    ]


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
