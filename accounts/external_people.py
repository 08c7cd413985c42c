"""People for whom another server vouches: from what it says of them to a user of the site.

An account is known by issuer and subject. An address of mail opens one only where a setting says so
and the server says that it checked the address.
"""

import re
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from accounts.groups import set_external_groups
from accounts.models import Identity, Membership, Role, User, Workspace
from accounts.providers import Provider
from accounts.sign_in import Refusal, SignInRefused
from common.rls import bypass_rls

_NO_PART_OF_A_NAME = re.compile(r"[^\w.@+-]+")
_MAX_NAME_CHARACTERS = 150
_MAX_GROUPS = 1000


@dataclass(frozen=True, slots=True)
class ExternalPerson:
    """What the server says; `groups` is None where it says nothing of groups."""

    subject: str
    username: str = ""
    email: str = ""
    is_email_verified: bool = False
    first_name: str = ""
    last_name: str = ""
    groups: frozenset[str] | None = None


def external_user(*, provider: Provider, person: ExternalPerson) -> User:
    """The user of this person, made where the provider's settings say so, with memberships of
    groups as the server names them now. Raises SignInRefused.
    """
    _check_allowed(provider, person)
    with bypass_rls():  # of nobody but this person, who is not logged in yet
        try:
            user = _linked_user(provider, person)
        except IntegrityError:  # the same person, signing in twice at once
            user = _linked_user(provider, person)
    return user


def _check_allowed(provider: Provider, person: ExternalPerson) -> None:
    """The groups and domains that the provider's settings let in, at every sign-in."""
    if not person.subject.strip() or "\0" in person.subject or len(person.subject) > 255:
        raise SignInRefused(
            Refusal.ANSWER,
            gettext(
                "{provider} did not send your identity. Contact the operator of this site."
            ).format(provider=provider.label),
        )
    if provider.allowed_groups and not (person.groups or set()) & set(provider.allowed_groups):
        raise SignInRefused(
            Refusal.GROUP,
            gettext(
                "Your account at {provider} is not in a group with access to this site."
                " Contact the operator of this site."
            ).format(provider=provider.label),
        )
    domain = person.email.rpartition("@")[2].lower()
    allowed = {each.lower().lstrip("@") for each in provider.domains}
    if allowed and not (person.is_email_verified and domain in allowed):
        raise SignInRefused(
            Refusal.DOMAIN,
            gettext(
                "{provider} sent no verified email address with access to this site."
                " Contact the operator of this site."
            ).format(provider=provider.label),
        )


def refused_answer(provider: Provider) -> SignInRefused:
    """The refusal of an answer that is not the provider's, or not for this site and browser."""
    return SignInRefused(
        Refusal.ANSWER,
        gettext(
            "{provider} sent an invalid answer. Sign in again; if this continues,"
            " contact the operator of this site."
        ).format(provider=provider.label),
    )


@transaction.atomic
def _linked_user(provider: Provider, person: ExternalPerson) -> User:
    identity = (
        Identity.objects.select_for_update()
        .select_related("user")
        .filter(issuer=provider.issuer, subject=person.subject)
        .first()
    )
    if identity is None:
        user = _user_by_email(provider, person) or _new_user(provider, person)
        identity = Identity(
            user=user, method=provider.method, issuer=provider.issuer, subject=person.subject
        )
        identity.save()
        record_change(
            action=Action.MADE,
            kind=Kind.IDENTITY,
            workspace_id=None,
            object_id=identity.pk,
            user=user,
            values={"method": provider.method, "user": user.pk},
        )
    user = identity.user
    if not user.is_active:
        raise SignInRefused(
            Refusal.INACTIVE,
            gettext("Your account here is disabled. Contact the operator of this site."),
        )
    if person.groups is not None:
        workspace = Workspace.objects.filter(
            slug=provider.workspace, memberships__user=user
        ).first()
        names = sorted(name[:150] for name in person.groups)[:_MAX_GROUPS]
        if workspace is not None:
            source = f"{provider.method}:{provider.slug}"[:40]
            set_external_groups(user=user, workspace=workspace, names=names, source=source)
        identity.groups = names
    identity.last_used_at = timezone.now()
    identity.save(update_fields=["groups", "last_used_at"])
    return user


def _user_by_email(provider: Provider, person: ExternalPerson) -> User | None:
    """The one account with this address, where the setting links by addresses and the server has
    checked it. An account that has an identity of this server is somebody else's, and a superuser's
    is never linked: the site would be whoever's that has the address.
    """
    if not (provider.link_by_email and person.is_email_verified and person.email):
        return None
    found = User.objects.filter(email__iexact=person.email, is_superuser=False)
    found = found.exclude(identities__issuer=provider.issuer)[:2]
    return found[0] if len(found) == 1 else None


def _new_user(provider: Provider, person: ExternalPerson) -> User:
    """A user without a password, and its membership. Raises SignInRefused."""
    workspace = Workspace.objects.filter(slug=provider.workspace).first()
    if not provider.create:
        raise SignInRefused(
            Refusal.NO_ACCOUNT,
            gettext("You have no account here yet. Ask the operator of this site to create one."),
        )
    if workspace is None:
        raise SignInRefused(
            Refusal.WORKSPACE,
            gettext(
                "The workspace “{slug}” for new users does not exist. Contact the"
                " operator of this site."
            ).format(slug=provider.workspace),
        )
    user = User(
        username=_free_name(person.username or person.email or person.subject),
        email=person.email[:254] if person.is_email_verified else "",
        first_name=person.first_name[:150],
        last_name=person.last_name[:150],
    )
    user.set_unusable_password()
    user.save()
    membership = Membership.objects.create(workspace=workspace, user=user, role=provider.role)
    for kind, pk in ((Kind.USER, user.pk), (Kind.MEMBERSHIP, membership.pk)):
        record_change(
            action=Action.MADE,
            kind=kind,
            workspace_id=workspace.pk,
            object_id=pk,
            user=user,
            values={"role": Role(provider.role), "user": user.pk},
        )
    return user


def _free_name(wanted: str) -> str:
    """A user name like this one that nobody has: “anna”, else “anna-2”."""
    base = _NO_PART_OF_A_NAME.sub("-", wanted).strip("-")[:_MAX_NAME_CHARACTERS] or "user"
    if not User.objects.filter(username__iexact=base).exists():
        return base
    base = base[: _MAX_NAME_CHARACTERS - 8]
    start = f"{base}-"
    taken = set(User.objects.filter(username__istartswith=start).values_list("username", flat=True))
    lower = {name.lower() for name in taken}
    return next(
        name
        for number in range(2, len(lower) + 3)
        if (name := f"{start}{number}").lower() not in lower
    )
