"""What a reranker reads of each passage, and what its scores count for beside those of retrieval.
Measured in docs/decisions/0081. Begin with `rerank_factors` and `windows_to_read`.
"""

from collections.abc import Sequence

import numpy as np

from common.trigrams import rarity_weighted, trigram_matches
from documents.models.chunk import text_in_context
from documents.question_language import (
    language_of_script,
    language_of_small_words,
    question_language,
)
from inference.model_languages import EVERY, given_languages, is_made_for, known_languages
from inference.model_registry import rerankers
from search.snippets import sentences

#: Number of first hits that are reranked, the same for every page, so that pages fit: where
#: reranking is asked for, where it is not (more gain nothing that is worth the time), and the most.
RERANK_DEPTH = 20
DEFAULT_RERANK_DEPTH = 12
MAX_RERANK_DEPTH = 100

#: What one standard deviation of the reranker's log-odds counts for: a tenth of the fused score.
RERANK_WEIGHT = 0.1
#: Log-odds that differ by less are as good as equal: they are not spread to a standard deviation.
MIN_DEVIATION = 1.0
#: Bounds of a probability of which log-odds are taken: 0 and 1 have none.
MIN_PROBABILITY = 1e-6


def rerank_factors(scores: Sequence[float]) -> list[float]:
    """Factors of the fused scores of hits that a reranker gave these `scores`, 0..1. A factor is
    exp(weight · z), z the log-odds' distance from their mean in standard deviations.

    Rerankers differ in how sure they are, so log-odds count by how they differ within one list.
    The greater a score, the greater the factor; 1 is that of a hit that was not read.
    """
    if not len(scores):
        return []
    chances = np.clip(np.array(scores, np.float64), MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    odds = np.log(chances) - np.log1p(-chances)
    z = (odds - odds.mean()) / max(odds.std(), MIN_DEVIATION)
    factors: list[float] = np.exp(RERANK_WEIGHT * z).tolist()
    return factors


def reranker_languages(alias: str) -> frozenset[str]:
    """ISO codes of the languages that a reranker was made for: as its entry says in LANGUAGES, or
    known by the model's name; empty where nobody says. Raises InferenceError."""
    given = given_languages("reranker", alias)
    return given or known_languages(getattr(rerankers[alias], "model_name", ""))


def reads_question(languages: frozenset[str], question: str) -> bool:
    """Whether a reranker of these languages reads the question's; True where nobody can tell."""
    if not languages or EVERY in languages:
        return True
    language = language_of_script(question) or language_of_small_words(question)
    if not language or not is_made_for(languages, language):
        language = question_language(question)  # surer, and may load a model
    return is_made_for(languages, language)


#: Most characters of a passage that are read: about a hundred tokens of English, to which question,
#: title and headings add thirty.
READ_CHARACTERS = 450


def windows_to_read(
    question: str, passages: Sequence[tuple[str, str]], *, longest: int = READ_CHARACTERS
) -> list[str]:
    """Of each passage (its context and its text) the context and the consecutive sentences that
    hold most of the question's trigrams, rare ones counting most: at most `longest` characters, or
    one sentence. Of windows that hold as much the first.
    """
    windows: list[str] = []
    ends = []
    for _, text in passages:
        windows += _sentence_windows(text, longest)
        ends.append(len(windows))
    held = rarity_weighted(trigram_matches(question, windows))
    chosen = []
    start = 0
    for (context, _), end in zip(passages, ends, strict=True):
        best = start + int(np.argmax(held[start:end]))
        chosen.append(text_in_context(context, windows[best]))
        start = end
    return chosen


def _sentence_windows(text: str, longest: int) -> list[str]:
    """The text if it is short enough; else one window from each sentence on that no window holds
    whole already."""
    if len(text) <= longest:
        return [text]
    spans = sentences(text, longest=longest)
    windows: list[tuple[int, int]] = []
    for place, (start, end) in enumerate(spans):
        last = end
        for _, end_of_next in spans[place + 1 :]:
            if end_of_next - start > longest:
                break
            last = end_of_next
        if not windows or last > windows[-1][1]:
            windows.append((start, last))
    return [text[start:last] for start, last in windows] or [text[:longest]]
