"""One ranking out of the candidates of all arms: weights, title match, reranking,
diversity. Begin with `rank`.
"""

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from common.errors import InvalidInput
from common.fusion import MIN_RANGE, RERANK_FEATURES, TRIGRAM_DEPTH, Arm, Numbers, fuse
from common.fusion_options import RRF_K, Method
from common.logs import with_log_context
from common.trigrams import (
    MAX_QUESTION_CHARACTERS,
    name_similarity,
    rarity_weighted,
    trigram_matches,
)
from documents.models import Document
from inference.backends.rerank_basic import NoReranker
from inference.interfaces import BackendUnavailable, InferenceError
from inference.model_languages import is_made_for
from inference.model_registry import rerankers
from search.query import Query
from search.reranking import (
    DEFAULT_RERANK_DEPTH,
    reads_question,
    rerank_factors,
    reranker_languages,
    windows_to_read,
)
from search.results import Passage, Scope, read_passages
from search.retrieval.arms import Candidate, Retrieved
from search.retrieval.scope_facts import ScopeFacts, cached_facts, current_facts
from tables.questions.named_rows import NamedRow, RowFinder, may_have_rows, weigh_rows

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Penalty for each hit already chosen of the same document or source.
SAME_DOCUMENT_PENALTY = 0.75
SAME_SOURCE_PENALTY = 0.25


def diversify(
    hits: Sequence[T],
    *,
    score: Callable[[T], float],
    document: Callable[[T], Hashable],
    source: Callable[[T], Hashable],
) -> list[T]:
    """`hits` reordered greedily: next is the hit with the greatest `score / (1 + 0.75 · chosen of
    its document + 0.25 · chosen of its source)`.

    Scores are not negative; hits with an empty source share no source. Ties keep the given
    order.
    """
    left = list(hits)
    documents: Counter[Hashable] = Counter()
    sources: Counter[Hashable] = Counter()

    def worth(hit: T) -> float:
        repeated = SAME_DOCUMENT_PENALTY * documents[document(hit)]
        repeated += SAME_SOURCE_PENALTY * sources[source(hit)] if source(hit) else 0
        return max(score(hit), 0.0) / (1 + repeated)

    chosen: list[T] = []
    while left:
        best = max(left, key=worth)  # the first of several
        left.remove(best)
        chosen.append(best)
        documents[document(best)] += 1
        sources[source(best)] += 1
    return chosen


#: The similarity at which a record's `lexical` applies. Stored records depend on it: keep it even
#: if the defaults change.
TUNING_CENTRE = 0.55


def learned_lexical_weight(lexical: float, pull: float, top_similarity: float | None) -> float:
    """The lexical weight, 0..1, for a question whose best normalised similarity is
    `top_similarity`.

    It is `lexical` at `TUNING_CENTRE` and falls by `pull` per 1.0 of similarity.
    """
    if top_similarity is None:
        return lexical
    return min(1.0, max(0.0, lexical - pull * (top_similarity - TUNING_CENTRE)))


def tuned_weights(
    tunings: Sequence[Mapping[str, Any] | None],
    top_similarity: float | None,
    *,
    untuned: Mapping[str, float],
) -> dict[str, float]:
    """Weights of `lexical` and `vector` for a query over collections with these tuning records
    (None: no record).

    `untuned` are the defaults, `top_similarity` the best normalised similarity. Several
    collections get the mean of their weights; the sum equals that of `untuned`.
    """
    if not any(tunings):
        return dict(untuned)
    total = untuned["lexical"] + untuned["vector"]
    shares = [
        learned_lexical_weight(tuning["lexical"], tuning["pull"], top_similarity) * total
        if tuning
        else untuned["lexical"]
        for tuning in tunings
    ]
    lexical = sum(shares) / len(shares)
    return {"lexical": lexical, "vector": total - lexical}


def current_tuning(tuning: Mapping[str, Any] | None, space_id: int) -> Mapping[str, Any] | None:
    """The record, unless it was learned with another embedding space."""
    return tuning if tuning and tuning.get("space") == space_id else None


