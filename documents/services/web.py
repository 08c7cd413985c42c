"""Documents from the web."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django.conf import settings

from common.errors import Forbidden, InvalidInput
from documents.models import Collection, IngestionRun
from documents.services.documents import ingest_inline, ingest_sources

if TYPE_CHECKING:
    from documents.ingestion.web import Fetch


def require_urls(urls: Sequence[str]) -> None:
    """Raise Forbidden where nothing may be fetched, and InvalidInput for what is no address."""
    if not settings.URL_INGESTION:
        raise Forbidden(
            "Nothing is fetched from the web here. Upload the page, or ask the operator to set"
            " RAGSITE_URL_INGESTION=true."
        )
    from documents.fetching import FetchError, checked_url  # noqa: PLC0415 (loads HTTPX)

    for url in urls:
        try:
            checked_url(url)
        except FetchError as error:
            raise InvalidInput(str(error), field="url") from error


def ingest_urls(
    *,
    collection: Collection,
    urls: Sequence[str],
    metadata: dict[str, Any] | None = None,
    queue: bool = True,
    user: Any = None,
    policy: str = IngestionRun.Policy.SKIP_IF_UNCHANGED,
    store_once: bool = False,
    access: Sequence[str] | None = None,
    on_progress: Callable[[IngestionRun], Any] = lambda run: None,
    fetch_with: "Fetch | None" = None,
) -> IngestionRun:
    """Fetch the pages now, and ingest them here or, with `queue`, by the workers.

    The document's key is the address as it was asked for. A page that cannot be had fails alone.
    Raises Forbidden and InvalidInput.
    """
    from documents.fetching import checked_url  # noqa: PLC0415 (loads HTTPX)
    from documents.ingestion.web import fetch_page, web_sources  # noqa: PLC0415

    require_urls(urls)
    fetch = fetch_with or fetch_page
    sources = web_sources(collection, urls, metadata=metadata, fetch_with=fetch)
    common: dict[str, Any] = {
        "collection": collection,
        "policy": policy,
        "store_once": store_once,
        "access": access,
        "source": ", ".join(str(checked_url(url)) for url in urls),
    }
    if not queue:
        return ingest_inline(**common, sources=sources, on_progress=on_progress)
    # Before there is a transaction: a slow server must not hold one open.
    return ingest_sources(**common, sources=list(sources), user=user)
