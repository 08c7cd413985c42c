"""What of a message is searched for: the part that asks. Pure.

The words stay as they are. Search by words drops stop words itself, by PostgreSQL's dictionaries,
and where nothing is left the whole message is searched for by meaning. Dropping them before the
model reads it helps cosine alone and hurts the whole search: docs/decisions/0026.
"""

import re

#: Of a message. More than that is pasted text.
MAX_CHARACTERS = 4000

_FENCED = re.compile(r"^```.*?(?:^```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_QUESTION_MARKS = re.compile("[?？؟;՞፧‽]")


def asking_part(message: str) -> str:
    """`message`, or of a long one its beginning and its end, where people say what they want of
    what they pasted: at most MAX_CHARACTERS.

    Quoted code goes first. The half that has a question mark comes first, because models read the
    beginning of what is long.
    """
    if len(message) <= MAX_CHARACTERS:
        return message.strip()
    prose = _FENCED.sub("\n", message).strip() or message.strip()
    if len(prose) <= MAX_CHARACTERS:
        return prose
    half = MAX_CHARACTERS // 2 - 1
    # the first and the last of these words may be torn by the cut
    beginning = (prose[:half].rsplit(maxsplit=1) or [""])[0]
    end = (prose[-half:].split(maxsplit=1) or [""])[-1]
    asks_late = _QUESTION_MARKS.search(end) and not _QUESTION_MARKS.search(beginning)
    return "\n".join((end, beginning) if asks_late else (beginning, end))
