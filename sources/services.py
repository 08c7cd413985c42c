"""What doors call: make, change, try and start sources. Begin with `create_source`."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext
from pydantic import SecretStr

from accounts.audit import Action, Kind, record_change
from accounts.services import principals
from common.errors import Conflict, InvalidInput
from documents.models import Collection, Document
from documents.services.deletion import delete_documents
from documents.services.directories import allowed_directory
from documents.services.documents import checked_access
from sources import credentials, signatures
from sources.connectors import connector_class
from sources.connectors.base import Item, Unfinished, local_path
from sources.models import DataSource, DataSourceItem, DataSourceRun
from sources.readers import AccessOf
from sources.runs import all_options, open_connector
from sources.schedule import next_run
from sources.synchronisation import Comparison, compare, doubt

#: Options that name a place of the server, which only operators choose freely.
_SERVER_PATHS = {"folder": "path", "git": "url"}
_UNSET: Any = object()
#: Failed items whose names are looked at, to tell who may see them.
MAX_FAILURES = 10_000
_EDITED_FIELDS = [
    *("name", "options", "credentials", "schedule"),
    *("delete_missing", "max_deletions", "access", "access_rules", "maps_readers"),
]

Cause = DataSourceRun.Cause


# --- options -------------------------------------------------------------------------------------


def _split_options(kind: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The options that may be shown, and the secrets."""
    fields = connector_class(kind).Options.model_fields
    secret = {name for name, field in fields.items() if field.annotation is SecretStr}
    shown = {name: value for name, value in options.items() if name not in secret}
    return shown, {name: str(options[name]) for name in secret if options.get(name)}


# --- sources -------------------------------------------------------------------------------------


def create_source(
    *,
    collection: Collection,
    name: str,
    connector: str,
    options: Mapping[str, Any],
    schedule: str = "",
    delete_missing: bool = True,
    max_deletions: int = 50,
    access: Sequence[str] | None = None,
    access_rules: Sequence[Mapping[str, Any]] = (),
    maps_readers: bool = False,
    user: Any = None,
) -> DataSource:
    """A source that first runs at once, where it has a schedule. Raises InvalidInput, and Conflict
    for a name that is taken; with `user` places of the server must be below RAGSITE_INGEST_ROOTS.
    """
    source = DataSource(workspace_id=collection.workspace_id, collection=collection)
    source.created_by = user
    source.connector = connector
    _set_values(
        source,
        name=name,
        options=options,
        schedule=schedule,
        delete_missing=delete_missing,
        max_deletions=max_deletions,
        access=access,
        access_rules=access_rules,
        maps_readers=maps_readers,
        user=user,
    )
    source.due_at = timezone.now() if source.schedule else None
    return _saved(source, Action.MADE)


def update_source(*, source: DataSource, user: Any = None, **changes: Any) -> DataSource:
    """Set what is given, as in `create_source`; secrets that are not given stay. It waits for its
    next run, also where it had been stopped. Raises InvalidInput and Conflict."""
    _set_values(source, user=user, **changes)
    fields = [*_EDITED_FIELDS, "due_at"]
    if source.state == DataSource.State.DEAD:
        source.state, source.error = DataSource.State.WAITING, ""
        source.failures = source.attempts = 0
        fields += ["state", "error", "failures", "attempts"]
    source.due_at = next_run(source.schedule, after=timezone.now())
    # The claim of a worker that reads it just now stays.
    return _saved(source, Action.CHANGED, changes, fields)


def _set_values(
    source: DataSource,
    *,
    user: Any,
    name: str = _UNSET,
    options: Mapping[str, Any] = _UNSET,
    access: Sequence[str] | None = _UNSET,
    access_rules: Sequence[Mapping[str, Any]] = _UNSET,
    **others: Any,
) -> None:
    if name is not _UNSET:
        source.name = " ".join(name.split())
        if not 0 < len(source.name) <= 200:
            raise InvalidInput(
                gettext("A source needs a name of at most 200 characters."), field="name"
            )
    if options is not _UNSET:
        shown, secrets = _split_options(source.connector, options)
        secrets = {**_stored_secrets(source, shown, secrets), **secrets}
        open_connector(source.connector, {**shown, **secrets}).close()
        _check_server_path(source.connector, shown, user)
        source.options, source.credentials = shown, credentials.encrypt(secrets)
    if access is not _UNSET:
        source.access = checked_access(access, workspace_id=source.workspace_id)
    if access_rules is not _UNSET:
        source.access_rules = [
            {
                "glob": str(rule["glob"]),
                "access": checked_access(rule["access"], workspace_id=source.workspace_id),
            }
            for rule in access_rules
        ]
    for field, value in others.items():
        setattr(source, field, value)
    if source.maps_readers and not connector_class(source.connector).tells_readers:
        raise InvalidInput(
            gettext(
                "Sources of this kind do not report the readers of their files. Choose who may"
                " see the documents."
            ),
            field="maps_readers",
        )
    next_run(source.schedule, after=timezone.now())
    if not 0 <= source.max_deletions <= 100:
        raise InvalidInput(gettext("Enter a percentage from 0 to 100."), field="max_deletions")


