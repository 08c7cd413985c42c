"""Weights that a collection learns from judged questions: retrieved once, fused many times."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.utils import timezone

from common.errors import Conflict
from documents.models import Collection, Document
from search.evaluation.dataset import Dataset, Entry
from search.evaluation.learning import Learnt, Passage, Question, learn
from search.evaluation.progress import Progress, nobody_watches
from search.passages import read_passages
from search.query import parse_query
from search.ranking import Ranked, RankingOptions, rank
from search.results import Scope
from search.retrieval.arms import retrieve
from search.services import DEPTH, EmbedderUnavailable, untuned_weights

#: Two to each fold. Fewer would only learn the questions by heart.
LEAST_QUESTIONS = 10
UNIT = {"lexical": 1.0, "vector": 1.0}


def tune(
    collection: Collection,
    dataset: Dataset,
    *,
    scope_of: Callable[[Entry], Scope],
    k: int = 10,
    on_progress: Progress = nobody_watches,
) -> Learnt:
    """What the judged questions of `dataset` teach about `collection`; nothing is stored.

    `scope_of` tells where a question is asked. Raises Conflict for too few questions, and
    EmbedderUnavailable where the model does not answer: words alone teach no balance.
    """
    answered = [query for query in dataset.queries if any(_relevant(dataset, query).values())]
    if len(answered) < LEAST_QUESTIONS:
        raise Conflict(
            f"{len(answered)} questions with a good answer are too few to learn from; it takes"
            f" {LEAST_QUESTIONS}. Judge more of them in the admin, under Judgements."
        )
    documents = _document_ids(collection, dataset)

    def questions() -> Iterator[Question]:
        for number, query in enumerate(answered, start=1):
            yield _question(query, scope_of(query), _relevant(dataset, query), documents)
            on_progress("learn from question", number, len(answered))

    return learn(questions(), k=k)


def store_tuning(collection: Collection, learnt: Learnt) -> bool:
    """Keep what was learnt on the collection, for its searches to use from now on.

    Only if it is better than the default on questions that it had not seen; returns whether.
    The record names the collection's space: with another model it does not count.
    """
    if round(learnt.gain, 4) <= 0:
        return False
    record = {
        "lexical": learnt.lexical,
        "pull": learnt.pull,
        "questions": learnt.questions,
        "ndcg_default": round(learnt.untuned, 4),
        "ndcg_tuned": round(learnt.tuned, 4),
        "space": collection.space_id,
        "at": timezone.now().isoformat(timespec="seconds"),
    }
    _set(collection, record)
    return True


def forget_tuning(collection: Collection) -> bool:
    """Go back to the default weights; returns whether there were others."""
    had_one = collection.tuning is not None
    _set(collection, None)
    return had_one


def _set(collection: Collection, record: dict[str, Any] | None) -> None:
    collection.tuning = record
    Collection.objects.filter(pk=collection.pk).update(tuning=record)


def _relevant(dataset: Dataset, query: Entry) -> Mapping[str, int]:
    return dataset.judgements[query.id]


def _document_ids(collection: Collection, dataset: Dataset) -> dict[str, int]:
    keys = {key for grades in dataset.judgements.values() for key in grades}
    rows = Document.objects.filter(collection=collection, key__in=keys).current()
    return dict(rows.values_list("key", "id"))


def _question(
    query: Entry, scope: Scope, grades: Mapping[str, int], documents: Mapping[str, int]
) -> Question:
    parsed = parse_query(query.text)
    retrieved = retrieve(parsed, scope=scope, mode="hybrid", depth=DEPTH)
    if retrieved.degraded:
        raise EmbedderUnavailable(
            "The model does not answer, and without it there is nothing to balance words with."
            " Start it, then learn again."
        )
    everything = RankingOptions(
        method="score", depth=len(retrieved.candidates), k=DEPTH, rerank=False
    )
    ranked = rank(parsed, retrieved, UNIT, everything).hits
    read = read_passages([hit.candidate.chunk_id for hit in ranked])
    texts = {chunk_id: each.embedded_text for chunk_id, each in read.items()}
    places = sorted(ranked, key=lambda hit: (hit.fused.best_rank, hit.fused.hit))
    return Question(
        id=query.id,
        text=parsed.text,
        passages=tuple(_passage(hit, texts) for hit in places if hit.candidate.chunk_id in texts),
        # A document that is not there is missed all the same: a number that none has.
        grades={documents.get(key, -n): grade for n, (key, grade) in enumerate(grades.items(), 1)},
        nearest=retrieved.nearest,
        untuned=untuned_weights(retrieved.nearest)["lexical"],
    )


def _passage(hit: Ranked, texts: Mapping[int, str]) -> Passage:
    given = hit.fused.contributions
    return Passage(
        document=hit.candidate.document_id,
        words=given.get("lexical", 0.0),
        meaning=given.get("vector", 0.0),
        in_words="lexical" in hit.candidate.ranks,
        in_meaning="vector" in hit.candidate.ranks,
        likeness=given.get("likeness", 0.0),
        text=texts[hit.candidate.chunk_id],
    )