#: Bonus of a name equal to the question. Arm weights sum to 1, so it outweighs nearly all scores.
EXACT_NAME_BONUS = 1.0
#: Exponent by which it falls for similar names. An inflected word keeps most.
NAME_STEEPNESS = 6
#: Bonus of a title, heading or file name contained in the question, by its share. File names are
#: often unspecific words.
PARTIAL_NAME_BONUS = np.array([0.3, 0.3, 0.0])
#: Documents of that name rank before sections of that name.
NAME_KIND_WEIGHTS = np.array([1.0, 0.8, 0.9])
TITLE, HEADING, FILE = range(3)

#: Bonus of a passage with a row that is named by a cell and says all that the question speaks of: a
#: little less than that of a document of this name (docs/decisions/0097).
NAMED_ROW_BONUS = 1.2
#: A lower score counts for nothing: a word such as “server” may be part of a cell by chance.
MIN_NAMED_ROW = 0.26
#: The first passages, of all arms and by words, in which such a row is looked for: where the
#: question is in another language than the table, its part number is all that they have in common.
NAMED_ROW_DEPTH = 16

#: Between the title and the headings of a passage's context.
HEADING_SEPARATOR = " > "
#: A longer suffix after the last dot is part of the file name.
MAX_EXTENSION_CHARACTERS = 5


#: Title and key of a passage's document, and its context as indexed.
Names = tuple[str, str, str]


def title_match(question: str, candidates: Sequence[Names]) -> NDArray[np.float64]:
    """What to add to each candidate's score for matching names (title, headings, file name): 0 to
    1.3, not normalised.

    A query that is a title, heading or file name wants that very document. Names are compared
    both ways by trigrams, regardless of language, case and punctuation. All passages of a
    document gain the same by its title; documents of equal name keep their order.
    """
    scores = np.zeros(len(candidates))
    names: dict[str, int] = {}
    places, kinds, owners = [], [], []
    segments, has_dot = question.count("/") + 1, "." in question
    for owner, (title, key, context) in enumerate(candidates):
        # Files are known without their folders and without their endings: of a path's segments as
        # many as the question has.
        file = "/".join(key.rsplit("/", segments)[-segments:])
        if "." in file and not has_dot:
            stem, _, ending = file.rpartition(".")
            file = stem if len(ending) <= MAX_EXTENSION_CHARACTERS else file
        called = [(TITLE, title), (FILE, file)]
        if (
            context != title and len(context) <= MAX_QUESTION_CHARACTERS
        ):  # what is too long is no name
            headings = [each for each in context.split(HEADING_SEPARATOR) if each != title]
            called += [(HEADING, each) for each in headings]
            if title and headings:
                called.append((HEADING, f"{title} {headings[-1]}"))
        for kind, name in called:
            places.append(names.setdefault(name, len(names)))
            kinds.append(kind)
            owners.append(owner)
    if names:
        of_question, of_name, length = name_similarity(question, list(names))
        alike = 2 * of_question * of_name / np.maximum(of_question + of_name, 1e-9)
        exact = EXACT_NAME_BONUS * (alike * length) ** NAME_STEEPNESS
        part = np.sqrt(of_question) * of_name**4
        added = NAME_KIND_WEIGHTS[kinds] * (
            exact[places] + PARTIAL_NAME_BONUS[kinds] * part[places]
        )
        np.maximum.at(scores, owners, added)
    return scores


class NoRerankerConfigured(InvalidInput):
    """Reranking was demanded, and no reranker is set up."""

    def __init__(self) -> None:
        super().__init__(
            "There is no reranker. Whoever runs this site can set one: `manage.py rerankers set"
            " MODEL` (docs/how-to/rerank.md). Or search without reranking.",
            field="rerank",
        )


def has_reranker(facts: ScopeFacts) -> bool:
    """Whether a reranker is set up for these collections, working or not."""
    try:
        return find_reranker(facts) is not None
    except InferenceError:
        return True


def require_reranker(scope: Scope | None = None) -> None:
    """Raises NoRerankerConfigured where none is set up for `scope`, before any model is loaded."""
    if scope is None:
        found = _is_configured("default")
    else:
        # Cached facts may be outdated: check again before refusing.
        found = has_reranker(cached_facts(scope)) or has_reranker(current_facts(scope))
    if not found:
        raise NoRerankerConfigured


def _is_configured(alias: str) -> bool:
    is_known = alias != "default" or alias in list(rerankers)
    return is_known and not isinstance(rerankers[alias], NoReranker)


