"""What similarities mean to a model: how alike it finds what has nothing, and what has all to do
with one another. Measured once a model, with questions and passages of our own."""

import hashlib
import logging
from dataclasses import dataclass

import numpy as np
from django.core.cache import caches
from numpy.typing import NDArray

from documents.embedders import embed_question, embedder_for
from documents.models import EmbeddingSpace
from inference.base import InferenceError

logger = logging.getLogger(__name__)

#: Each question is answered by its own passage, in other words, and by no other one.
PAIRS = (
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

#: Of the way from “has nothing to do with it” to “the same text”, what an answer must be nearer;
#: a model that does not tell the pairs apart knows no meaning.
LEAST_SPREAD = 0.15
KEEP_SECONDS = 90 * 24 * 60 * 60

_scales: dict[str, "Scale"] = {}


@dataclass(frozen=True, slots=True)
class Scale:
    """A model's mean similarity of what is not, and of what is, question and answer."""

    unrelated: float
    related: float

    @property
    def knows_meaning(self) -> bool:
        """Whether the model tells one from the other."""
        room = max(1 - self.unrelated, 1e-6)
        return (self.related - self.unrelated) / room >= LEAST_SPREAD

    def nearness(self, similarity: float) -> float:
        """0 for what has nothing to do with the question, 1 for a usual answer."""
        return (similarity - self.unrelated) / (self.related - self.unrelated)


def scale_of(space: EmbeddingSpace) -> Scale | None:
    """The scale of a space's model, None for a model that knows no meaning or does not work."""
    key = _key(space)
    scale = _scales.get(key) or _read(key)
    if scale is None:
        try:
            scale = _measured(space)
        except InferenceError as error:
            logger.warning("similarities are not weighed: %s", error)
            return None
        _write(key, scale)
    _scales[key] = scale
    return scale if scale.knows_meaning else None


def scale(questions: NDArray[np.float32], passages: NDArray[np.float32]) -> Scale:
    """From the vectors of the pairs, both of shape (pairs, dimensions)."""
    similarities = questions @ passages.T
    count = len(similarities)
    related = float(np.trace(similarities)) / count
    unrelated = (float(similarities.sum()) - related * count) / (count * (count - 1))
    return Scale(round(unrelated, 4), round(related, 4))


def _measured(space: EmbeddingSpace) -> Scale:
    questions = np.stack([embed_question(space, question) for question, _ in PAIRS])
    return scale(questions, embedder_for(space).embed_documents([text for _, text in PAIRS]))


def _key(space: EmbeddingSpace) -> str:
    said = f"{space.model_name}\0{space.dimensions}\0{space.query_instruction}\0{PAIRS}"
    return "scale:" + hashlib.sha256(said.encode()).hexdigest()


def _read(key: str) -> Scale | None:
    try:
        stored = caches["default"].get(key)
    except Exception as error:  # each cache backend has errors of its own
        logger.warning("cache of scales cannot be read: %s", error)
        return None
    return Scale(*stored) if stored else None


def _write(key: str, found: Scale) -> None:
    try:
        caches["default"].set(key, (found.unrelated, found.related), timeout=KEEP_SECONDS)
    except Exception as error:
        logger.warning("cache of scales cannot be written: %s", error)
