"""Where a search may look: what the asker may see, narrowed by what was asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from accounts.models import User, Workspace
from accounts.services import principals
from common.compiled import CompiledQuery, rows
from common.errors import NotFound
from documents.models import Collection
from search.asked import checked_versions
from search.filters import Node, all_of, metadata_filter, one_of, read_filter
from search.filters.fields import Field
from search.results import Scope, Versions

_SITE = "SELECT slug, id FROM documents_collection WHERE workspace_id = %s::bigint"
_VISIBLE = CompiledQuery(
    lambda: Collection.objects.visible_to(User(pk=0)).filter(workspace=0).values("slug", "id")
)


def scope_for(
    *,
    user: Any,
    workspace: Workspace,
    collections: Sequence[str] = (),
    filter: Mapping[str, Any] | str | None = None,
    media_types: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    versions: Versions = "current",
) -> Scope:
    """What `user` may search in `workspace`, narrowed to the named collections and by `filter`.

    `filter` is in JSON or text form; one of `media_types` and all of `metadata` must fit besides.
    `versions` is `current`, or `all` to find superseded ones too.
    Raises NotFound for a collection that is not there, or not there for this user, and FilterError
    for a filter that cannot be.
    """
    found: list[Any] = []
    if user.is_active:
        found = rows(
            f"SELECT slug, id FROM ({_VISIBLE.sql}) AS visible UNION ALL"  # noqa: S608 (no values)
            " SELECT NULL, group_id FROM accounts_user_groups WHERE user_id = %s",
            [user.pk, workspace.pk, user.pk],
        )
    return _scope(
        workspace,
        {slug: pk for slug, pk in found if slug is not None},
        collections,
        principals=tuple(principals(user, [pk for slug, pk in found if slug is None])),
        filter=_narrowed(filter, media_types, metadata),
        versions=checked_versions(versions),
    )


def site_scope(
    *,
    workspace: Workspace,
    collections: Sequence[str] = (),
    filter: Mapping[str, Any] | str | None = None,
    media_types: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    versions: Versions = "current",
) -> Scope:
    """The scope of the site itself: commands and evaluation, which no access list binds."""
    return _scope(
        workspace,
        dict(rows(_SITE, [workspace.pk])),
        collections,
        filter=_narrowed(filter, media_types, metadata),
        versions=checked_versions(versions),
    )


def _narrowed(
    filter: Mapping[str, Any] | str | None,
    media_types: Sequence[str],
    metadata: Mapping[str, Any] | None,
) -> Node:
    parts = [read_filter(filter)]
    if media_types:
        parts.append(one_of(Field("media_type"), media_types))
    return all_of([*parts, metadata_filter(metadata or {})])


def _scope(
    workspace: Workspace, known: Mapping[str, int], slugs: Sequence[str], **narrowed: Any
) -> Scope:
    unknown = [slug for slug in slugs if slug not in known]
    if unknown:
        names = ", ".join(sorted(known)[:20]) or "none yet"
        raise NotFound(f"There is no collection “{unknown[0]}”. There are: {names}.")
    every = tuple(sorted(known.values()))
    named = tuple(sorted(known[slug] for slug in slugs))
    return Scope(workspace.id, named or every, visible_ids=every, **narrowed)
