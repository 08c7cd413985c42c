"""What a node may emit beside the words of a model."""


class Verbatim(str):
    """A text in which nothing is looked for: its citations, if any, are emitted beside it."""

    __slots__ = ()
