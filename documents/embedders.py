"""The embedder of an embedding space, question vectors, and the scale of its similarities
(`scale_of`): vectors of two models cannot be compared."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from django.core.cache import caches
from numpy.typing import NDArray

from common import features
from documents.models import EmbeddingSpace
from inference.interfaces import DimensionMismatch, Embedder, InferenceError
from inference.model_registry import alias_of, embedders
from inference.query_cache import embed_documents_cached, embed_query_cached


class ModelMismatch(InferenceError):
    """The configured embedder is another model than the one that made the space's vectors."""


def embedder_for(space: EmbeddingSpace) -> Embedder:
    """The embedder of a space: of its alias, or of another where the configuration was changed
    and that model is there under it. Raises InferenceError where it is not."""
    return _aliased_embedder(space)[1]


def _aliased_embedder(space: EmbeddingSpace) -> tuple[str, Embedder]:
    alias = alias_of(space.embedder, space.model_name)
    embedder = embedders[alias]
    if embedder.dimensions != space.dimensions:
        raise DimensionMismatch(space.dimensions, embedder.dimensions)
    if embedder.model_name != space.model_name:
        raise ModelMismatch(
            f"the vectors of space {space.name} are from {space.model_name}, its embedder"
            f" {space.embedder!r} is now {embedder.model_name}, and no other is that model:"
            " configure the old model under another alias."
        )
    return alias, embedder


def embed_question(space: EmbeddingSpace, text: str) -> NDArray[np.float32]:
    """The question's vector in `space`, shape (dimensions,), cached. Raises InferenceError."""
    alias, _ = _aliased_embedder(space)
    return embed_query_cached(alias, text, space.query_instruction or None)


def embed_titles(space: EmbeddingSpace, titles: Sequence[str]) -> NDArray[np.float32]:
    """The vectors of titles in `space`, shape (len(titles), dimensions), cached: they come again,
    question after question. Raises InferenceError."""
    alias, _ = _aliased_embedder(space)
    return embed_documents_cached(alias, titles)


logger = logging.getLogger(__name__)

Number = TypeVar("Number", float, NDArray[np.float64])

#: Each question is answered only by its own passage, in different words.
CALIBRATION_PAIRS = (
    (
        "How tall do giraffes grow?",
        "The African animal with the long neck reaches a height of more than five metres.",
    ),
    (
        "Why do leaves turn yellow in autumn?",
        "Trees break down their green pigment before winter, and other colours of the foliage"
        " become visible.",
    ),
    (
        "Who painted the ceiling of the Sistine Chapel?",
        "Michelangelo worked for four years on the frescoes in the Vatican for Pope Julius II.",
    ),
    (
        "How is high blood pressure treated?",
        "Doctors prescribe diuretics or ACE inhibitors against hypertension and advise less salt.",
    ),
    (
        "When was the first email sent?",
        "Ray Tomlinson transmitted an electronic message between two computers in 1971.",
    ),
    (
        "Which port does the web server listen on?",
        "By default HTTP connections are accepted at 80, and encrypted ones at 443.",
    ),
    (
        "How do I return a faulty product?",
        "Customers may send defective goods back within thirty days and get a refund.",
    ),
    (
        "What does it cost to have a house sale certified?",
        "The notary's fees for real estate follow a statutory table and depend on the price.",
    ),
)

#: Minimum difference of the mean similarity of related and unrelated pairs, as a share of the
#: distance from “unrelated” to “identical”; below it the model does not distinguish meanings.
MIN_SPREAD = 0.15
CACHE_SECONDS = 90 * 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class SimilarityScale:
    """Mean similarity of unrelated and of related pairs of question and passage, for one model."""

    unrelated: float
    related: float

    @property
    def knows_meaning(self) -> bool:
        """Whether the model separates related from unrelated pairs by at least MIN_SPREAD."""
        room = max(1 - self.unrelated, 1e-6)
        return (self.related - self.unrelated) / room >= MIN_SPREAD

    def nearness(self, similarity: Number) -> Number:
        """(similarity - unrelated) / (related - unrelated): 0 for an unrelated passage, 1 for a
        usual answer."""
        return (similarity - self.unrelated) / (self.related - self.unrelated)


_scales: dict[str, tuple[SimilarityScale, ...]] = {}


