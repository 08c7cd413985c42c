"""What a remote model is like: from a table of known ones, or from the options."""

from dataclasses import dataclass, field

from inference.base import BackendUnavailable
from inference.local.prompts import Prompts

# A BERT's window without its two special tokens, which fits most models that servers run.
USUAL_TOKENS = 510


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """What is known of a model without asking its server."""

    dimensions: int
    max_tokens: int  # special tokens not counted
    prompts: Prompts = field(default_factory=Prompts)


def described(
    model: str,
    known: RemoteModel | None,
    *,
    dimensions: int | None,
    max_tokens: int | None,
    document_prompt: str | None,
    query_prompt: str | None,
) -> RemoteModel:
    """`known` with what the options say instead. Raises BackendUnavailable for want of a length."""
    known_dimensions = known.dimensions if known else None
    prompts = known.prompts if known else Prompts()
    if dimensions is not None and dimensions < 1:
        raise BackendUnavailable(f"OPTIONS['dimensions'] is {dimensions}: it must be above 0.")
    if not (length := dimensions or known_dimensions):
        raise BackendUnavailable(
            f"the length of the vectors of {model!r} is not known here: set OPTIONS['dimensions']"
            " to what its card or its server says."
        )
    return RemoteModel(
        dimensions=length,
        max_tokens=max_tokens or (known.max_tokens if known else USUAL_TOKENS),
        prompts=Prompts(
            document=prompts.document if document_prompt is None else document_prompt,
            query=prompts.query if query_prompt is None else query_prompt,
        ),
    )


def dimensions_field(
    known: RemoteModel | None, dimensions: int | None, send: bool | None
) -> dict[str, int]:
    """The request's field `dimensions`, which shortens vectors, or nothing.

    Many servers refuse a field they do not know. So it is sent only for known models, and where it
    makes a difference, unless `send` decides.
    """
    if send is None:
        send = known is not None and dimensions not in {None, known.dimensions}
    length = dimensions or (known.dimensions if known else None)
    return {"dimensions": length} if send and length else {}
