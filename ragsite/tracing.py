"""OpenTelemetry spans, where its packages are installed and an endpoint is set: `pip install -r
requirements-otel.txt`, `OTEL_EXPORTER_OTLP_ENDPOINT`.
"""

import logging
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from django.http import HttpRequest

logger = logging.getLogger("ragsite.tracing")

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
#: Attributes that contain the question.
_URL_ATTRIBUTES = ("http.url", "http.target", "url.full", "url.query")


def start_tracing() -> bool:
    """Start exporting spans if an endpoint is set; returns whether it is."""
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
    """Create spans for requests, tasks, statements and Valkey commands. Raises ImportError where
    OpenTelemetry is not installed.
    """
    resources = import_module("opentelemetry.sdk.resources")
    sdk = import_module("opentelemetry.sdk.trace")
    os.environ.setdefault("OTEL_SERVICE_NAME", "ragsite")
    provider = sdk.TracerProvider(resource=resources.Resource.create())
    provider.add_span_processor(processor)
    for name, kind, options in _INSTRUMENTORS:
        instrumentor = getattr(import_module(f"opentelemetry.instrumentation.{name}"), kind)()
        instrumentor.instrument(tracer_provider=provider, **options)


def _remove_url(span: Any, request: HttpRequest) -> None:
    """Remove the URL, which may contain a question: `http.route` identifies the page."""
    known = cast("Mapping[str, Any]", getattr(span, "attributes", None) or {})
    for name in _URL_ATTRIBUTES:
        if name in known:
            span.set_attribute(name, "")


_INSTRUMENTORS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "django",
        "DjangoInstrumentor",
        {"request_hook": _remove_url, "is_sql_commentor_enabled": False},
    ),
    ("celery", "CeleryInstrumentor", {}),
    ("psycopg", "PsycopgInstrumentor", {"enable_commenter": False}),
    ("redis", "RedisInstrumentor", {}),
)
