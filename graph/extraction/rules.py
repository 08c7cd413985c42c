"""All that rules find in a document, part by part. Pure."""

from collections.abc import Callable, Iterator

from graph.extraction import code, dates, links, names, schema, titles
from graph.extraction.found import Extraction, Mention, Source
from graph.extraction.tally import Tally

#: Of one passage, by all parts together.
MOST = 200

Part = Callable[[Source], Iterator[Mention]]
#: What a document calls itself comes first: where a passage is full, the later parts are cut.
PARTS: tuple[Part, ...] = (
    titles.mentions,
    links.mentions,
    schema.mentions,
    code.mentions,
    names.mentions,
    dates.mentions,
)


def extract(source: Source) -> Extraction:
    """What the document mentions, at most once a passage and form."""
    tally = Tally(most=MOST)
    for part in PARTS:
        for mention in part(source):
            tally.add(mention)
    return Extraction(mentions=tuple(tally.mentions()))
