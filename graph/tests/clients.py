"""People who use the API of the graph."""

from typing import Any

from rest_framework.test import APIClient

from accounts.models import Membership, Role
from documents.tests.factories import MembershipFactory

GRAPH = "/api/v1/graph/"
NODES = f"{GRAPH}nodes/"
EDGES = f"{GRAPH}edges/"
BULK = f"{GRAPH}bulk/"


def colleague(member: Membership, *, role: Role) -> Membership:
    """Another member of the same workspace."""
    return MembershipFactory(workspace=member.workspace, role=role)


def put_node(client: APIClient, id: str, **given: Any) -> Any:
    """Make or change a node; what became of it."""
    return client.put(NODES, {"id": id, **given})


def put_edge(client: APIClient, source: str, rel: str, target: str, **given: Any) -> Any:
    """Make or change an edge, and its ends where they are not there; what became of it."""
    body = {"source": source, "rel": rel, "target": target, "strict": False, **given}
    return client.put(EDGES, body)


def asked(client: APIClient, address: str, **parameters: Any) -> Any:
    """What a GET of the graph answers, which must be well."""
    answer = client.get(f"{GRAPH}{address}/", parameters)
    assert answer.status_code == 200, answer.content
    return answer.json()


def ids(nodes: Any) -> list[str]:
    """Of nodes, or of what has one."""
    return [node["node"]["id"] if "node" in node else node["id"] for node in nodes]
