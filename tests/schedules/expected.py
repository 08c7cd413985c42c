"""What must be there after a schedule, as a few Python collections know it."""

from dataclasses import dataclass, field

from tests.schedules.plan import KEYS

#: Paragraphs of the variants of a document: of one passage, of a few, of none that it had before.
LENGTHS = (1, 12, 30)

Text = str | None


def name(key: int) -> str:
    return f"note-{key}.txt"


def text(key: int, variant: int) -> str:
    """A document. Of its paragraphs each has a word that no other has."""
    paragraphs = (
        f"Paragraph {number} of note{key} in variant{variant} tells of mark{key}x{variant}x{number}"
        " and of much that every note tells of, at the same length and in the same words."
        for number in range(LENGTHS[variant])
    )
    return "\n\n".join(paragraphs)


@dataclass(slots=True)
class Expected:
    """`texts` are, of each key, those one of which it must have; None is no document. There are
    several where something was cancelled, which may have come too late, or was done at once."""

    texts: dict[int, set[Text]] = field(
        default_factory=lambda: {key: {None} for key in range(KEYS)}
    )
    told: dict[int, set[Text]] = field(default_factory=lambda: {key: {None} for key in range(KEYS)})
    last_run: dict[int, int] = field(default_factory=dict)
    remembered: set[str] = field(default_factory=set)
    facts: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    edges: set[tuple[str, str]] = field(default_factory=set)

    def uploaded(self, key: int, *variants: int, run: int | None = None) -> None:
        """One of the variants, where they came at once."""
        self.texts[key] = {text(key, variant) for variant in variants}
        self.told[key] |= self.texts[key]
        self.last_run.pop(key, None)
        if run is not None:
            self.last_run[key] = run

    def deleted(self, key: int) -> None:
        self.texts[key] = {None}
        self.last_run.pop(key, None)

    def cancelled(self, run: int) -> None:
        """What had been loaded before is there again, unless it was done by then."""
        for key, last in self.last_run.items():
            if last == run:
                self.texts[key] |= self.told[key]