def find_reranker(facts: ScopeFacts) -> tuple[str, str | None] | None:
    """Alias and instruction of the reranker that the scope's collections agree on, else the
    site's; None without one.

    Scores of two models cannot be compared, so disagreeing collections get the site's. Raises
    InferenceError.
    """
    wanted = {(each.reranker, each.rerank_instruction) for each in facts.collections.values()}
    alias, instruction = wanted.pop() if len(wanted) == 1 else ("", "")
    alias = alias or "default"
    return (alias, instruction or None) if _is_configured(alias) else None


#: Reads passages by chunk id; one that was deleted meanwhile is absent.
PassageReader = Callable[[Sequence[int]], Mapping[int, Passage]]


class PassageTexts:
    """Compares passage texts with one question; each passage is read and compared once."""

    def __init__(self, question: str, passages: PassageReader = read_passages) -> None:
        self._question = question
        self._passages = passages
        self._compared: dict[int, tuple[NDArray[np.bool_], float]] = {}
        self._rows: dict[int, list[NamedRow]] = {}
        self._finder: RowFinder | None = None

    def compare(
        self, chunk_ids: Sequence[int]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Numbers]:
        """Which chunks exist; for these, which trigrams of the question each has, of shape
        (passages, trigrams), and its name-match bonus.
        """
        if missing := [each for each in chunk_ids if each not in self._compared]:
            read = self._passages(missing)
            passages = read.values()
            holds = trigram_matches(self._question, [each.embedded_text for each in passages])
            named = [(each.title, each.document_key, each.context) for each in passages]
            matches = title_match(self._question, named).tolist()
            self._compared |= zip(read, zip(holds, matches, strict=True), strict=True)
        present = np.array([each in self._compared for each in chunk_ids], bool)
        found = [self._compared[each] for each in chunk_ids if each in self._compared]
        return present, np.array([each[0] for each in found]), np.array([each[1] for each in found])

    def read(self, chunk_ids: Sequence[int]) -> Mapping[int, Passage]:
        """The passages, by the reader, which caches them."""
        return self._passages(chunk_ids)

    def named_rows(self, chunk_ids: Sequence[int]) -> Numbers:
        """The bonus of each chunk for a row of a table that the question names by a cell."""
        if missing := [each for each in chunk_ids if each not in self._rows]:
            for chunk_id, passage in self._passages(missing).items():
                self._rows[chunk_id] = []
                if may_have_rows(passage.text):
                    self._finder = self._finder or RowFinder(self._question)
                    self._rows[chunk_id] = self._finder.find(passage.text)
        scores = weigh_rows([self._rows.get(each, ()) for each in chunk_ids])
        best = np.array([max(each, default=0.0) for each in scores])
        return np.where(best >= MIN_NAMED_ROW, NAMED_ROW_BONUS * best, 0.0)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hits in final order, before grouping and paging."""

    hits: tuple[Candidate, ...]
    reranked: int = 0
    reranker: str = ""
    degraded: tuple[str, ...] = ()
    milliseconds: float = 0.0

    def relevance(self) -> Callable[[Candidate], float]:
        """A function hit → 0..1: score divided by the best."""
        best = max((hit.score for hit in self.hits), default=0.0)
        return lambda hit: max(0.0, min(1.0, hit.score / best)) if best > 0 else 0.0


@dataclass(frozen=True, slots=True)
class RankingOptions:
    """Options of `rank`.

    `evidence` adds features to the arms' scores, see `common.fusion.RERANK_FEATURES`. Without
    `uses_trigrams` the top hits are not compared by trigrams, and without `finds_rows` not by rows
    that the question names: same hits, other order. `rerank`:
    None if a reranker is set up, True demands one, False is without; the first `rerank_depth` hits
    are reranked, or none if it takes longer than `rerank_seconds`. A hit without the score of a
    threshold does not pass it.
    """

    method: Method
    depth: int
    k: int
    evidence: bool = True
    rerank: bool | None = None
    min_similarity: float | None = None
    min_rerank: float | None = None
    diversify: bool = False
    uses_trigrams: bool = True
    finds_rows: bool = False
    rrf_k: int = RRF_K
    rerank_depth: int = DEFAULT_RERANK_DEPTH
    rerank_seconds: float | None = None


def rank(
    query: Query,
    retrieved: Retrieved,
    weights: Mapping[str, float],
    options: RankingOptions,
    texts: PassageTexts | None = None,
    passages: PassageReader = read_passages,
) -> Ranking:
    """Orders the candidates. If the reranker fails, the fused order stays and `degraded` says so.

    Raises NoRerankerConfigured.
    """
    hits = fused_hits(query, retrieved, weights, options, texts)
    if (least := options.min_similarity) is not None:
        hits = [hit for hit in hits if _reaches(hit.arm_score("similarity"), least)]
    ranking = rerank(query, hits, retrieved, options, passages)
    hits = list(ranking.hits)
    if options.min_rerank is not None:
        hits = [hit for hit in hits if _reaches(hit.rerank, options.min_rerank)]
    if options.diversify:
        documents = {hit.document_id for hit in hits}
        sources = dict(Document.objects.filter(pk__in=documents).values_list("pk", "source"))
        hits = diversify(
            hits,
            score=lambda hit: hit.score,
            document=lambda hit: hit.document_id,
            source=lambda hit: sources.get(hit.document_id, ""),
        )
    return replace(ranking, hits=tuple(hits))


#: The score by which each arm ranks candidates.
ARM_SCORES = {"lexical": "lexical", "vector": "closeness", "graph": "graph"}


def fused_hits(
    query: Query,
    retrieved: Retrieved,
    weights: Mapping[str, float],
    options: RankingOptions,
    texts: PassageTexts | None = None,
) -> list[Candidate]:
    """Candidates by fused score of arms and features. `texts` compares the texts of
    the top ones.
    """
    candidates = retrieved.candidates
    arms = {report.name: weights[report.name] for report in retrieved.arms}
    # Features need both arms: the ranking of a single arm stays unchanged.
    has_evidence = options.evidence and len(arms) > 1 and options.method == "score"
    said = [
        Arm(name, _arm_scores(retrieved, ARM_SCORES[name]), candidates.ranks[name], weight)
        for name, weight in arms.items()
    ]
    if has_evidence:
        likeness = _arm_scores(retrieved, "likeness")
        said.append(Arm("likeness", likeness, weight=RERANK_FEATURES["likeness"]))
    fusion = fuse(candidates.chunk_ids, said, method=options.method, rrf_k=options.rrf_k)
    order = fusion.order()
    texts = texts or PassageTexts(query.text)
    if has_evidence and options.finds_rows and len(order):
        is_first = (ranks := candidates.ranks["lexical"]) > 0
        is_first &= ranks <= NAMED_ROW_DEPTH
        is_first[order[:NAMED_ROW_DEPTH]] |= options.uses_trigrams
        first = np.flatnonzero(is_first)
        # Read at once, those that are compared below, too.
        compared = order[:TRIGRAM_DEPTH] if options.uses_trigrams else first
        texts.read(fusion.hits[np.union1d(first, compared)].tolist())
        rows = texts.named_rows(fusion.hits[first].tolist())
        if rows.any():
            fusion = fusion.with_evidence("row", first, rows)
    if has_evidence and options.uses_trigrams and len(order):
        # Trigram overlap and name match of the top hits.
        places = order[:TRIGRAM_DEPTH]
        present, holds, named = texts.compare(fusion.hits[places].tolist())
        if present.any():
            places = places[present]
            held = np.maximum(rarity_weighted(holds), 0.0)
            most = held.max(initial=0.0)
            if most > 0:
                letters = RERANK_FEATURES["letters"] * held / most
                fusion = fusion.with_evidence("letters", places, letters)
            if named.any():
                fusion = fusion.with_evidence("title", places, named)
    if has_evidence:
        order = fusion.order()
    order = order[: options.depth]
    fused = zip(order.tolist(), fusion.scores[order].tolist(), strict=True)
    return [
        Candidate(candidates, place, fusion, score, rank)
        for rank, (place, score) in enumerate(fused, start=1)
    ]


#: Chunks of a scope at which its own mean similarity says as much of what is unrelated as what the
#: model gives to any two texts: in a small scope the answers themselves make up the mean.
FEW_CHUNKS = 20


def _arm_scores(retrieved: Retrieved, name: str) -> Numbers:
    """A column of scores as fusion compares it with others. Similarities are taken above the mean
    similarity of the question to the scope: a model may give 0.6 to any two texts on one subject,
    so that the worst passage would have nine tenths of the best one's score."""
    scores = retrieved.candidates.scores[name]
    # Across spaces closeness is above the background of each already.
    is_similarity = name == "likeness" or (name == "closeness" and len(retrieved.backgrounds) < 2)
    if not is_similarity:
        return scores
    own = retrieved.facts.chunks / (retrieved.facts.chunks + FEW_CHUNKS)
    floors = {}
    for each in retrieved.spaces.queries:
        space_id = each.space.space_id
        background = retrieved.backgrounds.get(space_id, each.unrelated)
        floors[space_id] = max(each.unrelated + own * (background - each.unrelated), 0.0)
    spaces = retrieved.candidates.space_ids.tolist()
    floor = np.array([floors.get(space, 0.0) for space in spaces])
    above: Numbers = (scores - floor) / np.maximum(1 - floor, MIN_RANGE)
    return above