def _stored_secrets(
    source: DataSource, options: Mapping[str, Any], given: Mapping[str, str]
) -> dict[str, str]:
    """The secrets it has. Raises InvalidInput where they would go to another server: who changes a
    source need not know them."""
    kept = credentials.decrypt(source.credentials)
    not_given = sorted(kept.keys() - given.keys())
    if not_given and _server(source.connector, options) != _server(
        source.connector, source.options
    ):
        raise InvalidInput(
            gettext("The server or the connection to it has changed. Enter the password again."),
            field=not_given[0],
        )
    return kept


def _server(kind: str, options: Mapping[str, Any]) -> list[str]:
    fields = connector_class(kind).Options.model_fields
    found = []
    for name in ("url", "endpoint", "host", "port", "security"):
        default = fields[name].default if name in fields else ""
        address = urlsplit(str(options.get(name) or default).lower())
        # A server may have several folders and repositories.
        found.append(f"{address.scheme}://{address.netloc}" if address.netloc else address.path)
    return found


def _check_server_path(kind: str, options: Mapping[str, Any], user: Any) -> None:
    path = local_path(str(options.get(_SERVER_PATHS.get(kind, ""), "")))
    if user is not None and path:
        allowed_directory(path)


def _saved(
    source: DataSource,
    action: Action,
    changed: Iterable[str] = (),
    fields: Sequence[str] | None = None,
) -> DataSource:
    try:
        with transaction.atomic():
            source.save(update_fields=fields)
            _record(source, action, fields=sorted(changed))
    except IntegrityError as error:
        raise Conflict(
            gettext("A source named “{name}” already exists. Choose another name.").format(
                name=source.name
            )
        ) from error
    return source


def _record(source: DataSource, action: Action, **details: Any) -> None:
    record_change(
        action=action,
        kind=Kind.SOURCE,
        workspace_id=source.workspace_id,
        object_id=source.pk,
        collection_id=source.collection_id,
        **details,
    )


@transaction.atomic
def delete_source(*, source: DataSource, with_documents: bool) -> None:
    """Delete a source; its documents stay unless asked for, and are then kept as they are."""
    _record(source, Action.DELETED, values={"with_documents": with_documents})
    if with_documents:
        rows = Document.objects.filter(
            collection=source.collection_id, key__startswith=source.key_prefix, is_current=True
        )
        delete_documents(documents=list(rows))
    source.delete()


def with_counts(sources: QuerySet[DataSource]) -> QuerySet[DataSource]:
    """With `item_count` and `failed_count`, and `last_state` and `last_at` of the newest run."""
    newest = DataSourceRun.objects.filter(source=OuterRef("pk")).order_by("-pk")
    return sources.annotate(
        item_count=Count("items"),
        failed_count=Count("items", filter=Q(items__failures__gt=0)),
        last_state=Subquery(newest.values("state")[:1]),
        last_at=Subquery(newest.values("started_at")[:1]),
    )


# --- trying --------------------------------------------------------------------------------------


def first_items(
    kind: str, options: Mapping[str, Any], *, user: Any = None, count: int = 5
) -> list[Item]:
    """A few items, to show that the options are right. Raises InvalidInput and SourceError; with
    `user` places of the server must be below RAGSITE_INGEST_ROOTS."""
    _check_server_path(kind, options, user)
    found: list[Item] = []
    with open_connector(kind, options) as connector:
        for item in connector.list_items():
            found.append(item)
            if len(found) == count:
                break
    return found


def preview(source: DataSource, *, is_patient: bool = False) -> tuple[Comparison, list[str], str]:
    """What a run would do: the comparison, names of what would go, and why it would stop. Raises
    SourceError; changes nothing. A listing in parts is `Unfinished` after the first, unless the
    caller `is_patient`."""
    with open_connector(source.connector, all_options(source)) as connector:
        while True:
            try:
                comparison = compare(source, connector.list_items(), store=False)
                break
            except Unfinished:
                if not is_patient:
                    raise
    gone = source.items.filter(pk__in=comparison.gone).order_by("name")
    return comparison, list(gone.values_list("name", flat=True)), doubt(source, comparison)


def visible_names(source: DataSource, names: Iterable[str], *, user: Any) -> list[str]:
    """The names of files whose documents `user` may see: a name says what a text is about."""
    own, access_of = set(principals(user)), AccessOf(source)
    names = list(names)
    readers = dict(source.items.filter(name__in=names).values_list("name", "readers"))
    lists = {name: access_of.item(name, readers.get(name)) for name in names}
    return [name for name, access in lists.items() if access is None or own & set(access)]


# --- runs ----------------------------------------------------------------------------------------


