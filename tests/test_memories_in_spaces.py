"""The default embedding space changes: memories follow, found all the while, and none is lost."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from common.errors import Conflict
from documents import services as documents
from documents.ingestion.sources import text_source
from documents.models import EmbeddingSpace
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory
from memory.embedding import embed_waiting
from memory.models import Context, Fact
from memory.scopes import UserScope
from memory.services import rank_facts, search_memory, set_fact
from memory.tests.factories import NOW, make_scope, remember
from tests.kit import hashing, use_models

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("media_root"),
]

HASHING = "inference.backends.hashing.HashingEmbedder"
SAID = ("My sister Clara plays the cello", "The train to Basel was late", "Oat milk, please")


@pytest.fixture(autouse=True)
def _embedders(settings: Any) -> None:
    use_models(
        settings,
        embedder={
            alias: hashing(dimensions)
            for alias, dimensions in {"default": 384, "wide": 768}.items()
        },
        reranker={},
        chat={},
    )


@pytest.fixture
def scope() -> UserScope:
    """A memory in the old space, beside a document."""
    ingest_inline(collection=CollectionFactory(), sources=[text_source("one", "Some text.")])
    scope = make_scope()
    for said in SAID:
        remember(scope, said)
    set_fact(scope=scope, key="sister", value="Clara")
    assert embed_waiting() == 4
    return scope


def move_documents() -> EmbeddingSpace:
    """Everything that documents know of goes to a new default space."""
    space, _ = documents.add_space(name="wide", embedder="wide")
    documents.reembed_inline(target=space)
    return space


def found(scope: UserScope, question: str, **options: Any) -> list[str]:
    result = search_memory(scope=scope, query=question, now=NOW, threshold=0, **options)
    assert result.degraded == ()
    return [hit.context.user_message for hit in result.hits]


def test_memories_are_found_while_they_move_and_all_of_them_move(scope: UserScope) -> None:
    wide = move_documents()
    assert not Context.objects.filter(space=wide).exists()
    assert found(scope, "Who plays the cello?")[0] == SAID[0]
    assert found(scope, "sister, cello", mode="vector")[0] == SAID[0]

    first = Context.objects.of(scope).order_by("pk")[0]
    assert embed_waiting(contexts=[first.pk]) == 1
    assert Context.objects.filter(space=wide).count() == 1
    for question, said in (("Clara, cello", SAID[0]), ("the late train", SAID[1])):
        assert found(scope, question)[0] == said
        assert sorted(found(scope, question, mode="vector")) == sorted(SAID)

    assert embed_waiting() == 3
    assert Context.objects.filter(space=wide).count() == len(SAID)
    assert Fact.objects.get().space == wide
    assert found(scope, "the late train", mode="vector")[0] == SAID[1]
    assert [fact.value for fact, _ in rank_facts(scope=scope, query="sister", limit=1)] == ["Clara"]


def test_a_new_memory_goes_into_the_new_space_at_once(scope: UserScope) -> None:
    wide = move_documents()
    pk = remember(scope, "I play the drums")
    embed_waiting(contexts=[pk])
    assert Context.objects.get(pk=pk).space == wide


def test_a_space_is_not_dropped_while_memories_are_in_it(scope: UserScope, capsys: Any) -> None:
    move_documents()
    old = documents.get_space("minilm-384")

    with pytest.raises(Conflict, match=r"vectors of contexts, facts.*memory embed"):
        documents.drop_space(space=old)
    with pytest.raises(CommandError) as refused:
        call_command("spaces", "drop", "minilm-384")
    assert refused.value.returncode == 2
    assert EmbeddingSpace.objects.filter(pk=old.pk).exists()

    call_command("memory", "embed")
    documents.drop_space(space=old)
    assert not EmbeddingSpace.objects.filter(name="minilm-384").exists()
    assert sorted(found(scope, "train", mode="vector")) == sorted(SAID)


def test_texts_that_the_new_model_refuses_stay_where_they_are(
    scope: UserScope, settings: Any
) -> None:
    move_documents()
    stays = Context.objects.of(scope).order_by("pk")[0]
    Context.objects.filter(pk=stays.pk).update(embed_attempts=5)

    assert embed_waiting() == 3
    stays.refresh_from_db()
    assert stays.space is not None
    assert stays.space.name == "minilm-384"
    assert found(scope, "Who plays the cello?")[0] == SAID[0]
    assert sorted(found(scope, "train", mode="vector")) == sorted(SAID)
