"""How the web server runs; `--config python:ragsite.gunicorn`."""

import gc
import logging
import os
from threading import Thread
from time import sleep
from typing import Any

from django.conf import settings

from ragsite.environment import load_env_file
from ragsite.metrics import files

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
load_env_file()
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

#: Its own lines are like the site's.
logconfig_dict = {
    **settings.LOGGING,
    "loggers": {
        **settings.LOGGING["loggers"],
        "gunicorn.error": {"level": "INFO", "handlers": ["console"], "propagate": False},
        "gunicorn.access": {"level": "WARNING", "handlers": ["console"], "propagate": False},
    },
}

logger = logging.getLogger("ragsite")

LONGEST_PAUSE_SECONDS = 30.0


def on_starting(server: Any) -> None:
    """Before there are workers: where they count together, and the code that they then share
    instead of each importing it. Connections are made by the workers."""
    try:
        files.begin(settings.VAR_DIR)
    except OSError as error:
        logger.warning("each process counts for itself, /metrics tells of one: %s", error)
    server.app.wsgi()
    from django.urls import get_resolver  # noqa: PLC0415 (the settings are read by now)

    _ = get_resolver().url_patterns  # views, and all that they import
    # Looking for garbage would write into memory that is shared otherwise.
    gc.collect()
    gc.freeze()


def child_exit(server: Any, worker: Any) -> None:
    """What a worker had in use when it died is in use no more; what it counted stays."""
    if files.VARIABLE in os.environ:
        from prometheus_client import multiprocess  # noqa: PLC0415 (reads the variable)

        multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(server: Any) -> None:
    """The last to go."""
    files.end(settings.VAR_DIR)


def post_worker_init(worker: Any) -> None:
    """Show nothing to what no request fenced, and embed a question beside the first requests, so
    that no person waits for the model or for what asks a worker."""
    from common.fence import close_by_default  # noqa: PLC0415 (Django is set up by now)

    close_by_default()
    Thread(target=_warm_up, name="warm-up", daemon=True).start()
    Thread(target=_close_streams, args=[worker], name="close-streams", daemon=True).start()


def _close_streams(worker: Any) -> None:
    """End streams when the worker is to end, which would wait for them else."""
    from common.events import closing  # noqa: PLC0415 (Django is set up by now)

    while worker.alive:
        sleep(0.5)
    closing.set()


def _warm_up() -> None:
    from inference.base import InferenceError  # noqa: PLC0415
    from inference.query_cache import embed_query_now  # noqa: PLC0415

    for alias in _aliases():
        try:
            embed_query_now(alias, "warm up")
        except InferenceError as error:
            # Searching says so to whoever searches; words still find.
            logger.warning("the embedding model %s does not work: %s", alias, error)
    # What is loaded by now stays: no search need wait while all of it is looked at for garbage.
    gc.collect()
    gc.freeze()


def _aliases() -> list[str]:
    """Embedders that searches ask. The database may come after the web server: it is asked again,
    less and less often."""
    from django.db import DatabaseError, connection  # noqa: PLC0415

    from common.fence import unfenced  # noqa: PLC0415
    from documents.services import live_embedders  # noqa: PLC0415

    delay = 1.0
    while True:
        try:
            with unfenced():  # on nobody's behalf
                return live_embedders()
        except DatabaseError as error:
            logger.warning("no model is loaded yet, the database does not answer: %s", error)
        finally:
            connection.close()
        sleep(delay)
        delay = min(delay * 2, LONGEST_PAUSE_SECONDS)
