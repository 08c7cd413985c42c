"""`manage.py reembed --to SPACE`: move chunks to another model while people search."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.services import DEFAULT_WORKSPACE, get_or_create_workspace
from common.checks import SETTINGS
from common.errors import RagsiteError
from common.text import pluralized
from documents import services
from documents.management.cli import ProgressBar
from documents.models import EmbeddingSpace, Reembedding
from inference.interfaces import InferenceError

State = Reembedding.State
STOPPED = 1
FATAL = 2


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "Embed everything, or one collection, with another model. Searches find every document all"
        " the while, in the old space or the new one. It can be stopped or killed and started"
        " again. Exit code: 0 done, 1 stopped, 2 it cannot be done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--to", metavar="SPACE", help="see `manage.py spaces list`")
        parser.add_argument("--collection", help="slug; all collections where it is left out")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        parser.add_argument(
            "--queue", action="store_true", help="leave the work to the embedding workers"
        )
        parser.add_argument("--cancel", action="store_true", help="stop what is running")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            target = services.get_space(options["to"]) if options["to"] else None
            if options["cancel"]:
                stopped = services.cancel_reembedding(target=target)
                for row in stopped:
                    self.stdout.write(
                        f"stopped: {row}, {row.done:,} of {pluralized(row.total, 'chunk')}. Go on"
                        f" with `manage.py reembed --to {row.target.name}`, or go back to another"
                        " space the same way."
                    )
                if not stopped:
                    self.stdout.write("nothing is being re-embedded")
                return
            if target is None:
                message = "Say where to: --to SPACE. See `manage.py spaces list`."
                raise CommandError(message, returncode=FATAL)
            row = self._reembed(target, options)
        except (RagsiteError, InferenceError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        except KeyboardInterrupt:
            self.stderr.write("stopped; start it again to go on. Both spaces are searched.")
            sys.exit(STOPPED)
        self._report(row, as_json=options["json"], queued=options["queue"])

    def _reembed(self, target: EmbeddingSpace, options: dict[str, Any]) -> Reembedding:
        collection = None
        if options["collection"]:
            workspace = get_or_create_workspace(slug=options["workspace"])
            collection = services.get_collection(workspace=workspace, slug=options["collection"])
        if options["queue"]:
            return services.queue_reembedding(target=target, collection=collection)
        quiet = options["json"] or not sys.stderr.isatty()
        with ProgressBar("chunks", quiet=quiet) as bar:
            return services.reembed_inline(
                target=target,
                collection=collection,
                on_progress=lambda row: bar.show(row.done, row.total),
            )

    def _report(self, row: Reembedding, *, as_json: bool, queued: bool) -> None:
        if as_json:
            report = {
                "to": row.target.name,
                "state": row.state,
                "total": row.total,
                "done": row.done,
                "refused": len(row.refused),
                "error": row.error,
            }
            self.stdout.write(json.dumps(report, ensure_ascii=False, indent=2))
        else:
            self.stdout.write(
                f"{row}: {row.done:,} of {pluralized(row.total, 'chunk')} moved ({row.state})"
            )
        if row.error:
            self.stderr.write(row.error)
        if row.state == State.FAILED:
            sys.exit(FATAL)
        if row.state == State.STOPPED or (row.state == State.RUNNING and not queued):
            self.stderr.write("it was stopped, or goes on in another process")
            sys.exit(STOPPED)