@transaction.atomic
def start_run(
    *, source: DataSource, user: Any = None, allow_deletions: bool = False, enqueue: bool = True
) -> DataSourceRun:
    """A run that begins at once. Raises Conflict where one is going on."""
    held = DataSource.objects.select_for_update().get(pk=source.pk)
    unfinished = held.runs.filter(finished_at=None)
    if held.state == DataSource.State.DEAD:
        # Its workers died each time, and none goes on with it.
        unfinished.update(
            state=DataSourceRun.State.FAILED, error=held.error, finished_at=timezone.now()
        )
    elif held.state == DataSource.State.RUNNING or unfinished.exists():
        raise Conflict(
            gettext("“{held}” is being read now. Wait for that run, or cancel it.").format(
                held=held
            )
        )
    known = user if getattr(user, "is_authenticated", False) else None
    run = _begin(
        held, cause=Cause.PERSON, user=known, may_delete_any=allow_deletions, enqueue=enqueue
    )
    _record(held, Action.STARTED, values={"run": run.pk, "allow_deletions": allow_deletions})
    return run


@transaction.atomic
def request_run(
    *, source_id: int, cause: str, changed_at: datetime | None = None
) -> DataSourceRun | None:
    """Have a source read that has changed at `changed_at` (now), as its webhook or a watched folder
    tells.

    Many calls make one run, since whatever began to list after the change sees it; where it is
    being read just now, one more run follows, whose row is not there yet: None is returned. Raises
    Conflict for a source that has stopped, which only people start again.
    """
    at = changed_at or timezone.now()
    held = DataSource.objects.select_for_update().filter(pk=source_id).first()
    if held is None:
        return None
    if held.state == DataSource.State.DEAD:
        raise Conflict(
            gettext("“{held}” has stopped. Open its page and resolve the problem first.").format(
                held=held
            )
        )
    newest = held.runs.first()
    is_covered = newest is not None and newest.started_at >= at
    if held.state == DataSource.State.RUNNING:
        is_begun, is_over = True, False
    else:
        is_over = newest is None or newest.is_finished
        is_begun = newest is not None and newest.state != DataSourceRun.State.LISTING
    if is_over and not is_covered:
        return _begin(held, cause=cause)
    if is_covered or not is_begun:
        return newest
    DataSource.objects.filter(pk=held.pk).update(run_again=True)
    return None


def _begin(
    source: DataSource,
    *,
    cause: str,
    user: Any = None,
    may_delete_any: bool = False,
    enqueue: bool = True,
) -> DataSourceRun:
    """A run of the locked source that is due now."""
    run = DataSourceRun.objects.create(
        workspace_id=source.workspace_id,
        source=source,
        user=user,
        cause=cause,
        may_delete_any=may_delete_any,
    )
    DataSource.objects.filter(pk=source.pk).update(
        state=DataSource.State.WAITING, due_at=Now(), attempts=0, leased_until=None
    )
    if enqueue:
        from sources.tasks import enqueue_source  # noqa: PLC0415 (loads Celery)

        transaction.on_commit(lambda: enqueue_source(source.pk))
    return run


@transaction.atomic
def cancel_run(*, run: DataSourceRun) -> None:
    """Ask it to end; it does within about a second of its next item."""
    asked = DataSourceRun.objects.filter(pk=run.pk, finished_at=None, cancel_requested_at=None)
    if asked.update(cancel_requested_at=timezone.now()):
        _record(run.source, Action.CANCELLED, values={"run": run.pk})


@transaction.atomic
def retry_items(*, source: DataSource) -> int:
    """Let the next run fetch again what was given up; returns how many items."""
    count = source.items.filter(failures__gt=0).update(failures=0, error="")
    if count:
        _record(source, Action.RETRIED, values={"files": count})
    return count


def visible_failures(source: DataSource, *, user: Any) -> "QuerySet[DataSourceItem]":
    """The failed items whose names `user` may see."""
    failed = source.items.filter(failures__gt=0)
    if source.access is None and not source.access_rules:
        return failed
    names = dict(failed.order_by("pk").values_list("pk", "name")[:MAX_FAILURES])
    seen = set(visible_names(source, names.values(), user=user))
    return failed.filter(pk__in=[pk for pk, name in names.items() if name in seen])


# --- webhook -------------------------------------------------------------------------------------


@transaction.atomic
def make_webhook_secret(*, source: DataSource) -> str:
    """A new secret for callers that start a run, to be shown once. A former one opens nothing."""
    secret = signatures.new_secret()
    source.webhook_secret = credentials.encrypt({"secret": secret})
    source.save(update_fields=["webhook_secret"])
    _record(source, Action.CHANGED, fields=["webhook"])
    return secret


@transaction.atomic
def remove_webhook(*, source: DataSource) -> None:
    """Take calls no more."""
    if source.webhook_secret:
        source.webhook_secret = b""
        source.save(update_fields=["webhook_secret"])
        _record(source, Action.CHANGED, fields=["webhook"])


def encrypt_anew() -> int:
    """Encrypt all secrets by the newest key, so that former ones can be forgotten; returns of how
    many sources. Raises UnreadableCredentials, and has then changed nothing."""
    with transaction.atomic():
        rows = DataSource.objects.select_for_update().order_by("pk")
        count = 0
        for source in rows:
            if source.credentials or source.webhook_secret:
                source.credentials = credentials.encrypt(credentials.decrypt(source.credentials))
                secret = credentials.decrypt(source.webhook_secret)
                source.webhook_secret = credentials.encrypt(secret)
                source.save(update_fields=["credentials", "webhook_secret"])
                count += 1
        return count
