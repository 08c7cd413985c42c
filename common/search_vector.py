"""Expressions of search vectors."""

from django.contrib.postgres.search import SearchVectorField
from django.db.models import F, Func, TextField

#: What parts the words of a name, in PostgreSQL's syntax; one character, so that offsets into a
#: text stay true where it is replaced by a space.
IN_NAME_SQL = "(?<=[[:alnum:]])[._/](?=[[:alpha:]])"


class Words(Func):
    """`ragsite_words(text)`: the text in which `to_tsvector` finds the words that people mean.

    Names are split as by `SplitNames`; runs of Chinese, Japanese, Korean, Thai, Lao, Khmer and
    Burmese become overlapping pairs of characters (docs/decisions/0018). A query goes through the
    same function, in the database.
    """

    function = "ragsite_words"
    arity = 1

    def __init__(self, text: str) -> None:
        super().__init__(F(text), output_field=TextField())


class SplitNames(Func):
    """Dots, slashes and underscores between a letter or digit and a letter become spaces.

    PostgreSQL's parser takes `annual_report_2024.pdf`, `schema.table` and `example.org/page` for
    one word each, and nobody who asks for the annual report would find it. Numbers such as 1.355
    stay whole.
    """

    template = f"regexp_replace(%(expressions)s, '{IN_NAME_SQL}', ' ', 'g')"
    arity = 1

    def __init__(self, text: str) -> None:
        super().__init__(F(text), output_field=TextField())


def joined(*parts: Func) -> Func:
    """`part || part || …`: positions of later parts follow those of earlier ones."""
    return Func(
        *parts, template="%(expressions)s", arg_joiner=" || ", output_field=SearchVectorField()
    )
