"""Statistics of the site or a collection: documents, chunks, sizes, and how fast ingestion was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Count, Q, QuerySet, Sum

from documents.ingestion.vector_indexes import index_states
from documents.late_interaction import count_with_tokens
from documents.models import Chunk, Collection, Document, EmbeddingSpace, IngestionRun

#: Finished runs that rates are taken from.
RATED_RUNS = 20


@dataclass(frozen=True, slots=True)
class SiteStatistics:
    """Statistics of a collection or of the site. Sizes are in bytes; table and index sizes are the
    site's, and missing for a collection. `graph` counts collections by graph mode, `with_tokens`
    chunks that the present token encoder has read.

    A space has `name`, `model`, `chunks` and `index_bytes`; a stage the total `seconds` of the last
    runs, and the `rates`: throughput per second by name (`bytes`, `chunks`, `tokens`).
    """

    documents: Mapping[str, int]
    superseded: int
    links: int
    source_bytes: int
    stored_files: int
    stored_bytes: int
    chunks: int
    with_tokens: int
    tokens: int
    spaces: Sequence[Mapping[str, Any]]
    languages: Mapping[str, int]
    media_types: Mapping[str, int]
    graph: Mapping[str, int]
    runs: Mapping[str, int]
    last_runs: int
    stages: Mapping[str, Mapping[str, Any]]
    table_bytes: Mapping[str, int]


def collect_statistics(*, collection: Collection | None = None) -> SiteStatistics:
    """Count everything. Reads every chunk's row twice, without texts and vectors."""
    of: dict[str, Any] = {} if collection is None else {"collection": collection}
    documents = Document.objects.filter(**of)
    chunks = Chunk.objects.filter(**of)
    current = documents.filter(is_current=True)
    sums = current.aggregate(size=Sum("size"), tokens=Sum("token_count"))
    stored = documents.exclude(file="").aggregate(files=Count("pk"), size=Sum("size"))
    collections = Collection.objects.all()
    if collection is not None:
        collections = collections.filter(pk=collection.pk)
    # The latest finished runs that ingested something.
    finished = IngestionRun.objects.filter(**of, finished_at__isnull=False, chunks__gt=0)
    last = list(finished.order_by("-finished_at")[:RATED_RUNS])
    by_space = _count_by(chunks, "space_id")
    spaces = list(EmbeddingSpace.objects.filter(pk__in=by_space))
    indexes = index_states(spaces)
    return SiteStatistics(
        documents=_count_by(current, "status"),
        superseded=documents.filter(is_current=False).count(),
        links=documents.filter(_IS_ALIAS).count(),
        source_bytes=sums["size"] or 0,
        stored_files=stored["files"],
        stored_bytes=stored["size"] or 0,
        chunks=chunks.count(),
        with_tokens=count_with_tokens(collection),
        tokens=sums["tokens"] or 0,
        spaces=[
            {
                "name": space.name,
                "model": space.model_name,
                "chunks": by_space[space.pk],
                "index_bytes": indexes[space.pk].bytes if space.pk in indexes else 0,
            }
            for space in spaces
        ],
        languages=_count_by(chunks, "language"),
        media_types=_count_by(current.exclude(media_type=""), "media_type"),
        graph=_count_by(collections, "graph"),
        runs=_count_by(IngestionRun.objects.filter(**of), "state"),
        last_runs=len(last),
        stages=_stage_statistics(last),
        table_bytes={} if collection else _table_bytes(),
    )


_IS_ALIAS = Q(status=Document.Status.READY, duplicate_of__isnull=False, chunk_count=0)


def _count_by(rows: QuerySet[Any], name: str) -> dict[Any, int]:
    """Counts by value, most frequent first."""
    counts = rows.order_by().values(name).annotate(number=Count("pk")).order_by("-number", name)
    return {row[name]: row["number"] for row in counts}


def _stage_statistics(runs: list[IngestionRun]) -> dict[str, dict[str, Any]]:
    totals = {
        "bytes": sum(run.bytes for run in runs),
        "chunks": sum(run.chunks for run in runs),
        "embedded": sum(run.embedded for run in runs),
        "tokens": sum(run.tokens for run in runs),
    }
    # What each stage is measured by: chunks that are kept need no model.
    through = {"parse": ("bytes",), "chunk": ("tokens", "chunks"), "embed": ("embedded",)}
    names = list(dict.fromkeys(name for run in runs for name in run.timings))
    stages: dict[str, dict[str, Any]] = {}
    for name in names:
        seconds = sum(float(run.timings.get(name, 0.0)) for run in runs)
        rates = {
            what: round(totals[what] / seconds, 1)
            for what in through.get(name, ("chunks",))
            if seconds > 0
        }
        stages[name] = {"seconds": round(seconds, 3), "rates": rates}
    return stages


_TABLE_SIZES = """
    SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid)
    FROM pg_class c
    WHERE c.relkind = 'r' AND c.relname LIKE 'documents\\_%%'
      AND c.relnamespace = current_schema()::regnamespace
"""


def _table_bytes() -> dict[str, int]:
    """Bytes of the chunk table, of its indexes, and of all tables of documents with indexes."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLE_SIZES)
        sizes = {name: (table, indexes) for name, table, indexes in cursor.fetchall()}
    table, indexes = sizes["documents_chunk"]
    return {
        "chunks": table,
        "chunk_indexes": indexes,
        "all": sum(table + indexes for table, indexes in sizes.values()),
    }
