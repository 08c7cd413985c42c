"""What may stand in the place of a template's names."""

from mcp.types import CompleteRequestParams, CompleteResult, Completion, ResourceTemplateReference

from rag.context import RagContext
from rag.mcp.addresses import COLLECTION_TEMPLATE, DOCUMENT_TEMPLATE
from rag.mcp.resources import visible_collections, visible_documents

#: The protocol allows no more.
MOST = 100


def complete(context: RagContext, params: CompleteRequestParams) -> CompleteResult:
    """Slugs of collections, or keys of documents of the collection that was chosen, which begin
    with what is there."""
    context.require("read")
    template = params.ref.uri if isinstance(params.ref, ResourceTemplateReference) else ""
    name, begun = params.argument.name, params.argument.value
    if "\x00" in begun or template not in {COLLECTION_TEMPLATE, DOCUMENT_TEMPLATE}:
        return _completion([])
    if name == "collection":
        rows = visible_collections(context).filter(slug__startswith=begun)
        return _completion(list(rows.values_list("slug", flat=True)[: MOST + 1]))
    if name == "key" and template == DOCUMENT_TEMPLATE:
        chosen = _chosen(params)
        rows = visible_documents(context).current().filter(key__startswith=begun)
        if chosen:
            rows = rows.filter(collection__slug=chosen.replace("\x00", ""))
        keys = rows.order_by("key").values_list("key", flat=True).distinct()
        return _completion(list(keys[: MOST + 1]))
    return _completion([])


def _chosen(params: CompleteRequestParams) -> str:
    arguments = params.context.arguments if params.context else None
    return (arguments or {}).get("collection", "")


def _completion(values: list[str]) -> CompleteResult:
    return CompleteResult(completion=Completion(values=values[:MOST], has_more=len(values) > MOST))
