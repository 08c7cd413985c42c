"""A stream of sources, parted so that memory stays bounded and no key meets itself."""

from collections.abc import Iterable, Iterator

from documents.ingestion.sources import BrokenSource, Source

Entry = Source | BrokenSource

BATCH_FILES = 256
BATCH_BYTES = 16 * 1024 * 1024
SEGMENT_FILES = 20_000
#: A larger file goes alone: as text, chunks and vectors it takes many times its size.
LARGE_FILE = 32 * 1024 * 1024


def segments(sources: Iterable[Entry]) -> Iterator[Iterator[Entry]]:
    """Runs of sources, in order, in which no key comes twice and no large file has company.

    Each must be used up before the next is asked for. When one is done with before the next begins,
    the later of two sources with one key replaces the earlier, as it would in two runs, and two
    large files are never in memory together.
    """
    rest = iter(sources)
    following = next(rest, None)

    def segment() -> Iterator[Entry]:
        nonlocal following
        keys: set[str] = set()
        count = 0
        while following is not None and count < SEGMENT_FILES:
            is_large = following.size > LARGE_FILE
            if isinstance(following, Source):
                if following.key in keys or (is_large and count):
                    return
                keys.add(following.key)
            count += 1
            current, following = following, None
            yield current
            following = next(rest, None)
            if is_large:
                return

    while following is not None:
        yield segment()


def batches(sources: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Lists of at most BATCH_FILES sources and, but for single large ones, BATCH_BYTES bytes."""
    batch: list[Entry] = []
    size = 0
    for source in sources:
        if batch and (len(batch) >= BATCH_FILES or size + source.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(source)
        size += source.size
    if batch:
        yield batch
