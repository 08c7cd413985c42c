"""The task that takes the parts out of a large mail or archive."""

from kombu.exceptions import OperationalError

from common.celery import app
from documents.ingestion import jobs
from documents.services.archives import take_out_parts
from documents.tasks import ingest_documents, logger


@app.task
def unpack_container(document_id: int) -> None:
    """Register parts of the container for a while; then the rest when nothing else waits, or,
    after the last one, have the container itself read."""
    is_done = take_out_parts(document_id)
    if is_done is None:
        return
    try:
        if is_done:
            ingest_documents.delay([document_id])
        else:
            unpack_container.apply_async((document_id,), priority=jobs.PAGES_PRIORITY)
    except OperationalError as error:
        logger.warning("the broker does not answer, the container waits for it: %s", error)