def scale_of(space: EmbeddingSpace) -> SimilarityScale | None:
    """The scale of a space's model, measured once and cached. None for a model that does not
    separate the pairs, or does not work, and on a site without vectors."""
    if not features.is_on("vectors"):
        return None
    texts = [text for _, text in CALIBRATION_PAIRS]

    def measure() -> list[SimilarityScale]:
        questions = np.stack([embed_question(space, question) for question, _ in CALIBRATION_PAIRS])
        return [similarity_scale(questions @ embedder_for(space).embed_documents(texts).T)]

    scales = _space_scales("scales", space, measure)
    return scales[0] if scales and scales[0].knows_meaning else None


def compare_sentences(
    space: EmbeddingSpace, question: str, texts: Sequence[str]
) -> NDArray[np.float64] | None:
    """How near each short text is to the question, shape (len(texts),): 0 is unrelated, 1 a usual
    answer. None for a model that does not separate the pairs. Raises InferenceError.

    Where the model's single tokens can be compared it is the mean of two: of the texts as a whole,
    and of the question's tokens, each with the nearest one in the text (late interaction), which
    tells the sentence that answers from the sentence beside it. None on a site without vectors.
    """
    if not features.is_on("vectors"):
        return None
    embedder, calibration = embedder_for(space), [text for _, text in CALIBRATION_PAIRS]
    instruction = space.query_instruction or None
    compare = embedder.compare if getattr(embedder, "compares_tokens", False) else None  # type: ignore[attr-defined]

    def measure() -> list[SimilarityScale]:
        if compare is None:
            scale = scale_of(space)
            return [scale] if scale else []
        compared = np.stack(
            [compare(question, calibration, instruction) for question, _ in CALIBRATION_PAIRS]
        )
        return [similarity_scale(compared[:, :, kind]) for kind in range(compared.shape[2])]

    scales = _space_scales("sentences", space, measure)
    if not scales or not all(scale.knows_meaning for scale in scales):
        return None
    if compare is None:
        similarities = embedder.embed_documents(texts) @ embed_question(space, question)
        return scales[0].nearness(similarities.astype(np.float64))
    compared = compare(question, texts, instruction).astype(np.float64)
    columns = [scale.nearness(compared[:, kind]) for kind, scale in enumerate(scales)]
    nearness: NDArray[np.float64] = np.mean(columns, axis=0)
    return nearness


def _space_scales(
    kind: str, space: EmbeddingSpace, measure: Callable[[], Sequence[SimilarityScale]]
) -> tuple[SimilarityScale, ...]:
    """The scales that `measure` gives for a space's model, cached; () where the model fails."""
    identity = f"{space.model_name}\0{space.dimensions}\0{space.query_instruction}"
    try:
        return measured_scales(kind, identity, measure)
    except InferenceError as error:
        logger.warning("similarities are not weighed: %s", error)
        return ()


def measured_scales(
    kind: str, identity: str, measure: Callable[[], Sequence[SimilarityScale]]
) -> tuple[SimilarityScale, ...]:
    """The scales that `measure` gives for the model with this `identity` by CALIBRATION_PAIRS,
    cached in this process and beyond. Raises what `measure` raises."""
    key = f"{kind}:" + hashlib.sha256(f"{identity}\0{CALIBRATION_PAIRS}".encode()).hexdigest()
    scales = _scales.get(key)
    if scales is None:
        try:
            stored = caches["default"].get(key)
        except Exception as error:  # each cache backend has errors of its own
            logger.warning("cache of scales cannot be read: %s", error)
        else:
            scales = tuple(SimilarityScale(*each) for each in stored) if stored else None
    if scales is None:
        scales = tuple(measure())
        try:
            pairs = [(scale.unrelated, scale.related) for scale in scales]
            caches["default"].set(key, pairs, timeout=CACHE_SECONDS)
        except Exception as error:
            logger.warning("cache of scales cannot be written: %s", error)
    _scales[key] = scales
    return scales


def similarity_scale(similarities: NDArray[np.float32]) -> SimilarityScale:
    """The scale from the similarities of each question (row) with each passage (column), of shape
    (pairs, pairs)."""
    count = len(similarities)
    related = float(np.trace(similarities)) / count
    unrelated = (float(similarities.sum()) - related * count) / (count * (count - 1))
    return SimilarityScale(round(unrelated, 4), round(related, 4))
