"""How the web server runs; `--config python:ragsite.gunicorn`."""

import gc
import logging
import os
from threading import Thread
from time import sleep
from typing import Any

from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
# Before settings are read. Twice the threads that answer pages: streams hold none while they wait.
os.environ.setdefault("RAGSITE_DATABASE_POOL_SIZE", "16")

worker_class = "gthread"
workers = 2
#: A stream has a thread to itself as long as it is open: pages keep eight of theirs.
threads = 8 + settings.EVENT_STREAMS + settings.CHAT_STREAMS
graceful_timeout = 10
#: Ids of the graph stand in addresses; a thousand letters of most scripts are so long.
limit_request_line = 8190
#: It would lie in the user's home directory.
control_socket_disable = True

logger = logging.getLogger("ragsite")


def post_worker_init(worker: Any) -> None:
    """Load the embedding models beside the first requests, so that no person waits for them."""
    Thread(target=_warm_up, name="warm-up", daemon=True).start()
    Thread(target=_close_streams, args=[worker], name="close-streams", daemon=True).start()


def _close_streams(worker: Any) -> None:
    """End streams when the worker is to end, which would wait for them else."""
    from common.events import closing  # noqa: PLC0415 (Django is set up by now)

    while worker.alive:
        sleep(0.5)
    closing.set()


def _warm_up() -> None:
    from django.db import connection  # noqa: PLC0415 (Django is set up by now)

    from documents.services import live_embedders  # noqa: PLC0415
    from inference.base import InferenceError  # noqa: PLC0415
    from inference.handler import embedders  # noqa: PLC0415

    aliases = live_embedders()
    connection.close()
    for alias in aliases:
        try:
            embedders[alias].embed_query("warm up")
        except InferenceError as error:
            # Searching says so to whoever searches; words still find.
            logger.warning("the embedding model %s does not work: %s", alias, error)
    # What is loaded by now stays: no search need wait while all of it is looked at for garbage.
    gc.collect()
    gc.freeze()
