"""What a text must be before a model sees it."""

from collections.abc import Sequence

from inference.base import EmptyText, InferenceError


def check_texts(texts: Sequence[str]) -> None:
    """Raises EmptyText or InferenceError naming the index of the first text nobody can embed."""
    for index, text in enumerate(texts):
        if not text or text.isspace():
            raise EmptyText(index)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InferenceError(
                f"text {index} holds half a surrogate pair at {error.start}, which is no character:"
                " decode its source with the right encoding."
            ) from error


def sendable(text: str) -> str:
    """`text` with a question mark for half a surrogate pair, which no server could be sent."""
    return text.encode(errors="replace").decode()
