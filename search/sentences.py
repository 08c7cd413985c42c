"""The sentence of a text that is nearest to a question: what a hit of meaning alone should show."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from django.core.cache import caches

from common.logs.context import carrying
from documents.embedders import embed_question, embedder_for
from documents.models import EmbeddingSpace
from inference.base import Embedder, InferenceError
from search.passages import Passage
from search.snippets import Span, Spans, sentences, wants_focus

logger = logging.getLogger(__name__)

#: What is embedded is bounded by the number of sentences and not by elapsed time, so that a page
#: shows the same snippets however busy the machine is. 16 take 40 ms with all-MiniLM-L6-v2 on two
#: cores.
MAX_SENTENCES = 16
MAX_CHARACTERS = 2000
#: Of all texts of a page together; the texts that are ranked below show their beginnings.
MAX_PAGE_SENTENCES = 48
#: Seconds after which a model counts as failed. Far above what a busy machine needs.
MODEL_TIMEOUT = 5.0
KEEP_SECONDS = 24 * 60 * 60

_threads = ThreadPoolExecutor(2, thread_name_prefix="sentences")


@dataclass(frozen=True, slots=True)
class _Cut:
    """A text with its sentences, and the cache's key for the nearest of them."""

    text: str
    spans: tuple[Span, ...]
    key: str

    @property
    def sentences(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans]


def focuses(
    query: str,
    chunks: Sequence[Passage],
    marked: Mapping[int, Spans],
    *,
    spaces: Sequence[EmbeddingSpace],
) -> dict[int, Span]:
    """By chunk id, what `make_snippet` is to show of those of `chunks` that hold no marked word.

    `chunks` are a page's, best first; each is looked at with the model of its own space.
    """
    wanted = [chunk for chunk in chunks if wants_focus(chunk.text, marked.get(chunk.pk, ()))]
    found: dict[int, Span] = {}
    for space in spaces:
        own = [chunk for chunk in wanted if chunk.space_id == space.pk]
        spans = similar_sentences(query, space, [chunk.text for chunk in own])
        found |= {chunk.pk: span for chunk, span in zip(own, spans, strict=True) if span}
    return found


def similar_sentences(query: str, space: EmbeddingSpace, texts: Sequence[str]) -> list[Span | None]:
    """(start, end) of the sentence of each text that is nearest to `query` in `space`.

    Texts that matter most come first. None where MAX_PAGE_SENTENCES were used up by those before,
    the text is empty, or the model did not answer: this never raises what goes wrong with a model
    or a cache.
    """
    if not texts:
        return []
    try:
        embedder = embedder_for(space)
        name = f"{embedder.model_name}\0{embedder.dimensions}\0{space.query_instruction}"
        cuts, count = [], 0
        for text in texts:
            spans = _first_sentences(text)
            count += len(spans)
            if count > MAX_PAGE_SENTENCES:
                break
            cuts.append(_Cut(text, spans, _key(name, query, text)))
        known = _read(cuts)
        wanted = [cut for cut in cuts if cut.key not in known and cut.spans]
        if wanted:
            work = _threads.submit(carrying(_choose), query, space, embedder, wanted)
            try:
                known |= work.result(timeout=MODEL_TIMEOUT)
            except TimeoutError:
                work.cancel()
                logger.warning("the model hangs, snippets show beginnings")
    except InferenceError as error:
        logger.warning("no sentence is nearest, snippets show beginnings: %s", error)
        return [None] * len(texts)
    return [known.get(cut.key) for cut in cuts] + [None] * (len(texts) - len(cuts))


def _choose(
    query: str, space: EmbeddingSpace, embedder: Embedder, cuts: Sequence[_Cut]
) -> dict[str, Span]:
    asked = embed_question(space, query)
    chosen = {
        cut.key: cut.spans[int(np.argmax(embedder.embed_documents(cut.sentences) @ asked))]
        for cut in cuts
    }
    _write(chosen)
    return chosen


def _first_sentences(text: str) -> tuple[Span, ...]:
    return tuple(span for span in sentences(text)[:MAX_SENTENCES] if span[1] <= MAX_CHARACTERS)


def _key(name: str, query: str, text: str) -> str:
    """Lengths first, so that no query and text can be taken for another two."""
    said = f"{name}\0{len(query)}\0{query}{text}"
    return "sentence:" + hashlib.sha256(said.encode(errors="replace")).hexdigest()


def _read(cuts: Sequence[_Cut]) -> dict[str, Span]:
    try:
        stored = caches["default"].get_many([cut.key for cut in cuts])
    except Exception as error:  # each cache backend has errors of its own
        logger.warning("cache of sentences cannot be read, choosing without it: %s", error)
        return {}
    spans = {cut.key: set(cut.spans) for cut in cuts}
    return {key: tuple(span) for key, span in stored.items() if tuple(span) in spans[key]}


def _write(chosen: dict[str, Span]) -> None:
    try:
        caches["default"].set_many(chosen, timeout=KEEP_SECONDS)
    except Exception as error:
        logger.warning("cache of sentences cannot be written: %s", error)
