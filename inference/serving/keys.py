"""Under which names of the broker a question, its answer and a worker are found."""

from dataclasses import dataclass

# The number changes with what is stored there, so that two versions never misread each other.
PREFIX = "ragsite:inference:1"

#: A worker that says nothing for so long is taken for dead.
ALIVE_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Service:
    """What is asked for. An embedder goes by its model, so that no other one answers instead."""

    name: str

    @property
    def alive(self) -> str:
        """Set of the workers that serve it; gone when the last one is."""
        return f"{PREFIX}:alive:{self.name}"

    @property
    def tokenizer(self) -> str:
        return f"{PREFIX}:tokenizer:{self.name}"

    def queue(self, kind: str) -> str:
        """List of the ids of questions of one kind that wait."""
        return f"{PREFIX}:queue:{kind}:{self.name}"


def embedder_service(model_name: str, dimensions: int) -> Service:
    return Service(f"embedder:{model_name}:{dimensions}")


def reranker_service(alias: str) -> Service:
    return Service(f"reranker:{alias}")


def description(alias: str) -> str:
    """What the workers' embedder of that alias is."""
    return f"{PREFIX}:embedder:{alias}"


def request(request_id: str) -> str:
    return f"{PREFIX}:request:{request_id}"


def reply(request_id: str) -> str:
    return f"{PREFIX}:reply:{request_id}"


def wake_up(member: str) -> str:
    """List by which a server that is to end wakes its own threads."""
    return f"{PREFIX}:wake-up:{member}"
