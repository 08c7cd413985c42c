"""How the web server runs; `--config python:ragsite.gunicorn`."""

import logging
from threading import Thread
from typing import Any

worker_class = "gthread"
workers = 2
threads = 8
graceful_timeout = 10
#: It would lie in the user's home directory.
control_socket_disable = True

logger = logging.getLogger("ragsite")


def post_worker_init(worker: Any) -> None:
    """Load the embedding models beside the first requests, so that no person waits for them."""
    Thread(target=_warm_up, name="warm-up", daemon=True).start()


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
