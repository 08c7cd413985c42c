"""Everything that looks like a block, taken out of a text from which something is learnt. Pure.

Extraction must not take what was injected for the user's words, even where a client has changed
or cut the message since, so that the tag no longer holds. There a user's own words may rather go.
"""

import re

from memory.injection.rendering import TAG_LENGTH

#: From a bracket to its end, or to the next bracket or the end of the text where it was cut off: a
#: block of ours has no bracket inside.
_LOOKALIKE = re.compile(
    rf"\[(?:memory [0-9a-f]{{{TAG_LENGTH}}}:|facts:|context:)[^\[\]]*(?:\]|(?=\[)|\Z)",
    re.IGNORECASE,
)


def without_blocks(text: str) -> str:
    """`text` without fences and lists of facts or context, whoever wrote them and wherever.

    A line end stands in their place, so that what was around them cannot grow together into
    another. Once is enough: nothing is left to be found.
    """
    return _LOOKALIKE.sub("\n", text).strip() if "[" in text else text.strip()
