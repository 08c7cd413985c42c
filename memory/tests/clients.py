"""People who use the API of memory."""

from typing import Any

from rest_framework.test import APIClient

from accounts.models import Membership, Role
from documents.tests.factories import MembershipFactory

MEMORY = "/api/v1/memory/"
CONTEXTS = f"{MEMORY}contexts/"
FACTS = f"{MEMORY}facts/"
SEARCH = f"{MEMORY}search/"


def colleague(member: Membership, *, role: Role) -> Membership:
    """Another member of the same workspace."""
    return MembershipFactory(workspace=member.workspace, role=role)


def archive(
    client: APIClient, said: str, answer: str = "", *, address: str = "", **given: Any
) -> Any:
    """Archive a turn; what became of it. `address` is the query string."""
    body = {"user_message": said, "assistant_response": answer, **given}
    return client.post(f"{CONTEXTS}{address}", body)


def put_fact(client: APIClient, key: str, value: str, *, address: str = "", **given: Any) -> Any:
    """Set a fact; what became of it. `address` is the query string."""
    return client.put(f"{FACTS}{key}/{address}", {"value": value, **given})


def said(answer: Any) -> list[str]:
    """What the user said in the contexts of a page, or of a search's hits."""
    shown = answer.json()
    rows = [hit["context"] for hit in shown["hits"]] if "hits" in shown else shown["results"]
    return [row["user_message"] for row in rows]
