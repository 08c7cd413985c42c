"""`manage.py reembed --to SPACE`: move chunks to another model while people search."""

from argparse import ArgumentParser

from common.console import FATAL, PARTIAL, CommandOutput, Options, ServiceCommand
from common.errors import InvalidInput
from common.text import pluralized
from documents import services
from documents.management.cli import ProgressBar, add_collection_options, find_collection
from documents.models import Reembedding

State = Reembedding.State


class Command(ServiceCommand):
    help = (
        "Embed everything, or one collection, with another model. Searches find every document all"
        " the while, in the old space or the new one. It can be stopped or killed and started"
        " again. Exit code: 0 done, 1 stopped, 2 it cannot be done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--to", metavar="SPACE", help="see `manage.py spaces list`")
        add_collection_options(parser, "slug; all collections where it is left out", required=False)
        parser.add_argument(
            "--queue", action="store_true", help="leave the work to the embedding workers"
        )
        parser.add_argument("--cancel", action="store_true", help="stop what is running")

    def is_about_site(self, options: Options) -> bool:
        return not options["collection"]

    def run(self, options: Options) -> CommandOutput:
        target = services.get_space(options["to"]) if options["to"] else None
        if options["cancel"]:
            stopped = [
                f"stopped: {row}, {row.done:,} of {pluralized(row.total, 'chunk')}. Go on with"
                f" `manage.py reembed --to {row.target.name}`, or go back to another space the"
                " same way."
                for row in services.cancel_reembedding(target=target)
            ]
            return CommandOutput(lines=stopped or ["nothing is being re-embedded"])
        if target is None:
            raise InvalidInput("Say where to: --to SPACE. See `manage.py spaces list`.")
        collection = find_collection(options)
        if options["queue"]:
            row = services.queue_reembedding(target=target, collection=collection)
        else:
            try:
                with ProgressBar("chunks", quiet=options["json"]) as bar:
                    row = services.reembed_inline(
                        target=target,
                        collection=collection,
                        on_progress=lambda row: bar.show(row.done, row.total),
                    )
            except KeyboardInterrupt:
                message = "stopped; start it again to go on. Both spaces are searched."
                return CommandOutput(warnings=[message], code=PARTIAL)
        is_partial = row.state == State.STOPPED or (
            row.state == State.RUNNING and not options["queue"]
        )
        if row.error:
            self.stderr.write(row.error)
        if is_partial:
            self.stderr.write("it was stopped, or goes on in another process")
        report = {
            "to": row.target.name,
            "state": row.state,
            "total": row.total,
            "done": row.done,
            "refused": len(row.refused),
            "error": row.error,
        }
        line = f"{row}: {row.done:,} of {pluralized(row.total, 'chunk')} moved ({row.state})"
        code = FATAL if row.state == State.FAILED else PARTIAL if is_partial else 0
        return CommandOutput(report, [line], code=code)
