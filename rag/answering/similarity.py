"""How similar sentences are to a question, by the model of the passages' space."""

import logging
from collections.abc import Sequence
from functools import partial

from documents.embedders import embed_question, embedder_for
from documents.models import Chunk, EmbeddingSpace
from inference.base import InferenceError
from rag.answering.extractive import Similar
from rag.passage import Passage

logger = logging.getLogger(__name__)


def similar_to(question: str, passages: Sequence[Passage]) -> Similar | None:
    """What tells it, None where the passages are not of one space.

    Asks the database before it returns; what it returns asks only the model, and never raises.
    """
    ids = [passage.chunk_id for passage in passages]
    spaces = list(
        EmbeddingSpace.objects.filter(pk__in=Chunk.objects.filter(pk__in=ids).values("space"))[:2]
    )
    return partial(_similarities, question, spaces[0]) if len(spaces) == 1 else None


def _similarities(question: str, space: EmbeddingSpace, texts: Sequence[str]) -> list[float] | None:
    """None where the model fails. How many texts are compared is bounded by who asks and not by a
    time, so that the same question quotes the same sentences on a busy machine too."""
    try:
        asked = embed_question(space, question)
        found: list[float] = (embedder_for(space).embed_documents(list(texts)) @ asked).tolist()
    except InferenceError as error:
        logger.warning("sentences are chosen by words: %s", error)
        return None
    return found
