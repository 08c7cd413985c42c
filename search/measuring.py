"""Asking for an evaluation: a row, and a message that hurries a worker to it."""

import logging
from functools import partial
from typing import Any

from django.db import transaction
from kombu.exceptions import OperationalError

from documents.models import Collection
from search.evaluation import keeping
from search.models import Evaluation
from search.tasks import measure_quality

logger = logging.getLogger(__name__)


def request_evaluation(*, collection: Collection, user: Any) -> Evaluation:
    """Have the collection measured soon; the row that tells how far that is.

    Raises NothingJudged where no question has a good answer.
    """
    evaluation = keeping.ask_for(collection=collection, user=user)
    transaction.on_commit(partial(_hurry, evaluation.pk))
    return evaluation


def _hurry(evaluation_id: int) -> None:
    """Tell a worker. A broker that is down loses nothing: what waits is taken every 30 seconds."""
    try:
        measure_quality.delay(evaluation_id)
    except OperationalError as error:
        logger.warning("the broker does not answer, the evaluation waits for it: %s", error)
