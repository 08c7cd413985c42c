"""What each type of node does."""

from collections.abc import Callable, Mapping

from rag.pipelines.engine import NodeCall, NodeResult
from rag.pipelines.kit import Kit
from rag.pipelines.nodes.deciding import aggregator, evaluator, gate, router
from rag.pipelines.nodes.planning import coordinator, orchestrator
from rag.pipelines.nodes.working import worker
from rag.pipelines.nodes.writing import llm, synthesizer


def sql(call: NodeCall, kit: Kit) -> NodeResult:
    """See `rag.pipelines.nodes.querying`."""
    from rag.pipelines.nodes.querying import query  # noqa: PLC0415 (sqlglot takes a moment to load)

    return query(call, kit)


NODES: Mapping[str, Callable[[NodeCall, Kit], NodeResult]] = {
    "llm": llm,
    "worker": worker,
    "router": router,
    "gate": gate,
    "aggregator": aggregator,
    "orchestrator": orchestrator,
    "evaluator": evaluator,
    "synthesizer": synthesizer,
    "coordinator": coordinator,
    "sql": sql,
}
