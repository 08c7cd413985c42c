"""Application configuration."""

from django.apps import AppConfig
from django.conf import settings


class CommonConfig(AppConfig):
    name = "common"

    def ready(self) -> None:
        from django.utils.formats import number_format  # noqa: PLC0415
        from django.utils.translation import gettext  # noqa: PLC0415

        # Apps are not ready before.
        from common import checks, pgvector, rls, shards, translation  # noqa: PLC0415

        translation.use_functions(
            gettext=gettext,
            format_number=lambda number, digits: number_format(number, digits, force_grouping=True),
        )

        checks.register()
        rls.secure_after_migrate()
        pgvector.register_on_connect()
        if settings.DATABASE_SHARDS:
            shards.connect_signals()
