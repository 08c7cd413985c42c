"""How much a model server is asked at once, and for how long."""

from dataclasses import asdict, dataclass

from inference.base import BackendUnavailable
from inference.remote.patience import Patience

BATCH_SIZE = 32  # what Text Embeddings Inference takes at most unless told otherwise
BATCH_TOKENS = 16_384
PARALLEL = 4
TIMEOUT = 60.0
ATTEMPTS = 5
QUERY_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Pace:
    """`batch_size` texts or `batch_tokens` a request, `parallel` requests at once.

    In seconds: `timeout` is for one request with documents, of which there are `attempts`, with
    waits of up to a minute between them; a query has `query_timeout` for everything, because a
    person waits for it.
    """

    batch_size: int
    batch_tokens: int
    parallel: int
    timeout: float
    attempts: int
    query_timeout: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value <= 0:
                raise BackendUnavailable(f"OPTIONS[{name!r}] is {value}: it must be above 0.")

    def for_documents(self) -> Patience:
        return Patience(self.attempts, self.timeout, first_wait=1.0, longest_wait=60.0)

    def for_query(self) -> Patience:
        return quick(self.query_timeout, attempts=min(3, self.attempts))


def quick(seconds: float, *, attempts: int = 3) -> Patience:
    """For somebody who waits: a few tries, all within `seconds`."""
    return Patience(attempts, seconds, first_wait=0.2, longest_wait=seconds)
