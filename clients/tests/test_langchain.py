"""The site for LangChain: its own standard tests for retrievers and vector stores, and what they
leave open.

The standard tests are run as they are: none is overridden, expected to fail or skipped.
"""

import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

from clients.langchain import RagsiteRetriever, RagsiteVectorStore
from clients.remote_retriever import RemoteRetriever
from common.errors import InvalidInput
from documents.tests.factories import CollectionFactory
from rag.retriever import Retriever
from rag.tests.conftest import ROOT, SiteProcess, commit
from rag.tests.mcp_world import VACATION, World, make_world, secret_of

pytestmark = [pytest.mark.django_db, pytest.mark.nightly]


@pytest.fixture(scope="module")
def world(committed: None) -> World:
    return make_world()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def empty(world: World) -> Retriever:
    """Of a collection of its own, because what async tests write stays."""
    slug = f"store-{uuid4().hex[:8]}"
    commit(lambda: CollectionFactory(workspace=world.alice.workspace, slug=slug))
    return Retriever(world.alice.user, collections=[slug])


@pytest.mark.anyio
class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _with_world(self, world: World) -> None:
        self.world = world

    @property
    def retriever_constructor(self) -> type[RagsiteRetriever]:
        return RagsiteRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"retriever": Retriever(self.world.alice.user, collections=["handbook"])}

    @property
    def retriever_query_example(self) -> str:
        return "the archive of Hamburg"


@pytest.mark.anyio
class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, empty: Retriever) -> VectorStore:
        return RagsiteVectorStore(empty)


@pytest.mark.anyio
class TestVectorStoreWithVectorsOfItsOwn(VectorStoreIntegrationTests):
    """LangChain's embeddings take the place of the collection's model."""

    @pytest.fixture
    def vectorstore(self, empty: Retriever) -> VectorStore:
        return RagsiteVectorStore(empty, embedding=DeterministicFakeEmbedding(size=384))


@pytest.mark.anyio
class TestVectorStoreOverHttp(VectorStoreIntegrationTests):
    """The same for a program elsewhere."""

    @pytest.fixture
    def vectorstore(self, empty: Retriever, site: SiteProcess, world: World) -> VectorStore:
        (slug,) = empty.collections
        secret = secret_of(world.alice)
        return RagsiteVectorStore(RemoteRetriever(site.url, secret, collections=[slug]))


def test_a_passage_tells_where_it_stands_and_its_own_metadata_go_before(world: World) -> None:
    retriever = RagsiteRetriever(retriever=Retriever(world.alice.user), k=1)
    (found,) = retriever.invoke("carry over unused vacation")
    assert (found.id, found.page_content) == ("vacation.md", VACATION)
    assert found.metadata["title"] == "Vacation"
    assert found.metadata["collection"] == "handbook"
    assert (found.metadata["year"], found.metadata["token_count"]) == (2026, 14)
    assert found.metadata["document_key"] == "vacation.md"
    assert (found.metadata["start"], found.metadata["end"]) == (0, len(VACATION))
    assert found.metadata["location"] == ""
    assert found.metadata["chapter"] is None
    store = RagsiteVectorStore(Retriever(world.alice.user, collections=["handbook"]))
    store.add_texts(["Named otherwise."], [{"title": "Mine"}], ids=["named"])
    (found,) = RagsiteRetriever(retriever=Retriever(world.alice.user)).invoke("otherwise", k=1)
    assert found.metadata["title"] == "Mine"


def test_titles_that_a_document_comes_with_are_its_headings(
    empty: Retriever, site: SiteProcess, world: World
) -> None:
    remote = RemoteRetriever(site.url, secret_of(world.alice), collections=list(empty.collections))
    titles = {"chapter_title": "Leave", "section_title": "Carry over", "subsection_title": ["May"]}
    for source, key in ((empty, "here"), (remote, "there")):
        RagsiteVectorStore(source).add_texts([f"Ten days, {key}."], [titles], ids=[key])
        (found,) = RagsiteRetriever(retriever=source, k=1).invoke(key)
        assert found.id == key
        assert found.metadata["chapter"] == "Leave"
        assert found.metadata["section"] == "Carry over"
        assert found.metadata["subsection"] == "May"
        assert found.metadata["heading_path"] == ["Leave", "Carry over", "May"]
        assert -1 <= found.metadata["similarity"] <= 1


def test_reranking_is_asked_for_by_either_name_or_by_the_call(world: World) -> None:
    source = Retriever(world.alice.user, collections=["handbook"])
    for wish in ({"rerank": True}, {"use_reranking": True}):
        with pytest.raises(InvalidInput, match="reranker"):
            RagsiteRetriever(retriever=source, **wish).invoke("vacation")
        with pytest.raises(InvalidInput, match="reranker"):
            RagsiteRetriever(retriever=source).invoke("vacation", **wish)
        demanding = RagsiteRetriever(retriever=source, **wish)
        assert demanding.invoke("unused vacation", rerank=False)[0].id == "vacation.md"


def test_filters_narrow_both(empty: Retriever) -> None:
    store = RagsiteVectorStore.from_texts(
        ["red apples", "green apples"],
        metadatas=[{"colour": "red"}, {"colour": "green"}],
        ids=["red", "green"],
        retriever=empty,
    )
    green = {"colour": "green"}
    assert [found.id for found in store.similarity_search("red apples", filter=green)] == ["green"]
    retriever = RagsiteRetriever(retriever=empty, filter=green)
    assert [found.id for found in retriever.invoke("apples")] == ["green"]
    assert [found.id for found in retriever.invoke("apples", filter="colour = red")] == ["red"]


def test_scores_are_similarities_by_which_a_retriever_may_draw_a_line(empty: Retriever) -> None:
    store = RagsiteVectorStore(empty)
    store.add_documents([Document("apples and pears", id="fruit"), Document("zinc", id="metal")])
    scored = store.similarity_search_with_score("apples and pears", k=2)
    assert [document.id for document, _ in scored] == ["fruit", "metal"]
    assert scored[0][1] > 0.8
    assert scored[1][1] < 0.5
    drawn = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.5}
    )
    assert [document.id for document in drawn.invoke("apples and pears")] == ["fruit"]


def test_a_vector_is_asked_as_it_is(empty: Retriever) -> None:
    embedding = DeterministicFakeEmbedding(size=384)
    store = RagsiteVectorStore.from_texts(
        ["foo", "bar"], embedding, ids=["1", "2"], retriever=empty
    )
    assert store.embeddings is embedding
    nearest = store.similarity_search_by_vector(embedding.embed_query("bar"), k=1)
    assert nearest == [Document("bar", id="2")]


def test_nothing_is_deleted_without_naming_it(empty: Retriever) -> None:
    with pytest.raises(ValueError, match="Name the documents"):
        RagsiteVectorStore(empty).delete()
    with pytest.raises(ValueError, match="2 texts came with ids: 1"):
        RagsiteVectorStore(empty).add_texts(["a", "b"], ids=["1"])


def test_without_langchain_the_error_names_the_cure() -> None:
    script = "import sys; sys.modules['langchain_core'] = None; import clients.langchain"
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "ImportError: clients.langchain needs LangChain" in ended.stderr
    assert "pip install langchain-core" in ended.stderr
