"""The connected models as each process knows them: read again every two seconds at most, and only
while somebody asks."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from time import monotonic
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import DatabaseError, InterfaceError, connections, router, transaction
from django.db.models import F, Q

from common.rls import bypass_rls
from inference.model_registry import ConnectedModel
from model_servers.models import ModelConnection

#: How long a process goes on with what it has read.
MAX_AGE_SECONDS = 2.0


class _Snapshot:
    """What was read last."""

    def __init__(self) -> None:
        self._models: Mapping[str, Sequence[ConnectedModel]] | None = None
        self._read_at = -inf
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Read again when somebody asks."""
        self._read_at = -inf

    def models(self, kind: str) -> Sequence[ConnectedModel]:
        # The first reader is waited for; later ones go on with what is known.
        if self._is_old() and self._lock.acquire(blocking=self._models is None):
            try:
                if self._is_old():
                    self._read()
            finally:
                self._lock.release()
        return (self._models or {}).get(kind, ())

    def _is_old(self) -> bool:
        return monotonic() - self._read_at > MAX_AGE_SECONDS

    def _read(self) -> None:
        began = monotonic()
        alias = router.db_for_write(ModelConnection)
        is_open = connections[alias].connection is not None
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
        finally:
            if not is_open:  # a thread that works without the database keeps no connection to it
                connections[alias].close()
        models: dict[str, list[ConnectedModel]] = {}
        for row in found:
            models.setdefault(row.purpose, []).append(_connected(row))
        self._models = models
        self._read_at = began


def _build(row: ModelConnection) -> Any:
    from model_servers import servers  # noqa: PLC0415 (loads HTTPX)

    builders: dict[str, Callable[[ModelConnection], Any]] = {
        "chat": servers.build_chat,
        "embedder": servers.build_embedder,
        "reranker": servers.build_reranker,
    }
    return builders[row.purpose](row)


def _connected(row: ModelConnection) -> ConnectedModel:
    own = None if row.workspace_id is None else [row.workspace_id]
    allowed = own or row.workspaces
    return ConnectedModel(
        id=row.pk,
        alias=row.alias,
        name=row.name,
        model_name=row.model,
        build=partial(_build, row),
        version=row.updated_at,
        workspaces=None if allowed is None else frozenset(allowed),
        is_default=row.is_default,
        chosen_in=frozenset(row.chosen_in),  # type: ignore[attr-defined]  # annotated
    )


_snapshot = _Snapshot()
forget = _snapshot.forget


def connected_models(kind: str) -> Sequence[ConnectedModel]:
    """The connected models of this kind, for `inference.model_registry`."""
    return _snapshot.models(kind)
