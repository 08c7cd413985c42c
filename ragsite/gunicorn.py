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
    """Load the embedding model beside the first requests, so that no person waits for it."""
    Thread(target=_warm_up, name="warm-up", daemon=True).start()


def _warm_up() -> None:
    from inference.base import InferenceError  # noqa: PLC0415 (Django is set up by now)
    from inference.handler import embedders  # noqa: PLC0415

    try:
        embedders["default"].embed_query("warm up")
    except InferenceError as error:
        # Searching says so to whoever searches; words still find.
        logger.warning("the embedding model does not work: %s", error)
