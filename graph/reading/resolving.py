"""From ids, as people and programs write them, to vertices."""

from collections.abc import Iterable, Sequence

from graph.addresses import DocumentAddress, PassageAddress, document_addresses, passage_address
from graph.keys import retired_form
from graph.reading.statements import piece, rows
from graph.reading.vertices import Ref, Vertex, load
from graph.scopes import Sight

#: No id is longer: that of a passage names a collection, a document's key and a number.
MAX_ID_CHARACTERS = 1200


def resolve(seen: Sight, ids: Iterable[str], *, props: bool = False) -> dict[str, Vertex]:
    """The vertices that are called so, by what they were asked for as.

    Ids of other workspaces, and of what may not be seen, are absent, like those of nothing.
    The former id of a node that was merged into another finds that one.
    """
    asked = [each for each in dict.fromkeys(ids) if _is_possible(each)]
    found = _documents(seen, asked) | _passages(seen, asked)
    found |= _nodes(seen, [each for each in asked if each not in found])
    vertices = load(seen, found.values(), props=props)
    return {
        each: vertices[found[each]] for each in asked if each in found and found[each] in vertices
    }


def _is_possible(node_id: str) -> bool:
    if len(node_id) > MAX_ID_CHARACTERS or "\0" in node_id:
        return False
    return node_id.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in node_id)


def _documents(seen: Sight, ids: Sequence[str]) -> dict[str, Ref]:
    addresses = {each: possible for each in ids if (possible := document_addresses(each))}
    wanted = sorted({(at.collection, at.key) for each in addresses.values() for at in each})
    if not wanted:
        return {}
    there: dict[DocumentAddress, Ref] = {}
    for slug, key, version, is_current, pk in rows(
        piece("resolve_documents").format(document=seen.listed("document")),
        seen.parameters
        | {"slugs": [slug for slug, _ in wanted], "keys": [key for _, key in wanted]},
    ):
        there[DocumentAddress(slug, key, version)] = Ref("document", pk)
        if is_current:
            there[DocumentAddress(slug, key)] = Ref("document", pk)
    found = {
        each: next((there[at] for at in possible if at in there), None)
        for each, possible in addresses.items()
    }
    return {each: ref for each, ref in found.items() if ref is not None}


def _passages(seen: Sight, ids: Sequence[str]) -> dict[str, Ref]:
    addresses = {each: at for each in ids if (at := passage_address(each)) is not None}
    if not addresses:
        return {}
    wanted = list(addresses.values())
    there = {
        PassageAddress(slug, key, ordinal): Ref("chunk", pk)
        for slug, key, ordinal, pk in rows(
            piece("resolve_passages").format(passage=seen.passage("chunk")),
            seen.parameters
            | {
                "slugs": [at.collection for at in wanted],
                "keys": [at.key for at in wanted],
                "ordinals": [at.ordinal for at in wanted],
            },
        )
    }
    return {each: there[at] for each, at in addresses.items() if at in there}


def _nodes(seen: Sight, ids: Sequence[str]) -> dict[str, Ref]:
    if not ids:
        return {}
    forms = [retired_form(each) for each in ids]
    found = rows(
        piece("resolve_nodes").format(node=seen.node("node")),
        seen.parameters | {"ids": list(ids), "forms": forms},
    )
    return {asked: Ref(kind, pk) for asked, kind, pk in found}
