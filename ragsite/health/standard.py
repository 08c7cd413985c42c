"""The probes of every site."""

from django.conf import settings

from ragsite.health import database, replicas, surroundings
from ragsite.health.registry import Probe


def probes() -> list[Probe]:
    """What no request can do without is required. Without Valkey, workers, a model or a place for
    uploads people still search and read: a load balancer must not take that from them too."""
    return [
        Probe("database", database.look_at_server, is_required=True),
        Probe("extensions", database.look_at_extensions, is_required=True),
        Probe("migrations", database.look_at_migrations, is_required=True),
        *([Probe("replicas", replicas.look_at_replicas)] if settings.DATABASE_REPLICAS else []),
        Probe("broker", surroundings.look_at_broker),
        *surroundings.queue_probes(),
        Probe("model", surroundings.look_at_models),
        Probe("storage", surroundings.look_at_storage),
    ]
