"""What a document calls itself: its title, with and without what tells it from namesakes. Pure."""

import re
from collections.abc import Iterator

from graph.extraction.forms import form
from graph.extraction.found import Mention, Source

#: Most words of the part before a comma that is a name by itself: `Leland, North Carolina`.
MOST_BEFORE_COMMA = 4

_PARENTHETICAL = re.compile(r"\s*[(\[（][^()\[\]（）]*[)\]）]\s*$")


def mentions(source: Source) -> Iterator[Mention]:
    """The names of the document itself, once for every passage."""
    for said in title_names(source.title):
        for number in range(len(source.passages)):
            yield Mention(number, form(said), said, "title", "self")


def title_names(title: str) -> list[str]:
    """`Green (Steve Hillage album)` → itself and `Green`; `Leland, North Carolina` → and `Leland`.

    Each has another form, none an empty one.
    """
    plain = _PARENTHETICAL.sub("", title)
    said = [title, plain]
    before, comma, _ = plain.partition(",")
    if comma and len(before.split()) <= MOST_BEFORE_COMMA:
        said.append(before)
    by_form = {form(each): each.strip() for each in reversed(said)}
    return [each for name, each in reversed(by_form.items()) if name]
