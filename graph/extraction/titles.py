"""What a document calls itself: its title, with and without what tells it from namesakes. Pure."""

import re
from collections.abc import Iterator

from graph.extraction.forms import form
from graph.extraction.found import Mention, Source
from graph.extraction.functionwords import INSIDE_NAMES

#: Most words on each side of a comma behind which only the place stands: `Leland, North Carolina`.
MOST_BESIDE_COMMA = 4

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
    if _is_place(plain):
        said.append(plain.partition(",")[0])
    by_form = {form(each): each.strip() for each in reversed(said)}
    return [each for name, each in reversed(by_form.items()) if name]


def _is_place(title: str) -> bool:
    """Whether the title is a name, a comma and the name of what that is in."""
    sides = [side.split() for side in title.split(",")]
    return len(sides) == 2 and all(
        1 <= len(side) <= MOST_BESIDE_COMMA
        and all(word[0].isupper() or word in INSIDE_NAMES for word in side)
        for side in sides
    )
