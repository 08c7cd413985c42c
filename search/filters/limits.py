"""How large a filter may be, and how a faulty one is refused."""

from common.errors import InvalidInput

#: `$and`, `$or` and `$not` within one another. An API body of 32 levels has room for it.
MAX_DEPTH = 12
MAX_CONDITIONS = 100
#: Of all `$in` and `$nin` together.
MAX_VALUES = 1_000
MAX_CHARACTERS = 65_536
MAX_PATH_CHARACTERS = 128
#: Looked for as a regular expression, whose automaton grows with it.
MAX_PATTERN_CHARACTERS = 1_000

_SHOWN = 40


class FilterError(InvalidInput):
    """A filter that cannot be: the message names the place in it and the cure."""

    def __init__(self, message: str, *, at: str = "") -> None:
        # Half a surrogate pair could not be sent back.
        whole = f"At {at or 'the filter'}: {message}".encode(errors="replace").decode()
        super().__init__(whole, field="filter")


class Budget:
    """What a filter may still use up; every method raises FilterError once it is spent.

    Counting while reading refuses a megabyte after its first hundred conditions.
    """

    def __init__(self) -> None:
        self._conditions = 0
        self._values = 0
        self._characters = 0

    def condition(self, at: str) -> None:
        """One more comparison, `$and`, `$or` or `$not`."""
        self._conditions += 1
        if self._conditions > MAX_CONDITIONS:
            raise FilterError(
                f"The filter has more than {MAX_CONDITIONS} conditions."
                " Join alternatives of one field with $in, or store what they mean as a field.",
                at=at,
            )

    def values(self, count: int, at: str) -> None:
        """`count` more values in lists."""
        self._values += count
        if self._values > MAX_VALUES:
            raise FilterError(
                f"The lists of the filter have more than {MAX_VALUES:,} values."
                " Ask in several searches.",
                at=at,
            )

    def characters(self, text: str, at: str) -> None:
        """A name or a string."""
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise too_long(at)


def too_long(at: str = "") -> FilterError:
    """More text than any filter needs."""
    return FilterError(
        f"The filter has more than {MAX_CHARACTERS:,} characters. Leave out what is not needed.",
        at=at,
    )


def too_deep(at: str = "") -> FilterError:
    """More nesting than anybody reads."""
    return FilterError(
        f"$and, $or and $not are nested more than {MAX_DEPTH} deep. Flatten the filter.", at=at
    )


def shown(text: str) -> str:
    """`text` as a message shows it: in quotes, and never all of a long one."""
    return f"“{text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}”"
