"""Where and how a model is to run, as OPTIONS say it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """What is None is chosen for this machine when the model is loaded."""

    device: str | None = None  # mps, cuda, cuda:1, cpu
    dtype: str | None = None
    batch_tokens: int | None = None  # of one forward pass, padding counted in
    threads: int | None = None  # torch's, for the whole process
