"""Two workspaces with one of everything, and somebody of every kind. All texts of each hold words
that stand nowhere else, so that whoever reads one of them has read what is another's."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.utils import timezone

from accounts.groups import add_members, create_group
from accounts.models import Membership, User, Workspace
from accounts.tests.keys import make_key
from documents.models import Document, EmbeddingSpace, Reembedding
from documents.tests.factories import (
    CollectionFactory,
    MembershipFactory,
    UserFactory,
    WorkspaceFactory,
)
from tests.access.filling import fill
from tests.access.filling_own import Words

#: The word of workspace A, of its document with an access list, of what is its owner's alone in
#: chats and searches, and of what is remembered of the owner.
SHARED, LISTED, OWN, MEMORY = "kestrelmoor", "ospreyfen", "heronmere", "ibisweir"
#: The word of what people ask, which editors may see without whose it is; and of workspace B.
ASKED, THEIRS = "plovercombe", "wrenholt"
STAFF = ("staff", "looker", "curator", "superuser")


@dataclass(slots=True)
class World:
    """`ids` fill the braces of doors; `open` are those of the document that all members read.
    `sessions` and `secrets` are how an actor comes in."""

    a: Workspace
    ids: dict[str, Any]
    open: dict[str, Any]
    sessions: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)


def make_world(*, directory: Path) -> World:
    """Committed where the caller commits. `directory` is one that may be ingested."""
    owner = MembershipFactory(
        workspace=WorkspaceFactory(slug="alder", name=f"Alder {SHARED}"), user__username="owner"
    )
    a = owner.workspace
    members = {"owner": owner}
    for name, role in (("viewer", "viewer"), ("editor", "editor"), ("unlisted", "editor")):
        user = UserFactory(username=name)
        members[name] = MembershipFactory(workspace=a, role=role, user=user)
    theirs = MembershipFactory(
        workspace=WorkspaceFactory(slug="birch", name=f"Birch {THEIRS}"), user__username="outsider"
    )
    readers = create_group(workspace=a, name="Readers")
    add_members(group=readers, memberships=[members["viewer"]])
    listed = [f"user:{members[name].user_id}" for name in ("owner", "editor")]
    listed.append(readers.principal)
    ids, open_ids = fill(owner, listed, Words(SHARED, LISTED, OWN, MEMORY, ASKED), "notes")
    fill(theirs, [f"user:{theirs.user_id}"], Words(*[THEIRS] * 5), "leaves")
    ids["directory"] = str(directory)
    world = World(a, ids, open_ids)
    people = {"outsider": theirs.user, **{name: each.user for name, each in members.items()}}
    people |= {name: _staff(name) for name in STAFF}
    people["stranger"] = UserFactory(username="stranger")
    ids.update(_site_wide(owner, UserFactory(username="nobody")))
    for name, user in people.items():
        client = Client()
        client.force_login(user)
        world.sessions[name] = client.cookies["sessionid"].value
    _make_keys(world, members, theirs)
    return world


def _make_keys(world: World, members: dict[str, Membership], theirs: Membership) -> None:
    owner = members["owner"]
    keys = {
        f"key:{scope}": make_key(owner, scope)
        for scope in ("read", "write", "memory", "chat", "admin")
    }
    keys["key:all"] = make_key(owner)
    for name in ("viewer", "unlisted"):
        keys[f"key:{name}"] = make_key(members[name])
    elsewhere = CollectionFactory(workspace=owner.workspace, slug="elsewhere", name="Elsewhere")
    keys["key:elsewhere"] = make_key(owner, collections=[elsewhere.pk])
    keys["key:revoked"], keys["key:expired"] = make_key(owner), make_key(owner)
    keys["key:B"] = make_key(theirs)
    now = timezone.now()
    keys["key:revoked"][0].revoked_at = now
    keys["key:expired"][0].expires_at = now - timedelta(days=1)
    for name, (key, secret) in keys.items():
        key.last_used_at = now + timedelta(hours=1)  # so that no use is noted
        key.save()
        world.secrets[name] = secret


def _staff(name: str) -> User:
    user = UserFactory(username=name, is_staff=True, is_superuser=name == "superuser")
    if name == "looker":
        user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    elif name == "curator":
        user.user_permissions.set(Permission.objects.all())
    return user


def _site_wide(owner: Membership, nobody: User) -> dict[str, Any]:
    space = EmbeddingSpace.objects.get(pk=1)
    group = Group.objects.create(name="A group")
    move = Reembedding.objects.create(target=space, state=Reembedding.State.DONE)
    return {
        "workspace": owner.workspace.slug,
        "accounts.user": nobody.pk,
        "auth.group": group.pk,
        "accounts.workspace": owner.workspace_id,
        "accounts.membership": owner.pk,
        "documents.embeddingspace": space.pk,
        "documents.reembedding": move.pk,
        "content_type": ContentType.objects.get_for_model(Document).pk,
    }
