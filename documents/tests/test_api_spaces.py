"""Embedding spaces over the API."""

import pytest
from rest_framework.test import APIClient

from accounts.models import Change, Membership
from documents.models import EmbeddingSpace, Reembedding
from documents.tests.factories import CollectionFactory, UserFactory

pytestmark = pytest.mark.django_db
SPACES = "/api/v1/spaces/"


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
