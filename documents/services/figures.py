"""How much there is, and how fast it came in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Count, Q, QuerySet, Sum

from documents.ingestion.indexes import index_states
from documents.models import Chunk, Collection, Document, EmbeddingSpace, IngestionRun

#: Finished runs that rates are taken from.
LAST_RUNS = 20


@dataclass(frozen=True, slots=True)
class SpaceFigures:
    """Chunks of one model. `index_bytes` counts all of the space's, of whatever collection."""

    name: str
    model: str
    chunks: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class StageFigures:
    """A stage in the last runs: seconds that were spent in it, and what came through a second, by
    name (`bytes`, `chunks`, `tokens`)."""

    seconds: float
    rates: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Figures:
    """A collection's, or the whole site's. Sizes are in bytes; those of tables and indexes are
    the site's, and missing for a collection. `graph` counts collections by how they are read."""

    documents: Mapping[str, int]
    superseded: int
    links: int
    source_bytes: int
    stored_files: int
    stored_bytes: int
    chunks: int
    tokens: int
    spaces: tuple[SpaceFigures, ...]
    languages: Mapping[str, int]
    media_types: Mapping[str, int]
    graph: Mapping[str, int]
    runs: Mapping[str, int]
    last_runs: int
    stages: Mapping[str, StageFigures]
    table_bytes: Mapping[str, int]


def figures(*, collection: Collection | None = None) -> Figures:
    """Count everything. Reads every chunk's row, without texts and vectors, twice."""
    of: dict[str, Any] = {} if collection is None else {"collection": collection}
    documents = Document.objects.filter(**of)
    chunks = Chunk.objects.filter(**of)
    current = documents.filter(is_current=True)
    sums = current.aggregate(size=Sum("size"), tokens=Sum("token_count"))
    stored = documents.exclude(file="").aggregate(files=Count("pk"), size=Sum("size"))
    last = _last_runs(of)
    return Figures(
        documents=_counted(current, "status"),
        superseded=documents.filter(is_current=False).count(),
        links=documents.filter(_LINK).count(),
        source_bytes=sums["size"] or 0,
        stored_files=stored["files"],
        stored_bytes=stored["size"] or 0,
        chunks=chunks.count(),
        tokens=sums["tokens"] or 0,
        spaces=_spaces(chunks),
        languages=_counted(chunks, "language"),
        media_types=_counted(current.exclude(media_type=""), "media_type"),
        graph=_counted(_collections(collection), "graph"),
        runs=_counted(IngestionRun.objects.filter(**of), "state"),
        last_runs=len(last),
        stages=_stages(last),
        table_bytes={} if collection else _table_bytes(),
    )


def _collections(collection: Collection | None) -> QuerySet[Collection]:
    rows = Collection.objects.all()
    return rows if collection is None else rows.filter(pk=collection.pk)


_LINK = Q(status=Document.Status.READY, duplicate_of__isnull=False, chunk_count=0)


def _counted(rows: QuerySet[Any], name: str) -> dict[str, int]:
    """The most frequent first."""
    counts = rows.order_by().values(name).annotate(number=Count("pk")).order_by("-number", name)
    return {row[name]: row["number"] for row in counts}


def _spaces(chunks: QuerySet[Chunk]) -> tuple[SpaceFigures, ...]:
    counts = _counted(chunks, "space")
    spaces = list(EmbeddingSpace.objects.filter(pk__in=counts))
    indexes = index_states(spaces)
    return tuple(
        SpaceFigures(
            name=space.name,
            model=space.model_name,
            chunks=counts[space.pk],  # type: ignore[index]  # spaces are counted by their ids
            index_bytes=indexes[space.pk].bytes if space.pk in indexes else 0,
        )
        for space in spaces
    )


def _last_runs(of: dict[str, Any]) -> list[IngestionRun]:
    """Those that something was ingested in."""
    finished = IngestionRun.objects.filter(**of, finished_at__isnull=False, chunks__gt=0)
    return list(finished.order_by("-finished_at")[:LAST_RUNS])


def _stages(runs: list[IngestionRun]) -> dict[str, StageFigures]:
    totals = {
        "bytes": sum(run.bytes for run in runs),
        "chunks": sum(run.chunks for run in runs),
        "embedded": sum(run.embedded for run in runs),
        "tokens": sum(run.tokens for run in runs),
    }
    #: What each stage works on: chunks that are kept need no model.
    through = {"parse": ("bytes",), "chunk": ("tokens", "chunks"), "embed": ("embedded",)}
    names = list(dict.fromkeys(name for run in runs for name in run.timings))
    stages: dict[str, StageFigures] = {}
    for name in names:
        seconds = sum(float(run.timings.get(name, 0.0)) for run in runs)
        rates = {
            what: round(totals[what] / seconds, 1)
            for what in through.get(name, ("chunks",))
            if seconds > 0
        }
        stages[name] = StageFigures(round(seconds, 3), rates)
    return stages


_TABLES = """
    SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid)
    FROM pg_class c
    WHERE c.relkind = 'r' AND c.relname LIKE 'documents\\_%%'
      AND c.relnamespace = current_schema()::regnamespace
"""


def _table_bytes() -> dict[str, int]:
    """Of the chunks, of their indexes, and of everything of documents with its indexes."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        sizes = {name: (table, indexes) for name, table, indexes in cursor.fetchall()}
    table, indexes = sizes["documents_chunk"]
    return {
        "chunks": table,
        "chunk_indexes": indexes,
        "all": sum(table + indexes for table, indexes in sizes.values()),
    }
