"""What a row of `graph_node` stands for."""

from graph.models import Node
from graph.reading.vertices import Ref


def stands_for(node: Node) -> Ref:
    """A document, a passage, or the row itself."""
    if node.document_id is not None:
        return Ref("document", node.document_id)
    return Ref("node", node.pk) if node.chunk_id is None else Ref("chunk", node.chunk_id)
