"""Asking for less where a server refuses so much, and for several batches at once."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cache
from threading import Event
from typing import TypeVar

from inference.remote.errors import ServerRefused

logger = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")
BLANKS = ("\n", " ")
SHORTEST = 32  # characters; a server that finds this too long means something else


def ask_in_pieces(
    texts: Sequence[str], ask: Callable[[Sequence[str]], Sequence[T]]
) -> list[list[tuple[str, T]]]:
    """For each text the pieces it had to be cut into, nearly always one, with what `ask` gave.

    `ask` gives one result for each text. Where the server refuses that as too large, it is asked
    for half of the texts, and at last for half of a text. Nothing is cut off. Raises what `ask`
    raises for anything else.
    """
    try:
        results = ask(texts)
    except ServerRefused as refused:
        if not refused.too_large or (len(texts) == 1 and len(texts[0]) < SHORTEST):
            raise
        _warn(len(texts) > 1)
        if len(texts) > 1:
            half = len(texts) // 2
            return ask_in_pieces(texts[:half], ask) + ask_in_pieces(texts[half:], ask)
        halves = ask_in_pieces(halve(texts[0]), ask)
        return [[piece for pieces in halves for piece in pieces]]
    return [[(text, result)] for text, result in zip(texts, results, strict=True)]


def halve(text: str) -> list[str]:
    """Two parts of like length, cut at white space where there is some; one if the rest is blank.

    White space around the parts goes; nothing else does.
    """
    text = text.strip()
    quarter, middle, late = len(text) // 4, len(text) // 2, len(text) * 3 // 4 + 1
    found = [text.rfind(blank, quarter, middle) for blank in BLANKS]
    found += [text.find(blank, middle, late) for blank in BLANKS]
    blanks = (at for at in found if at > 0)
    at = min(blanks, key=lambda at: abs(at - middle), default=middle)
    return [part for part in (text[:at].strip(), text[at:].strip()) if part]


def at_once(run: Callable[[T, Event], U], batches: Sequence[T], *, parallel: int) -> list[U]:
    """`run` of each batch, in order, `parallel` at a time. The first error ends it all.

    `run` also gets an event that is set when its result is no longer wanted.
    """
    cancelled = Event()
    if len(batches) <= 1 or parallel <= 1:
        return [run(batch, cancelled) for batch in batches]
    executor = ThreadPoolExecutor(min(parallel, len(batches)), thread_name_prefix="remote")
    # Each in the context of who asks, whose cancellation counts for them too.
    futures = [executor.submit(copy_context().run, run, batch, cancelled) for batch in batches]
    try:
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        return [future.result() for future in futures]
    finally:
        cancelled.set()
        executor.shutdown(wait=False, cancel_futures=True)


@cache  # once is enough: it happens again for every batch
def _warn(several: bool) -> None:
    if several:
        logger.warning("the server takes fewer texts at once: set a smaller batch_size")
    else:
        logger.warning(
            "the server takes only shorter texts, so long ones are embedded in halves: set"
            " max_tokens to what its model reads, or `tokenizer` to the model's own"
        )
