"""Text that is looked for within text: as a regular expression, which both columns and metadata
understand, so that both ignore case in the same way."""

import re

from search.filters.tree import Operator

#: Behind a backslash these mean themselves; letters, and only they, would mean something else.
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def pattern(operator: Operator, text: str) -> str:
    """A PostgreSQL regular expression for `$contains`, `$startswith` or `$endswith` `text`."""
    literal = _PUNCTUATION.sub(r"\\\g<0>", text)
    start = "^" if operator is Operator.STARTSWITH else ""
    end = "$" if operator is Operator.ENDSWITH else ""
    return f"{start}{literal}{end}"
