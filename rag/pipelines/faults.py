"""What is wrong with a definition: every fault with its place, told at once."""

from dataclasses import dataclass

from common.errors import RagsiteError
from rag.pipelines.limits import MAX_FAULTS


@dataclass(frozen=True, slots=True)
class Fault:
    """`path` is the place in the JSON, such as `nodes.2.tools.0`; empty for the whole of it."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class PipelineError(RagsiteError):
    """A definition that cannot be run. `faults` are all that is wrong with it."""

    code = "invalid_pipeline"

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


class Faults:
    """Collects what is wrong, each thing once."""

    def __init__(self) -> None:
        self._found: dict[Fault, None] = {}

    def add(self, path: str, message: str) -> None:
        """Note a fault; beyond the first 50 there is no use in more."""
        if len(self._found) < MAX_FAULTS:
            self._found.setdefault(Fault(path, message))

    def __bool__(self) -> bool:
        return bool(self._found)

    def check(self) -> None:
        """Raise PipelineError if there is any."""
        if self._found:
            raise PipelineError(list(self._found))
