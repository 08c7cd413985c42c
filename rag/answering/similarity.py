"""How similar sentences are to a question, by the model of the passages' space."""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import BoundedSemaphore

from common.logs.context import carrying
from documents.embedders import embed_question, embedder_for
from documents.models import Chunk, EmbeddingSpace
from inference.base import InferenceError
from rag.answering.extractive import Similar
from rag.passage import Passage

logger = logging.getLogger(__name__)

#: Seconds that an answer waits: choosing better sentences is worth no more, even where the model
#: hangs.
PATIENCE = 0.4
_AT_ONCE = 4
_threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="quotations")
_free = BoundedSemaphore(_AT_ONCE)


def similar_to(question: str, passages: Sequence[Passage]) -> Similar | None:
    """What tells it, None where the passages are not of one space.

    Asks the database before it returns; what it returns asks only the model, and never raises.
    """
    ids = [passage.chunk_id for passage in passages]
    spaces = list(
        EmbeddingSpace.objects.filter(pk__in=Chunk.objects.filter(pk__in=ids).values("space"))[:2]
    )
    return partial(_in_time, question, spaces[0]) if len(spaces) == 1 else None


def _in_time(question: str, space: EmbeddingSpace, texts: Sequence[str]) -> list[float] | None:
    """None where the model fails or takes too long, or too many answers wait for it already."""
    if not texts or not _free.acquire(blocking=False):
        return None
    waiting = _threads.submit(carrying(_similarities), question, space, texts)
    waiting.add_done_callback(lambda _: _free.release())
    try:
        return waiting.result(timeout=PATIENCE)
    except TimeoutError:
        logger.info("sentences are chosen by words: the model takes too long")
    except InferenceError as error:
        logger.warning("sentences are chosen by words: %s", error)
    return None


def _similarities(question: str, space: EmbeddingSpace, texts: Sequence[str]) -> list[float]:
    asked = embed_question(space, question)
    found: list[float] = (embedder_for(space).embed_documents(list(texts)) @ asked).tolist()
    return found
