"""What is like a document or a passage: near, permitted, and never the thing itself."""

import pytest

from accounts.models import Membership, Role
from common.errors import InvalidInput
from documents import lexical_index
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory
from search.query_options import scope_for
from search.results import Scope
from search.similar import similar_documents, similar_passages, top_keywords

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXTS = {
    "otter": "The otter hunts trout in the river. Its fur keeps the cold water out.",
    "beaver": "The beaver dams the river, and its fur keeps the cold water out.",
    "trout": "Trout live in the cold water of a river, where the otter hunts them.",
    "bread": "Bread is baked of flour, salt and yeast in a hot oven.",
    "cake": "Cake is baked of flour, butter and sugar in a hot oven.",
}


@pytest.fixture
def collection(alice: Membership) -> Collection:
    collection = CollectionFactory(workspace=alice.workspace, default_language="en")
    fill(collection, TEXTS)
    return collection


@pytest.fixture
def scope(alice: Membership, collection: Collection) -> Scope:
    return scope_for(user=alice.user, workspace=alice.workspace)


def fill(collection: Collection, texts: dict[str, str], policy: str = "overwrite") -> None:
    sources = [text_source(key, text) for key, text in texts.items()]
    ingest_inline(collection=collection, sources=sources, policy=policy)
    lexical_index.index_pending(collection.pk)


def document(collection: Collection, key: str) -> Document:
    return Document.objects.get(collection=collection, key=key, is_current=True)


def like(collection: Collection, key: str, scope: Scope, k: int = 10) -> list[str]:
    return [
        each.document_key for each in similar_documents(document(collection, key), scope=scope, k=k)
    ]


def test_the_nearest_come_first_and_never_the_document_itself(
    collection: Collection, scope: Scope
) -> None:
    assert set(like(collection, "otter", scope, k=2)) == {"beaver", "trout"}
    assert like(collection, "cake", scope)[0] == "bread"
    for key in TEXTS:
        assert key not in like(collection, key, scope)


def test_each_tells_how_like_it_is(collection: Collection, scope: Scope) -> None:
    best, *others = similar_documents(document(collection, "otter"), scope=scope)
    assert best.relevance == 1
    assert best.similarity is not None
    assert 0.2 < best.similarity < 1
    assert best.text == TEXTS[best.document_key]
    assert [each.relevance for each in others] == sorted(
        (each.relevance for each in others), reverse=True
    )


def test_what_has_nothing_in_common_is_not_listed(collection: Collection, scope: Scope) -> None:
    fill(collection, {"greeting": "Bonjour à tous."})
    assert like(collection, "greeting", scope) == []


def test_versions_and_copies_are_the_same_thing(collection: Collection, scope: Scope) -> None:
    fill(collection, {"otter": TEXTS["otter"] + " It sleeps by day."}, policy="new_version")
    fill(collection, {"copy of trout": TEXTS["trout"]})
    everything = Scope(scope.workspace_id, scope.collection_ids, scope.principals, versions="all")
    assert "otter" not in like(collection, "otter", everything)
    assert "copy of trout" not in like(collection, "trout", everything)
    listed = like(collection, "beaver", scope)
    assert len({"trout", "copy of trout"} & set(listed)) == 1


def test_what_may_not_be_seen_is_not_told_of(alice: Membership, collection: Collection) -> None:
    fill(collection, {"secret": "The otter of the river has cold fur."})
    Document.objects.filter(key="secret").update(access=["user:nobody"])
    Chunk.objects.filter(document__key="secret").update(access=["user:nobody"])
    elsewhere = CollectionFactory(default_language="en")
    fill(elsewhere, {"foreign": "The otter hunts trout in another river."})
    charlie = MembershipFactory(workspace=alice.workspace, role=Role.VIEWER)
    for member in (alice, charlie):
        scope = scope_for(user=member.user, workspace=alice.workspace)
        assert not {"secret", "foreign"} & set(like(collection, "otter", scope))
        chunk = Chunk.objects.get(document=document(collection, "otter"))
        passages = similar_passages(chunk, scope=scope)
        assert not {"secret", "foreign"} & {each.document_key for each in passages}


def test_passages_like_one_are_of_other_documents_and_other_texts(
    collection: Collection, scope: Scope
) -> None:
    fill(collection, {"copy": TEXTS["otter"], "more": TEXTS["trout"] + " Trout eat flies."})
    chunk = Chunk.objects.get(document=document(collection, "otter"))
    keys = [each.document_key for each in similar_passages(chunk, scope=scope, k=4)]
    assert set(keys[:3]) == {"beaver", "trout", "more"}
    assert "copy" not in keys


def test_without_a_vector_words_are_enough(collection: Collection, scope: Scope) -> None:
    Chunk.objects.filter(document__key="otter").update(embedding=None)
    assert set(like(collection, "otter", scope)) >= {"beaver", "trout"}
    chunk = Chunk.objects.get(document=document(collection, "otter"))
    passages = similar_passages(chunk, scope=scope)
    assert {each.document_key for each in passages} >= {"beaver", "trout"}


def test_a_document_without_text_is_like_nothing(collection: Collection, scope: Scope) -> None:
    Chunk.objects.filter(document__key="otter").delete()
    assert like(collection, "otter", scope) == []


@pytest.mark.parametrize("k", [0, 51])
def test_a_number_that_cannot_be_is_refused(collection: Collection, scope: Scope, k: int) -> None:
    with pytest.raises(InvalidInput, match="50"):
        like(collection, "otter", scope, k=k)


def test_the_words_that_tell_are_those_that_few_others_have(collection: Collection) -> None:
    words = top_keywords(document(collection, "otter").pk)
    assert {"otter", "trout", "fur"} <= set(words)
    assert not {"the", "flour", "hunts"} <= set(words)
    assert "the" not in words
