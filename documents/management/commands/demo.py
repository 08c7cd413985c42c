"""`manage.py demo`: a workspace, a login and the project's own documentation to search in."""

from itertools import chain
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from accounts.services import ensure_login, get_or_create_workspace
from common.checks import SETTINGS
from common.errors import RagsiteError
from common.text import pluralized
from documents import services
from documents.ingestion.sources import SourceError, discover
from inference.interfaces import InferenceError

USERNAME = "demo"
COLLECTION = "ragsite-docs"


class Command(BaseCommand):
    # Checks of pages and URLs would take longer than many a run of this.
    requires_system_checks = [SETTINGS]

    help = (
        "Make the login “demo” (its random password is printed once) and ingest docs/ into the"
        " collection “ragsite-docs”. Safe to run again. Exit code: 0 there, 2 not."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = get_or_create_workspace()
        _, password = ensure_login(username=USERNAME, workspace=workspace)
        # First of all: it is shown only this once, whatever happens next.
        self.stdout.write(f"Login: {USERNAME}")
        self.stdout.write(
            f"Password: {password}"
            if password
            else f"Password: as before (reset it: manage.py changepassword {USERNAME})"
        )
        try:
            collection = services.get_or_create_collection(workspace=workspace, slug=COLLECTION)
            run = services.ingest_inline(
                collection=collection,
                sources=chain(
                    discover([settings.BASE_DIR / "README.md"]),
                    discover([settings.BASE_DIR / "docs"], glob="**/*.md"),
                ),
                source="the project's own documentation",
            )
        except (RagsiteError, SourceError, InferenceError) as error:
            raise CommandError(str(error), returncode=2) from error
        self.stdout.write(
            f"Demo corpus: {pluralized(services.chunk_count(collection=collection), 'passage')} of"
            f" {pluralized(run.ready + run.skipped, 'document')} in “{collection.name}”."
        )
