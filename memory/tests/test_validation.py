"""`validate` is silent about what the services keep, and names what is broken by hand."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from documents.models import EmbeddingSpace
from documents.tests.factories import CollectionFactory
from documents.validation import validate
from memory.embedding import embed_waiting
from memory.models import MAX_EMBED_ATTEMPTS, Context, ExtractionItem, Fact
from memory.scopes import UserScope
from memory.services import clear_fact, get_fact, history, set_fact
from memory.tests.factories import NOW, make_scope, remember

pytestmark = pytest.mark.django_db


@pytest.fixture
def scope() -> UserScope:
    """A memory with a history, of somebody beside somebody else."""
    for name in ("bob", "alice"):
        scope = make_scope(name)
        source = Context.objects.get(pk=remember(scope, "I moved to Berlin"))
        for year, city in ((2020, "Paris"), (2023, "Berlin"), (2021, "Rome")):
            set_fact(scope=scope, key="city", value=city, at=NOW.replace(year=year), source=source)
        set_fact(scope=scope, key="pet", value="cat", at=NOW)
        clear_fact(scope=scope, key="pet")
    embed_waiting()
    return scope


def problems() -> dict[str, int]:
    return {finding.check.name: finding.count for finding in validate().findings}


def test_what_the_services_keep_is_clean(scope: UserScope) -> None:
    report = validate()
    assert report.is_clean
    assert {"fact_overlap", "fact_source", "context_without_vector"} < set(report.checks)


def overlap(scope: UserScope) -> None:
    paris = history(scope=scope, key="city")[-1]
    Fact.objects.filter(pk=paris.pk).update(valid_to=NOW.replace(year=2022))


def source_of_another(scope: UserScope) -> None:
    bobs = Context.objects.get(user_id="bob")
    Fact.objects.of(scope).filter(key="pet").update(source=bobs)


def superseded_by_another_key(scope: UserScope) -> None:
    Fact.objects.of(scope).filter(key="pet").update(superseded_by=get_fact(scope=scope, key="city"))


def refused(scope: UserScope) -> None:
    Context.objects.of(scope).update(embedding=None, embed_attempts=MAX_EMBED_ATTEMPTS)


def of_other_dimensions(scope: UserScope) -> None:
    Context.objects.of(scope).update(embedding=[0.5] * 3)


def of_zeros(scope: UserScope) -> None:
    Fact.objects.of(scope).filter(key="pet").update(embedding=[0.0] * 384)


def running(scope: UserScope, **lease: object) -> None:
    ExtractionItem.objects.create(
        workspace_id=scope.workspace_id, user_id="alice", key="c", state="running", **lease
    )


def abandoned(scope: UserScope) -> None:
    running(scope, leased_until=timezone.now() - timedelta(days=1))


@pytest.mark.parametrize(
    ("breakage", "check"),
    [
        (overlap, "fact_overlap"),
        (source_of_another, "fact_source"),
        (superseded_by_another_key, "fact_superseded_by"),
        (refused, "context_without_vector"),
        (of_other_dimensions, "context_vector_dimensions"),
        (of_zeros, "fact_vector_unusable"),
        (running, "extraction_without_lease"),
        (abandoned, "extraction_without_lease"),
    ],
)
def test_what_is_broken_is_named_and_mended(
    scope: UserScope, breakage: Callable[[UserScope], None], check: str
) -> None:
    before = set(Fact.objects.values_list("workspace", "user_id", "key", "value"))
    breakage(scope)

    assert problems() == {check: 1}
    report = validate(fix=True)

    assert report.fixed == {check: 1}
    assert report.is_clean
    assert set(Fact.objects.values_list("workspace", "user_id", "key", "value")) == before
    assert get_fact(scope=scope, key="city").value == "Berlin"  # type: ignore[union-attr]


def test_vectors_are_made_anew_after_mending(scope: UserScope) -> None:
    of_other_dimensions(scope)
    validate(fix=True)
    assert Context.objects.of(scope).unembedded().count() == 1

    assert embed_waiting() == 1
    assert problems() == {}


def test_a_history_is_mended_so_that_each_moment_has_one_value(scope: UserScope) -> None:
    overlap(scope)
    validate(fix=True)

    moments = {year: NOW.replace(year=year, month=7) for year in (2020, 2021, 2023)}
    told = {
        year: [row.value for row in Fact.objects.of(scope).filter(key="city").as_of(moment)]
        for year, moment in moments.items()
    }
    assert told == {2020: ["Paris"], 2021: ["Rome"], 2023: ["Berlin"]}


def test_what_is_held_true_is_never_ended_by_mending(scope: UserScope) -> None:
    """Whether the current value or the later one was meant only a person can say."""
    current = get_fact(scope=scope, key="city")
    assert current is not None
    Fact.objects.filter(pk=current.pk).update(valid_from=NOW.replace(year=2019))

    assert problems() == {"fact_overlap": 2}
    assert not validate(fix=True).is_clean
    assert get_fact(scope=scope, key="city") == current


def test_a_running_conversation_with_a_lease_is_left_alone(scope: UserScope) -> None:
    running(scope, leased_until=timezone.now() + timedelta(seconds=30))
    assert problems() == {}


def test_looking_at_one_collection_looks_at_no_memory(scope: UserScope) -> None:
    refused(scope)
    assert validate(collection_id=CollectionFactory().pk).is_clean


def test_a_vector_of_a_space_that_is_the_default_no_more_is_no_problem(scope: UserScope) -> None:
    former = EmbeddingSpace.objects.create(
        name="former", model_name="x", dimensions=3, metric="cosine", index_type="none"
    )
    Context.objects.of(scope).update(embedding=[0.5] * 3, space=former)
    assert problems() == {}
