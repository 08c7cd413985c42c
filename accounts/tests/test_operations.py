"""Operations of the API: what a handler takes, gives, and says in the description."""

from typing import Any

import pytest
from rest_framework import serializers
from rest_framework.test import APIClient

from accounts.api import WorkspaceView, WorkspaceViewSet, operation
from accounts.models import Membership
from common.openapi import AutoSchema
from documents.tests.factories import CollectionFactory


@pytest.fixture
def notes(alice: Membership) -> Any:
    """A collection."""
    return CollectionFactory(workspace=alice.workspace, slug="notes")


class Answer(serializers.Serializer[Any]):
    """A number."""

    number = serializers.IntegerField()


class Numbers(WorkspaceView):
    """Numbers."""

    serializer_class = Answer

    @operation(gives=Answer, status=201, errors=(409,), operation_id="count")
    def post(self) -> Any:
        """Count, and
        tell the number.

        From one
        on.
        """

    @operation()
    def delete(self) -> None:
        """Forget."""


class Forgetting(WorkspaceView):
    """Forgets numbers."""

    @operation(gives=Answer)
    def delete(self) -> dict[str, int]:
        """Forget, and tell how many."""
        return {"number": 2}


class Owls(WorkspaceViewSet):
    """Owls."""

    nouns = ("owl", "owls")


def described(view: Any, method: str, action: str = "") -> AutoSchema:
    """The description of a handler of a view."""
    view.action = action or None
    schema = AutoSchema()
    schema.view, schema.method = view, method
    return schema


def test_the_docstring_of_a_handler_is_its_summary_and_description() -> None:
    schema = described(Numbers(), "POST")
    assert schema.get_summary() == "Count, and tell the number"
    assert schema.get_description() == "From one on."
    assert schema.get_operation_id() == "count"
    assert described(Numbers(), "DELETE").get_description() == "Numbers."


def test_answers_and_errors_are_described_by_status() -> None:
    assert set(described(Numbers(), "POST").get_response_serializers()) == {201, 409}
    assert described(Numbers(), "DELETE").get_response_serializers() == {204: None}
    assert described(Forgetting(), "DELETE").get_response_serializers() == {200: Answer}


def test_lists_and_reads_are_called_after_their_rows() -> None:
    view = Owls()
    assert described(view, "GET", "list").get_summary() == "List owls, newest first"
    assert described(view, "GET", "retrieve").get_summary() == "Read an owl"
    view.ordering = ("-updated_at", "-id")  # type: ignore[misc]
    assert described(view, "GET", "list").get_summary() == "List owls, last changed first"


def test_what_is_done_once_has_no_secret() -> None:
    with pytest.raises(TypeError, match="secret"):
        operation(once=True, shows_secret=True)


@pytest.mark.django_db
@pytest.mark.usefixtures("media_root", "notes")
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("collections", {"name": "Letters"}, 201),
        ("documents", {"collection": "notes", "key": "a", "text": "A note."}, 202),
    ],
)
def test_what_is_made_is_where_location_says(
    path: str, body: dict[str, str], status: int, api: APIClient
) -> None:
    made = api.post(f"/api/v1/{path}/", body)
    assert made.status_code == status
    assert made["Location"] == made.json()["url"]
    assert api.get(made["Location"]).status_code == 200


@pytest.mark.django_db
@pytest.mark.usefixtures("notes")
def test_a_change_leaves_what_is_not_given(api: APIClient) -> None:
    before = api.get("/api/v1/collections/notes/").json()
    changed = api.patch("/api/v1/collections/notes/", {"name": "Letters"}).json()
    same = before.keys() - {"name", "updated_at"}
    assert {name: changed[name] for name in same} == {name: before[name] for name in same}
    assert changed["name"] == "Letters"
