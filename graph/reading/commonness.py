"""How much vertices have to do with others: what is related to everything tells of nothing."""

from collections.abc import Sequence

from graph.reading.statements import piece, rows
from graph.reading.steps import degrees
from graph.reading.vertices import Ref
from graph.scopes import Sight

#: Counted no further, by each kind of relation.
MOST = 20
#: The same where every row must be looked at whether the user may see it.
MOST_RESTRICTED = 10


def commonness(seen: Sight, vertices: Sequence[Ref]) -> dict[Ref, int]:
    """How many relations each has, bounded. Documents and passages are as common as any.

    Where nothing is kept from anybody rows are counted in their indexes, without a look at them.
    """
    if seen.restricted and _keeps_secrets(seen):
        return degrees(seen, vertices, most=MOST_RESTRICTED)
    nodes = [ref.pk for ref in vertices if ref.kind == "node"]
    given = seen.parameters | {"nodes": nodes, "most": MOST}
    counted = {Ref("node", pk): count for pk, count in rows(piece("commonness"), given)}
    return {ref: counted.get(ref, MOST) for ref in vertices}


def _keeps_secrets(seen: Sight) -> bool:
    ((keeps,),) = rows(piece("keeps_secrets"), seen.parameters)
    return bool(keeps)
