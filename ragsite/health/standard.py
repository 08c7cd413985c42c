"""The probes of every site."""

from django.conf import settings

from ragsite.health import database, replicas, surroundings
from ragsite.health.registry import Probe, register


def register_all() -> None:
    """What no request can do without is required. Without Valkey, workers, a model or a place for
    uploads people still search and read: a load balancer must not take that from them too."""
    register(Probe("database", database.look_at_server, is_required=True))
    register(Probe("extensions", database.look_at_extensions, is_required=True))
    register(Probe("migrations", database.look_at_migrations, is_required=True))
    if settings.DATABASE_REPLICAS:
        register(Probe("replicas", replicas.look_at_replicas))
    register(Probe("broker", surroundings.look_at_broker))
    for probe in surroundings.queue_probes():
        register(probe)
    register(Probe("model", surroundings.look_at_models))
    register(Probe("storage", surroundings.look_at_storage))
