"""Embedding spaces: what can be indexed and how it is found, the command, the API, and bulk loading
without the index."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from accounts.models import Change, Membership
from common.errors import Conflict, InvalidInput
from documents import services
from documents.embedders import embedder_for
from documents.ingestion.sources import text_source
from documents.ingestion.vector_indexes import build_index, index_states
from documents.models import EmbeddingSpace, IngestionRun, Reembedding
from documents.services import build_space_index, ingest_inline
from documents.spaces import INDEX_TYPES, MAX_DIMENSIONS, PRECISIONS, checked_index
from documents.tests.factories import ChunkFactory, CollectionFactory, UserFactory
from inference.interfaces import DimensionMismatch
from tests.kit import hashing, use_models

HASHING = "inference.backends.hashing.HashingEmbedder"
DIMENSIONS = {"default": 384, "wide": 768, "huge": 3072, "vast": 5000}


@pytest.fixture(autouse=True)
def _embedders(settings: Any) -> None:
    use_models(
        settings,
        embedder={alias: hashing(dimensions) for alias, dimensions in DIMENSIONS.items()},
        reranker={},
    )


@given(
    dimensions=st.integers(1, 100_000),
    index_type=st.sampled_from(INDEX_TYPES),
    precision=st.sampled_from([None, *PRECISIONS]),
)
def test_no_index_is_chosen_that_cannot_be_built(
    dimensions: int, index_type: str, precision: str | None
) -> None:
    asked: dict[str, Any] = {
        "dimensions": dimensions,
        "index_type": index_type,
        "precision": precision,
    }
    if index_type != "none" and precision and dimensions > MAX_DIMENSIONS[precision]:
        with pytest.raises(InvalidInput, match="Use "):
            checked_index(**asked, options={})
        return
    kind, chosen, remarks = checked_index(**asked, options={})
    assert kind == "none" or dimensions <= MAX_DIMENSIONS[chosen]
    assert precision in (None, chosen)
    is_binary = index_type != "none" and precision is None and chosen == "binary"
    assert bool(remarks) == (kind != index_type or is_binary)


@pytest.mark.parametrize(
    ("index_type", "options"),
    [
        ("hnsw", {"lists": 3}),
        ("ivfflat", {"m": 4}),
        ("hnsw", {"m": 0}),
        ("hnsw", {"m": "16"}),
        ("hnsw", {"ef_search": 1001}),
    ],
)
def test_options_that_mean_nothing_to_an_index_are_refused(
    index_type: str, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        checked_index(dimensions=8, index_type=index_type, precision=None, options=options)


def call(*words: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("spaces", *words, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.mark.django_db
def test_more_dimensions_than_an_index_takes_move_to_the_next_precision_with_a_word() -> None:
    out, err = call("add", "huge", "--embedder", "huge")
    space = services.get_space("huge")
    assert (space.precision, space.dimensions, err) == ("half", 3072, "")
    assert "reembed --to huge" in out
    assert "binary precision" in call("add", "vast", "--embedder", "vast")[1]
    assert services.get_space("vast").precision == "binary"


@pytest.mark.django_db
def test_a_precision_that_was_asked_for_and_cannot_be_is_refused() -> None:
    with pytest.raises(CommandError, match=r"at most 2,000 dimensions, not 3,072.*half"):
        call("add", "huge", "--embedder", "huge", "--precision", "full")
    assert not EmbeddingSpace.objects.filter(name="huge").exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["add", "Not a name"], "lower-case"),
        (["add", "minilm-384"], "already"),
        (["add", "new", "--embedder", "nobody"], "no embedder is called 'nobody'"),
        (["add", "new", "--lists", "7"], "has no option “lists”"),
        (["drop", "minilm-384"], "in use"),
        (["drop", "nothing"], "There are: minilm-384"),
        (["stats", "nothing"], "There are: minilm-384"),
    ],
)
def test_what_cannot_be_is_refused_by_name(words: list[str], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        call(*words)


@pytest.mark.django_db
def test_spaces_are_listed_with_what_they_hold() -> None:
    call("add", "wide", "--embedder", "wide", "--index", "ivfflat")
    text, _ = call("list")
    assert "minilm-384 *" in text
    assert "ivfflat half, not built" in text
    old, new = json.loads(call("list", "--json")[0])
    assert (old["index_state"], old["default"], old["chunks"]) == ("valid", True, 0)
    assert (new["dimensions"], new["index_state"], new["state"]) == (768, "none", "live")
    assert "768" in call("stats", "wide")[0]


@pytest.mark.django_db(transaction=True)
def test_an_unused_space_is_dropped_with_its_index() -> None:
    call("add", "wide", "--embedder", "wide")
    space = services.get_space("wide")
    assert call("build-index", "wide")[0] == "built\n"
    assert "one already" in call("build-index", "wide")[0]
    assert call("build-index", "wide", "--rebuild")[0] == "built\n"
    assert index_states([space])[space.pk].valid
    call("drop", "wide")
    assert not EmbeddingSpace.objects.filter(name="wide").exists()
    assert index_states([space]) == {}


@pytest.mark.django_db(transaction=True)
def test_an_index_whose_building_broke_off_is_not_trusted_and_is_built_anew() -> None:
    space = EmbeddingSpace.objects.get()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass",
            [space.sql.index_name],
        )
    assert "broken" in call("list")[0]
    assert build_index(space)
    assert index_states([space])[space.pk].valid


@pytest.mark.django_db
def test_a_site_without_documents_follows_the_configured_model(settings: Any) -> None:
    use_models(settings, embedder=hashing(96), reranker={})
    space = services.default_space()
    assert (space.dimensions, space.is_default, space.state) == (96, True, "live")
    assert services.default_space() == space
    old = EmbeddingSpace.objects.get(name="minilm-384")
    assert old.state == "retired"
    assert index_states([old, space]).keys() == {space.pk}


@pytest.mark.django_db
def test_a_site_with_documents_follows_it_where_the_former_model_has_another_alias(
    settings: Any,
) -> None:
    chunk = ChunkFactory.create()
    former = chunk.space
    another = {"BACKEND": HASHING, "OPTIONS": {"dimensions": 96}}
    use_models(settings, embedder=another, reranker={})
    assert services.default_space() == former  # the model of its documents is gone: it is said
    with pytest.raises(DimensionMismatch):
        embedder_for(former)

    known = {"BACKEND": HASHING, "OPTIONS": {"dimensions": former.dimensions}}
    use_models(settings, embedder={"default": another, "former": known}, reranker={})
    assert embedder_for(former).model_name == former.model_name
    space = services.default_space()
    assert (space.model_name, space.is_default) == ("hashing-96", True)
    former.refresh_from_db()
    assert (former.state, former.is_default) == ("live", False)
    chunk.document.collection.refresh_from_db()
    assert chunk.document.collection.space == former
    assert services.live_embedders() == ["default", "former"]


@pytest.mark.django_db
def test_what_searches_look_at_is_changed_and_left_to_the_index_again() -> None:
    name = EmbeddingSpace.objects.get(is_default=True).name
    assert call("set", name, "--ef-search", "300")[0] == "ef_search: 300\n"
    assert services.get_space(name).index_options["ef_search"] == 300
    assert services.get_space(name).index_options["m"] == 16
    assert call("set", name, "--ef-search", "auto")[0] == "ef_search: automatic\n"
    assert "ef_search" not in services.get_space(name).index_options


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--ef-search", "1001"], "ef_search must be a whole number from 1 to 1,000."),
        (["--probes", "5"], "An index of type hnsw has no option “probes”."),
        (["--probes", "auto"], "An index of type hnsw has no option “probes”."),
        ([], "Say --ef-search or --probes"),
    ],
)
def test_what_an_index_does_not_take_is_refused(words: list[str], why: str) -> None:
    name = EmbeddingSpace.objects.get(is_default=True).name
    with pytest.raises(CommandError) as refusal:
        call("set", name, *words)
    assert why in str(refusal.value)
    assert "ef_search" not in services.get_space(name).index_options


@pytest.mark.django_db
def test_a_default_space_whose_model_is_configured_looks_for_no_chunk(
    django_assert_num_queries: Any,
) -> None:
    with django_assert_num_queries(2):
        assert services.default_space().name == "minilm-384"


SPACES = "/api/v1/spaces/"


@pytest.mark.django_db
def test_a_member_sees_the_spaces_and_what_of_theirs_is_in_them(
    api: APIClient, alice: Membership
) -> None:
    space = EmbeddingSpace.objects.get(is_default=True)
    CollectionFactory(workspace=alice.workspace, slug="notes", space=space)
    CollectionFactory(slug="of-others", space=space)

    (shown,) = api.get(SPACES).json()["results"]
    assert shown["name"] == space.name
    assert (shown["dimensions"], shown["metric"], shown["is_default"]) == (384, "cosine", True)
    assert shown["collections"] == ["notes"]
    assert api.get(shown["url"]).json() == shown


@pytest.mark.django_db
def test_moves_of_others_are_not_shown(api: APIClient, alice: Membership) -> None:
    space = EmbeddingSpace.objects.get(is_default=True)
    notes = CollectionFactory(workspace=alice.workspace, slug="notes")
    moves = {"target": space, "total": 10, "done": 4}
    Reembedding.objects.create(collection=notes, **moves)
    Reembedding.objects.create(collection=CollectionFactory(slug="of-others"), **moves)
    Reembedding.objects.create(collection=None, **moves)

    shown = api.get(f"{SPACES}{space.name}/").json()["moves"]
    assert [(each["collection"], each["share"], each["state"]) for each in shown] == [
        (None, 0.4, "running"),
        ("notes", 0.4, "running"),
    ]


@pytest.mark.django_db
def test_staff_change_how_searches_use_an_index_and_members_do_not(
    api: APIClient, alice: Membership
) -> None:
    space = EmbeddingSpace.objects.get(is_default=True)
    address = f"{SPACES}{space.name}/"
    assert api.patch(address, {"ef_search": 300}).status_code == 403

    staff = UserFactory(is_superuser=True)
    api.force_login(staff)
    changed = api.patch(address, {"ef_search": 300})
    assert (changed.status_code, changed.json()["index_options"]["ef_search"]) == (200, 300)
    refused = api.patch(address, {"ef_search": 2000}).json()["errors"][0]
    assert (refused["attr"], "1 to 1,000" in refused["detail"]) == ("ef_search", True)
    assert api.patch(address, {"probes": 3}).status_code == 400
    assert api.patch(address, {"m": 3}).status_code == 400
    change = Change.objects.get(kind="space")
    assert (change.user, change.details["fields"]) == (staff, ["index_options"])
    changed = api.patch(address, {"ef_search": None})
    assert "ef_search" not in changed.json()["index_options"]


SOURCES = [text_source(str(number), f"Passage {number} of many.") for number in range(20)]


@pytest.mark.django_db(transaction=True)
def test_the_index_is_away_while_loading_and_valid_afterwards() -> None:
    collection = CollectionFactory()
    build_space_index(space=collection.space)
    seen: list[object] = []

    def look(run: IngestionRun) -> None:
        seen.append(index_states([collection.space]).get(collection.space_id))

    run = ingest_inline(
        collection=collection, sources=SOURCES, suspend_index=True, on_progress=look
    )
    assert run.ready == len(SOURCES)
    assert set(seen) == {None}
    assert index_states([collection.space])[collection.space_id].valid


@pytest.mark.django_db(transaction=True)
def test_the_index_comes_back_when_loading_fails() -> None:
    collection = CollectionFactory()
    build_space_index(space=collection.space)

    def fail(run: IngestionRun) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest_inline(collection=collection, sources=SOURCES, suspend_index=True, on_progress=fail)
    assert index_states([collection.space])[collection.space_id].valid


@pytest.mark.django_db(transaction=True)
def test_the_index_of_a_space_that_others_search_stays() -> None:
    collection = CollectionFactory()
    other = CollectionFactory(workspace=collection.workspace, slug="other", space=collection.space)
    build_space_index(space=collection.space)
    ingest_inline(collection=other, sources=SOURCES)
    with pytest.raises(Conflict, match="spaces add"):
        ingest_inline(collection=collection, sources=SOURCES, suspend_index=True)
    assert index_states([collection.space])[collection.space_id].valid
    assert not collection.runs.exists()
