"""Programs that come with an API key."""

from base64 import b64encode
from collections.abc import Iterable
from datetime import datetime

from rest_framework.test import APIClient

from accounts.api_keys import create_key
from accounts.models import ApiKey, Membership, Scope


def make_key(
    member: Membership,
    *scopes: str,
    name: str = "A program",
    expires_at: datetime | None = None,
    collections: Iterable[int] = (),
) -> tuple[ApiKey, str]:
    """A key of the member's and its secret; without `scopes` it has all."""
    return create_key(
        user=member.user,
        workspace=member.workspace,
        name=name,
        scopes=scopes or Scope.values,
        expires_at=expires_at,
        collections=collections,
    )


def client_with(secret: str) -> APIClient:
    """Shows `secret` with every request."""
    return APIClient(headers={"Authorization": f"Bearer {secret}"})


def basic_header(username: str, password: str) -> dict[str, str]:
    """Headers of a login by name and password."""
    encoded = b64encode(f"{username}:{password}".encode()).decode()
    return {"Authorization": f"Basic {encoded}"}


def client_of_key(member: Membership, *scopes: str) -> APIClient:
    """Shows a new key of the member's."""
    return client_with(make_key(member, *scopes)[1])
