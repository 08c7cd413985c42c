"""The probe of the replicas: without one, searches are read from the primary."""

from collections.abc import Sequence

from django.db import connections

from common.replicas import ReplicaState, replica_state
from ragsite.health.registry import Outcome


def look_at_replicas() -> Outcome:
    """Each streams, and this process reads from it."""
    try:
        return told(replica_state())
    finally:
        connections.close_all()  # of the probe's thread


def told(states: Sequence[ReplicaState]) -> Outcome:
    """One outcome for all of them."""
    said = "; ".join(f"{state.alias}: {state.detail}{_missing(state.behind)}" for state in states)
    return Outcome(ok=all(state.ok for state in states), detail=said)


def _missing(behind: int | None) -> str:
    return f", {behind:,} bytes behind" if behind else ""