def _reaches(score: float | None, least: float) -> bool:
    return score is not None and score >= least


#: Threads that wait for a reranker where a search may only take so long. One that is late occupies
#: its thread until it answers, so that a reranker too slow for its searches is asked by few.
_threads = ThreadPoolExecutor(4, thread_name_prefix="rerank")


def rerank(
    query: Query,
    hits: Sequence[Candidate],
    retrieved: Retrieved,
    options: RankingOptions,
    passages: PassageReader = read_passages,
) -> Ranking:
    """Hits by fused score and reranker together. Those that it does not read keep their fused
    score: the ones behind the first, without text, or in a language that it was not made for.
    """
    if options.rerank is False:
        return Ranking(tuple(hits))
    started = perf_counter()
    first = hits[: options.rerank_depth]
    try:
        found = find_reranker(retrieved.facts)
        if found is None:
            if options.rerank:
                raise NoRerankerConfigured
            return Ranking(tuple(hits))
        alias, instruction = found
        languages = reranker_languages(alias)
        if not reads_question(languages, query.text):
            return Ranking(tuple(hits), milliseconds=_since(started))
        texts = passages([hit.chunk_id for hit in first])
        read = [
            hit
            for hit in first
            if (passage := texts.get(hit.chunk_id)) is not None
            and passage.embedded_text.strip()
            and is_made_for(languages, passage.language)
        ]
        scores = _scores(query.text, read, texts, alias, instruction, options) if read else []
    except InferenceError as error:
        logger.warning("hits are not reranked: %s", error)
        return Ranking(tuple(hits), degraded=("rerank",), milliseconds=_since(started))
    for hit, score, factor in zip(read, scores, rerank_factors(scores), strict=True):
        hit.rerank = score
        # What a path leads to need not say anything of the question itself: it may gain, not lose.
        is_led = retrieved.graph is not None and retrieved.graph.passages_before(hit.chunk_id)
        hit.rerank_factor = max(factor, 1.0) if is_led else factor
    ranked = sorted(hits, key=lambda hit: -hit.score)  # stable: ties keep the fused order
    return Ranking(tuple(ranked), len(read), alias, milliseconds=_since(started))


def _scores(
    question: str,
    read: Sequence[Candidate],
    texts: Mapping[int, Passage],
    alias: str,
    instruction: str | None,
    options: RankingOptions,
) -> Sequence[float]:
    """The reranker's scores, within the time that there is. Raises InferenceError."""
    passages = [texts[hit.chunk_id] for hit in read]
    score = partial(
        rerankers[alias].score,
        question,
        windows_to_read(question, [(each.context, each.text) for each in passages]),
        stored=[hit.fused_score for hit in read],
        instruction=instruction,
    )
    if options.rerank_seconds is None:
        return score()
    work = _threads.submit(with_log_context(score))
    try:
        return work.result(timeout=options.rerank_seconds)
    except TimeoutError as error:
        work.cancel()
        raise BackendUnavailable(
            f"reranker {alias!r} did not answer within {options.rerank_seconds:g} s: see whether"
            " its worker is busy, or raise RAGSITE_RERANK_SECONDS."
        ) from error


def _since(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)
