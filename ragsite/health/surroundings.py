"""Probes of what the site works with beside its database."""

import os
import shutil
from functools import partial
from pathlib import Path

from django.conf import settings

from common.broker import impatient_client
from common.connections import give_back
from common.fence import unfenced
from documents.services import live_embedders
from inference import lately
from inference.handler import embedders
from ragsite import presence
from ragsite.health.registry import Outcome, Probe


def look_at_broker() -> Outcome:
    """Valkey or Redis answers."""
    with impatient_client() as client:
        told = client.info("server")
    name = "Valkey" if "valkey_version" in told else "Redis"
    return Outcome(
        ok=True, detail=f"{name} {told.get('valkey_version') or told.get('redis_version')}"
    )


def look_at_queue(queue: str) -> Outcome:
    """A worker consumes it."""
    with impatient_client() as client:
        workers = presence.workers(client, queue)
    detail = f"{len(workers)} at work" if workers else "no worker consumes it"
    return Outcome(ok=bool(workers), detail=detail)


def look_at_models() -> Outcome:
    """The embedders that searches ask: what became of it when they were asked last. Nothing is
    loaded and nobody is asked for it."""
    try:
        with unfenced():  # of the whole site, and nothing of it is shown
            aliases = live_embedders()
    finally:
        give_back()
    broken = []
    for alias in aliases:
        _ = embedders[alias]  # raises what is wrong with its configuration
        if problem := lately.problem(alias):
            broken.append(f"{alias}: {problem}")
    if broken:
        return Outcome(ok=False, detail="; ".join(broken))
    unasked = [alias for alias in aliases if not lately.was_asked(alias)]
    said = [f"{alias} (not asked yet)" if alias in unasked else alias for alias in aliases]
    return Outcome(ok=True, detail=", ".join(said))


def look_at_storage() -> Outcome:
    """Uploads can be written, the largest one too."""
    top = Path(settings.MEDIA_ROOT)
    place = next(each for each in (top, *top.parents) if each.exists())  # it is made when needed
    if not os.access(place, os.W_OK | os.X_OK):
        return Outcome(ok=False, detail="MEDIA_ROOT cannot be written")
    free = shutil.disk_usage(place).free
    detail = f"{free / 1024**3:.1f} GiB free"
    if free < settings.MAX_UPLOAD_BYTES:
        return Outcome(ok=False, detail=f"{detail}: less than one upload may have")
    return Outcome(ok=True, detail=detail)


def queue_probes() -> list[Probe]:
    """One for each queue."""
    return [Probe(f"queue_{name}", partial(look_at_queue, name)) for name in presence.QUEUES]
