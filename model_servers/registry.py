"""The connected models as each process knows them: read again every two seconds at most, and only
while somebody asks."""

import threading
from collections.abc import Sequence
from functools import partial
from math import inf
from time import monotonic

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import DatabaseError, InterfaceError, router, transaction
from django.db.models import F, Q

from common.rls import bypass_rls
from inference.interfaces import ChatModel
from inference.model_registry import ConnectedModel
from model_servers.models import ModelConnection

#: How long a process goes on with what it has read.
MAX_AGE_SECONDS = 2.0


class _Snapshot:
    """What was read last."""

    def __init__(self) -> None:
        self._models: tuple[ConnectedModel, ...] | None = None
        self._read_at = -inf
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Read again when somebody asks."""
        self._read_at = -inf

    def models(self) -> Sequence[ConnectedModel]:
        # The first reader is waited for; later ones go on with what is known.
        if self._is_old() and self._lock.acquire(blocking=self._models is None):
            try:
                if self._is_old():
                    self._read()
            finally:
                self._lock.release()
        return self._models or ()

    def _is_old(self) -> bool:
        return monotonic() - self._read_at > MAX_AGE_SECONDS

    def _read(self) -> None:
        began = monotonic()
        alias = router.db_for_write(ModelConnection)
        rows = ModelConnection.objects.using(alias).annotate(
            chosen_in=ArrayAgg("choices__workspace", filter=Q(choices__isnull=False), default=[])
        )
        try:
            # The site's rows belong to no workspace; who may use which is checked by name.
            with bypass_rls(), transaction.atomic(using=alias):
                found = list(rows.order_by(F("workspace").asc(nulls_first=True), "name"))
        except (DatabaseError, InterfaceError):
            # Before the first migration, or while the database is away: what was known holds.
            self._read_at = began
            return
        self._models = tuple(map(_connected, found))
        self._read_at = began


def _build_chat(row: ModelConnection) -> ChatModel:
    from model_servers.servers import build_chat  # noqa: PLC0415 (loads HTTPX)

    return build_chat(row)


def _connected(row: ModelConnection) -> ConnectedModel:
    own = None if row.workspace_id is None else [row.workspace_id]
    allowed = own or row.workspaces
    return ConnectedModel(
        id=row.pk,
        name=row.name,
        model_name=row.model,
        build=partial(_build_chat, row),
        version=row.updated_at,
        workspaces=None if allowed is None else frozenset(allowed),
        is_default=row.is_default,
        chosen_in=frozenset(row.chosen_in),  # type: ignore[attr-defined]  # annotated
    )


_snapshot = _Snapshot()
forget = _snapshot.forget


def connected_models(kind: str) -> Sequence[ConnectedModel]:
    """The connected models of this kind, for `inference.model_registry`."""
    return _snapshot.models() if kind == "chat" else ()
