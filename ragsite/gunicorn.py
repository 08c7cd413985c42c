"""Configuration of the web server; `--config python:ragsite.gunicorn`."""

import gc
import logging
import os
from threading import Thread
from time import sleep
from typing import Any

from django.conf import settings
from gunicorn.workers.gthread import ThreadWorker

from ragsite import metrics_directory
from ragsite.environment import load_env_file

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
load_env_file()
# Before settings are read. Twice the threads that answer pages: streams hold none while they wait.
os.environ.setdefault("RAGSITE_DATABASE_POOL_SIZE", "16")


class Worker(ThreadWorker):
    """Closes a connection in the thread that answered. gunicorn does it where others are accepted,
    and waits there for two seconds where a client keeps its own end open."""

    def handle(self, conn: Any) -> Any:
        """True for a connection that is kept."""
        is_kept = super().handle(conn)
        if not is_kept:
            conn.close(graceful=True)
            conn.close = lambda graceful=False: None
        return is_kept


worker_class = Worker
workers = 2
#: A stream has a thread to itself as long as it is open: pages keep eight of theirs.
threads = 8 + settings.EVENT_STREAMS + settings.CHAT_STREAMS
graceful_timeout = 10
#: Ids of the graph are part of URLs; a thousand letters of most scripts are this long.
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
    """Before the workers fork: prepare the metrics directory, and import code that they then share.
    Connections are opened by the workers.
    """
    try:
        metrics_directory.create_directory(settings.VAR_DIR)
    except OSError as error:
        logger.warning("each process counts for itself, /metrics tells of one: %s", error)
    server.app.wsgi()
    from django.urls import get_resolver  # noqa: PLC0415 (the settings are read by now)

    _ = get_resolver().url_patterns  # views, and all that they import
    # Looking for garbage would write into memory that is shared otherwise.
    gc.collect()
    gc.freeze()


def child_exit(server: Any, worker: Any) -> None:
    """Remove gauges of a worker that died; its counters stay."""
    metrics_directory.remove_gauges(worker.pid)


def on_exit(server: Any) -> None:
    """Remove the metrics directory when the server ends."""
    metrics_directory.remove_directory(settings.VAR_DIR)


def post_worker_init(worker: Any) -> None:
    """Deny rows to work without a workspace context, and warm up the embedder, so that no request
    waits for it to load; give idle memory back.
    """
    from common.rls import deny_by_default  # noqa: PLC0415 (Django is set up by now)
    from ragsite import idle_memory  # noqa: PLC0415

    deny_by_default()
    idle_memory.start()
    Thread(target=_warm_up, name="warm-up", daemon=True).start()
    Thread(target=_close_streams, args=[worker], name="close-streams", daemon=True).start()


def _close_streams(worker: Any) -> None:
    """End open streams when the worker is told to stop, which would wait for them otherwise."""
    from common.sse import shutting_down  # noqa: PLC0415 (Django is set up by now)

    while worker.alive:
        sleep(0.5)
    shutting_down.set()


def _warm_up() -> None:
    from inference.interfaces import InferenceError  # noqa: PLC0415
    from inference.query_cache import embed_query_uncached  # noqa: PLC0415

    for alias in _live_aliases():
        try:
            embed_query_uncached(alias, "warm up")
        except InferenceError as error:
            # Searches report it, and still find by words.
            logger.warning("the embedding model %s does not work: %s", alias, error)
    # Loaded code stays: no search need wait while all of it is scanned for garbage.
    gc.collect()
    gc.freeze()


def _live_aliases() -> list[str]:
    """Embedders in use. The database may start after the web server: it is retried with growing
    pauses.
    """
    from django.db import DatabaseError, connection  # noqa: PLC0415

    from common.rls import bypass_rls  # noqa: PLC0415
    from documents.services import live_embedders  # noqa: PLC0415

    delay = 1.0
    while True:
        try:
            with bypass_rls():  # on nobody's behalf
                return live_embedders()
        except DatabaseError as error:
            logger.warning("no model is loaded yet, the database does not answer: %s", error)
        finally:
            connection.close()
        sleep(delay)
        delay = min(delay * 2, LONGEST_PAUSE_SECONDS)
