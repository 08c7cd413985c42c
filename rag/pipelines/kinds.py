"""Node types: which fields each takes, and whether it can do without a chat model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rag.pipelines.limits import DEFAULT_ROUNDS

#: Whether a type asks a chat model: never, where there is one, or always.
Asks = Literal["never", "if there is one", "always"]


@dataclass(frozen=True, slots=True)
class Option:
    """A field that only some types have."""

    name: str
    kind: Literal["text", "number", "integer", "choice", "condition", "workers"]
    meaning: str
    default: Any = None
    low: float = 0
    high: float = 1
    choices: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A node type. `turns` is the default of `max_iter`, None where it takes none."""

    name: str
    meaning: str
    asks: Asks
    prompt: bool = True
    tools: bool = False
    turns: int | None = None
    options: tuple[Option, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of all that such a node may say of itself."""
        named = {"prompt": self.prompt, "model": self.asks != "never", "tools": self.tools}
        taken = [name for name, has in named.items() if has]
        rounds = ["max_iter"] if self.turns is not None else []
        return ("id", "type", *taken, *rounds, "timeout", *(each.name for each in self.options))


_MOST_TASKS = Option("max_tasks", "integer", "Sub-tasks, at most.", 5, 1, 20)

_KINDS = (
    Kind("llm", "Asks the chat model once; its words are the output.", "if there is one"),
    Kind(
        "worker",
        "Lets the chat model call tools until it answers, for `max_iter` turns at most; one last"
        " turn without tools then answers.",
        "if there is one",
        tools=True,
        turns=10,
    ),
    Kind("router", "Lets the chat model choose one of its edges by name.", "always"),
    Kind(
        "gate",
        "Lets pass what meets its condition.",
        "never",
        prompt=False,
        options=(Option("condition", "condition", "What must hold of the input.", required=True),),
    ),
    Kind(
        "aggregator",
        "Joins what its parents hand over.",
        "never",
        prompt=False,
        options=(Option("separator", "text", "Between two of them.", "\n\n", high=200),),
    ),
    Kind(
        "orchestrator",
        "Plans sub-tasks and has them done at the same time, none knowing of the others.",
        "always",
        tools=True,
        turns=5,
        options=(_MOST_TASKS,),
    ),
    Kind(
        "evaluator",
        "Scores what it is given from 0 to 1; below `threshold` its loop edge leads back.",
        "always",
        turns=DEFAULT_ROUNDS,
        options=(
            Option("threshold", "number", "The least score that will do.", 0.7),
            Option(
                "on_exhausted",
                "choice",
                "When all rounds are used up: go on with the best, or fail.",
                "best",
                choices=("best", "fail"),
            ),
            Option(
                "syntax",
                "choice",
                "Whether code blocks that cannot be parsed score 0, and the model is not asked.",
                "ignore",
                choices=("ignore", "check"),
            ),
        ),
    ),
    Kind(
        "synthesizer",
        "Makes one answer with citations of what its parents hand over.",
        "if there is one",
    ),
    Kind(
        "coordinator",
        "Assigns steps to its workers and has them done one after the other, each knowing what"
        " came of those before.",
        "always",
        turns=5,
        options=(
            Option("workers", "workers", "Who may be given a step.", required=True),
            _MOST_TASKS,
        ),
    ),
    Kind(
        "sql",
        "Answers from a catalogued database: writes a query and checks it against the catalogue.",
        "always",
        turns=2,
        options=(
            Option("collection", "text", "Slug of the catalogue. Default: any.", "", high=63),
            Option("dialect", "text", "Of the SQL. Default: the catalogue's.", "", high=30),
        ),
    ),
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _KINDS}
