"""Late interaction (ColBERT, https://arxiv.org/abs/2004.12832): how a question's tokens find tokens
of passages, by one bit a dimension that is kept with each passage. Begin with `compare_passages`;
`documents/ingestion/token_encoding.py` fills the table.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from common.sql import release_connection
from documents.models import ChunkTokens, Collection
from inference.interfaces import InferenceError, TokenEncoder
from inference.model_languages import given_languages, is_made_for, known_languages
from inference.model_registry import token_encoders
from reading.sections import TokenMatches, split_sections

logger = logging.getLogger(__name__)

ALIAS = "default"
#: Passages without stored tokens that are encoded for a question, the first of them.
MAX_ENCODED_NOW = 8
#: Questions whose states are kept in the process, some 30 kB each.
CACHED_QUESTIONS = 64
OFFSET_DTYPE = np.dtype("<i4")
#: A passage whose workers died so often while it was encoded is given up.
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class ComparedPassage:
    """A passage: its chunk's id, title and headings on one line, and its text."""

    chunk_id: int
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class PassageTokens:
    """`bits` uint8 (tokens, dimensions / 8); `starts` and `ends` as of TokenMatches."""

    bits: NDArray[np.uint8]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]


def has_token_encoder() -> bool:
    """Whether one is configured. Loads no model."""
    return ALIAS in list(token_encoders)


def encoder_languages(model_name: str) -> frozenset[str]:
    """ISO codes that the token encoder was made for; empty where nobody says."""
    return given_languages("token_encoder", ALIAS) or known_languages(model_name)


def knows(language: str) -> bool:
    """Whether there is a token encoder for this language, an ISO code or "" where it is unknown."""
    if not has_token_encoder():
        return False
    try:
        return is_made_for(encoder_languages(token_encoders[ALIAS].model_name), language)
    except InferenceError as error:
        logger.warning("the token encoder cannot be used: %s", error)
        return False


def encode_passages(
    encoder: TokenEncoder, passages: Sequence[ComparedPassage]
) -> list[PassageTokens]:
    """The tokens of each, section by section: title and headings, then the section's text. What is
    below a heading of its own is found by it, and not by that of its neighbour. Raises
    InferenceError."""
    parts = [
        (place, section.start, f"{section.lead(each.heading)}\n".lstrip("\n"), section.end)
        for place, each in enumerate(passages)
        for section in split_sections(each.text)
    ]
    states = encoder.encode_documents(
        [heading + passages[place].text[start:end] for place, start, heading, end in parts]
    )
    found: list[list[PassageTokens]] = [[] for _ in passages]
    for (place, start, heading, _), each in zip(parts, states, strict=True):
        is_text = each.starts >= len(heading)
        starts, ends = (
            np.where(is_text, offsets - len(heading) + start, -1).astype(np.int32)
            for offsets in (each.starts, each.ends)
        )
        found[place].append(PassageTokens(each.bits, starts, ends))
    return [
        PassageTokens(
            np.concatenate([each.bits for each in of_passage]),
            np.concatenate([each.starts for each in of_passage]),
            np.concatenate([each.ends for each in of_passage]),
        )
        if of_passage
        else PassageTokens(
            np.empty((0, encoder.dimensions // 8), np.uint8),
            np.empty(0, np.int32),
            np.empty(0, np.int32),
        )
        for of_passage in found
    ]


# A text that was changed since is left out, as is one that is being encoded. One that was given up
# has no bits.
_STORED = """
    SELECT tokens.chunk_id, tokens.bits, tokens.starts, tokens.ends
    FROM documents_chunktokens AS tokens JOIN documents_chunk AS chunk ON chunk.id = tokens.chunk_id
    WHERE tokens.chunk_id = ANY(%s) AND tokens.model = %s
      AND tokens.content_sha256 = chunk.content_sha256
      AND (tokens.leased_until IS NULL OR tokens.leased_until < now() AND tokens.attempts >= %s)
"""


def compare_passages(
    question: str, passages: Sequence[ComparedPassage]
) -> dict[int, TokenMatches] | None:
    """How the question's tokens find those of each passage, by chunk id.

    Of the passages whose tokens are not stored the first MAX_ENCODED_NOW are encoded now, and the
    others are missing in the result, as are those without tokens. None without a token encoder, or
    where it fails. Releases the database connection while the model works.
    """
    if not has_token_encoder():
        return None
    try:
        encoder = token_encoders[ALIAS]
        stored = _stored_tokens([each.chunk_id for each in passages], encoder)
        release_connection()
        states = _question_states(encoder.model_name, question)
        missing = [each for each in passages if each.chunk_id not in stored][:MAX_ENCODED_NOW]
        if missing:
            encoded = encode_passages(encoder, missing)
            stored |= {each.chunk_id: new for each, new in zip(missing, encoded, strict=True)}
    except InferenceError as error:
        logger.warning("passages are not compared token by token: %s", error)
        return None
    return {
        pk: TokenMatches(_similarities(states, tokens.bits), tokens.starts, tokens.ends)
        for pk, tokens in stored.items()
        if len(tokens.bits)
    }


def _stored_tokens(ids: Sequence[int], encoder: TokenEncoder) -> dict[int, PassageTokens]:
    with connection.cursor() as cursor:
        cursor.execute(_STORED, [list(ids), encoder.model_name, MAX_ATTEMPTS])
        rows = cursor.fetchall()
    return {
        pk: PassageTokens(
            np.frombuffer(bits, np.uint8).reshape(-1, encoder.dimensions // 8),
            np.frombuffer(starts, OFFSET_DTYPE).astype(np.int32),
            np.frombuffer(ends, OFFSET_DTYPE).astype(np.int32),
        )
        for pk, bits, starts, ends in rows
    }


def count_with_tokens(collection: Collection | None = None) -> int:
    """How many passages, of a collection or of all, the present token encoder has read."""
    if not has_token_encoder():
        return 0
    try:
        model_name = token_encoders[ALIAS].model_name
    except InferenceError:
        return 0
    rows = ChunkTokens.objects.filter(model=model_name, leased_until=None)
    return (rows if collection is None else rows.filter(chunk__collection=collection)).count()


@lru_cache(maxsize=CACHED_QUESTIONS)
def _question_states(model_name: str, question: str) -> NDArray[np.float32]:
    states = token_encoders[ALIAS].encode_query(question)
    states.setflags(write=False)  # shared by all who ask
    return states


def _similarities(question: NDArray[np.float32], bits: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Cosines of the question's states (tokens, dimensions) with the signs in `bits`."""
    signs = np.unpackbits(bits, axis=1).astype(np.float32) * 2 - 1
    cosines: NDArray[np.float32] = question @ signs.T / np.float32(np.sqrt(signs.shape[1]))
    return cosines
