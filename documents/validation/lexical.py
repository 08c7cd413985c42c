"""The lexical index against the chunks."""

from collections.abc import Iterable

from documents import lexical_index
from documents.models import Collection
from documents.validation.base import Check, Finding, Scope


def _collections(scope: Scope) -> list[int]:
    collections = Collection.objects.order_by("pk")
    if scope.collection_id is not None:
        collections = collections.filter(pk=scope.collection_id)
    return list(collections.values_list("pk", flat=True))


def _rebuild(scope: Scope) -> int:
    wrong = [pk for pk in _collections(scope) if lexical_index.differences(pk)]
    for pk in wrong:
        lexical_index.rebuild(pk)
    return len(wrong)


LEXICAL_INDEX = Check(
    "lexical_index",
    "collections",
    "have an index of words that disagrees with their texts",
    "`validate --fix` builds it anew, as `reindex` does.",
    _rebuild,
)


class LexicalIndexProbe:
    """Reads the list of all chunks of a collection, and the words of two hundred of them."""

    checks = (LEXICAL_INDEX,)

    def findings(self, scope: Scope) -> Iterable[Finding]:
        wrong = [pk for pk in _collections(scope) if lexical_index.differences(pk)]
        if wrong:
            yield Finding(LEXICAL_INDEX, len(wrong), tuple(wrong[:5]))


PROBES = (LexicalIndexProbe(),)
