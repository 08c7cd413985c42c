"""The task that takes the parts out of a large mail or archive."""

from common.celery import app, send_or_wait
from documents.ingestion import jobs
from documents.services.archives import take_out_parts
from documents.tasks import ingest_documents


@app.task
def unpack_container(document_id: int) -> None:
    """Register parts of the container for a while; then the rest when nothing else waits, or,
    after the last one, have the container itself read."""
    is_done = take_out_parts(document_id)
    if is_done is None:
        return
    if is_done:
        send_or_wait(ingest_documents, [document_id])
    else:
        send_or_wait(unpack_container, document_id, priority=jobs.LOWEST_PRIORITY)
