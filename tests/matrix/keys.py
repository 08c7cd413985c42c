"""API keys: none, made just now, some, refused, to be revoked."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page

from accounts.api_keys import revoke_key
from accounts.models import ApiKey
from accounts.tests.keys import make_key
from documents.tests.factories import MembershipFactory
from tests.matrix.states import State, World

LONG = "w" * 100


def _keys(world: World) -> None:
    make_key(world.membership, name=LONG)
    soon = timezone.now() + timedelta(days=3)
    bob = MembershipFactory(workspace=world.workspace)
    make_key(bob, "read", name="of Bob", expires_at=soon)
    revoke_key(key=make_key(world.membership, "memory", name="old")[0])
    ended, _ = make_key(world.membership, "chat", name="ended")
    ApiKey.objects.filter(pk=ended.pk).update(expires_at=timezone.now() - timedelta(days=1))


def _make(page: Page) -> None:
    page.get_by_label("Name").fill("nightly import")
    page.get_by_label("read:").check()
    page.get_by_role("button", name="Create", exact=True).click()


def _make_without_name(page: Page) -> None:
    page.get_by_label("Name").fill(" ")
    page.get_by_role("button", name="Create", exact=True).click()


def _form(page: Page) -> None:
    page.get_by_text("Create a key").click()


STATES = [
    State(
        "refused",
        lambda world: "/keys/",
        ".errorlist",
        act=_make_without_name,
        expected=("status of 400",),
    ),
    State("made", lambda world: "/keys/", "text=is created", act=_make),
    State("some", lambda world: "/keys/", "text=of Bob", prepare=_keys, act=_form),
    State(
        "revoke",
        lambda world: f"/keys/{ApiKey.objects.get(name='of Bob').pk}/revoke/",
        "text=Revoke",
    ),
]
