"""What doors call: make, change, try and start sources. Begin with `create_source`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone
from pydantic import SecretStr

from accounts.services import principals
from common.errors import Conflict, InvalidInput
from documents.models import Collection, Document
from documents.services.deletion import delete_documents
from documents.services.directories import allowed_directory
from documents.services.documents import checked_access
from sources import credentials
from sources.connectors import connector_class
from sources.connectors.base import Item
from sources.models import DataSource, DataSourceRun
from sources.runs import all_options, open_connector
from sources.schedule import next_run
from sources.synchronisation import Comparison, access_of, compare, doubt

#: Options that name a place of the server, which only operators choose freely.
_SERVER_PATHS = {"folder": "path", "git": "url"}
_UNSET: Any = object()
_EDITED_FIELDS = [
    *("name", "options", "credentials", "schedule"),
    *("delete_missing", "max_deletions", "access", "access_rules"),
]

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
        user=user,
    )
    source.due_at = timezone.now() if source.schedule else None
    return _saved(source)


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
    return _saved(source, fields)


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
            raise InvalidInput("A source needs a name of at most 200 characters.", field="name")
    if options is not _UNSET:
        shown, secrets = _split_options(source.connector, options)
        secrets = {**_kept_secrets(source, shown, secrets), **secrets}
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
    next_run(source.schedule, after=timezone.now())
    if not 0 <= source.max_deletions <= 100:
        raise InvalidInput("Give a percentage from 0 to 100.", field="max_deletions")


def _kept_secrets(
    source: DataSource, shown: Mapping[str, Any], given: Mapping[str, str]
) -> dict[str, str]:
    """The secrets it has. Raises InvalidInput where they would go to another server: who changes a
    source need not know them."""
    kept = credentials.decrypt(source.credentials)
    not_given = sorted(kept.keys() - given.keys())
    if not_given and _server(source.connector, shown) != _server(source.connector, source.options):
        raise InvalidInput(
            "This is another server, or another way to it. Give the password again.",
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
    place = str(options.get(_SERVER_PATHS.get(kind, ""), ""))
    if user is not None and place and "://" not in place:
        allowed_directory(place)


def _saved(source: DataSource, fields: Sequence[str] | None = None) -> DataSource:
    try:
        with transaction.atomic():
            source.save(update_fields=fields)
    except IntegrityError as error:
        raise Conflict(
            f"There is a source “{source.name}” already. Choose another name."
        ) from error
    return source


def delete_source(*, source: DataSource, with_documents: bool) -> None:
    """Delete a source; its documents stay unless asked for, and are then kept as they are."""
    if with_documents:
        rows = Document.objects.filter(
            collection=source.collection_id, key__startswith=source.key_prefix, is_current=True
        )
        delete_documents(documents=list(rows))
    source.delete()


# --- trying --------------------------------------------------------------------------------------


def first_items(kind: str, options: Mapping[str, Any], *, count: int = 5) -> list[Item]:
    """A few items, to show that the options are right. Raises InvalidInput and SourceError."""
    found: list[Item] = []
    with open_connector(kind, options) as connector:
        for item in connector.list_items():
            found.append(item)
            if len(found) == count:
                break
    return found


def preview(source: DataSource) -> tuple[Comparison, list[str], str]:
    """What a run would do: the comparison, names of what would go, and why it would stop. Raises
    SourceError; changes nothing."""
    with open_connector(source.connector, all_options(source)) as connector:
        comparison = compare(source, connector.list_items(), store=False)
    gone = source.items.filter(pk__in=comparison.gone).order_by("name")
    return comparison, list(gone.values_list("name", flat=True)), doubt(source, comparison)


def visible_names(source: DataSource, names: Iterable[str], *, user: Any) -> list[str]:
    """The names of files whose documents `user` may see: a name says what a text is about."""
    own = set(principals(user))
    lists = {name: access_of(source, name) for name in names}
    return [name for name, access in lists.items() if access is None or own & set(access)]


# --- runs ----------------------------------------------------------------------------------------


@transaction.atomic
def start_run(
    *, source: DataSource, user: Any = None, may_delete_any: bool = False, enqueue: bool = True
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
        raise Conflict(f"“{held}” is being read just now. Wait for that run, or cancel it.")
    run = DataSourceRun.objects.create(
        workspace_id=held.workspace_id,
        source=held,
        user=user if getattr(user, "is_authenticated", False) else None,
        may_delete_any=may_delete_any,
    )
    DataSource.objects.filter(pk=held.pk).update(
        state=DataSource.State.WAITING, due_at=Now(), attempts=0, leased_until=None
    )
    if enqueue:
        from sources.tasks import enqueue_source  # noqa: PLC0415 (loads Celery)

        transaction.on_commit(lambda: enqueue_source(held.pk))
    return run


def cancel_run(*, run: DataSourceRun) -> None:
    """Ask it to end; it does within about a second of its next item."""
    DataSourceRun.objects.filter(pk=run.pk, finished_at=None).update(
        cancel_requested_at=timezone.now()
    )


def retry_items(*, source: DataSource) -> int:
    """Let the next run fetch again what was given up; returns how many items."""
    return source.items.filter(failures__gt=0).update(failures=0, error="")
