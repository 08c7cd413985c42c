"""Spans for OpenTelemetry, where its packages are installed and an address to send them to is set:
`pip install -r requirements-otel.txt`, `OTEL_EXPORTER_OTLP_ENDPOINT`."""

import logging
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from django.http import HttpRequest

logger = logging.getLogger("ragsite.tracing")

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
#: They hold what was asked.
_WITH_QUERIES = ("http.url", "http.target", "url.full", "url.query")


def begin() -> bool:
    """Send spans from now on, if the environment says where to; whether it is so."""
    if not os.environ.get(ENDPOINT):
        return False
    try:
        exporter = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        batches = import_module("opentelemetry.sdk.trace.export")
        instrument(batches.BatchSpanProcessor(exporter.OTLPSpanExporter()))
    except ImportError as error:
        logger.warning(
            "%s is set, and no spans are sent: %s. Run `pip install -r requirements-otel.txt`.",
            ENDPOINT,
            error,
        )
        return False
    return True


def instrument(processor: Any) -> None:
    """Have requests, tasks, statements and commands of Valkey make spans for `processor`. Raises
    ImportError where OpenTelemetry is not installed."""
    resources = import_module("opentelemetry.sdk.resources")
    sdk = import_module("opentelemetry.sdk.trace")
    os.environ.setdefault("OTEL_SERVICE_NAME", "ragsite")
    provider = sdk.TracerProvider(resource=resources.Resource.create())
    provider.add_span_processor(processor)
    for name, kind, options in _INSTRUMENTORS:
        instrumentor = getattr(import_module(f"opentelemetry.instrumentation.{name}"), kind)()
        instrumentor.instrument(tracer_provider=provider, **options)


def _hide_question(span: Any, request: HttpRequest) -> None:
    """Take out the address, which may hold words: `http.route` tells which one it is."""
    known = cast("Mapping[str, Any]", getattr(span, "attributes", None) or {})
    for name in _WITH_QUERIES:
        if name in known:
            span.set_attribute(name, "")


_INSTRUMENTORS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "django",
        "DjangoInstrumentor",
        {"request_hook": _hide_question, "is_sql_commentor_enabled": False},
    ),
    ("celery", "CeleryInstrumentor", {}),
    ("psycopg", "PsycopgInstrumentor", {"enable_commenter": False}),
    ("redis", "RedisInstrumentor", {}),
)
