"""`manage.py runs list|show|cancel|retry`: what became of files, and what may still be done."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from common.checks import SETTINGS
from common.errors import NotFound, RagsiteError
from documents import services
from documents.models import IngestionItem, IngestionRun
from documents.run_progress import progress_event

LISTED = 20
FAILURES = 200


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "Ingestion runs: look at them, cancel one, try the failed files of one again. Exit code: 0"
        " done, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        options = ArgumentParser(add_help=False)
        options.add_argument("--json", action="store_true", help="print JSON")
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", parents=[options], help="the newest, newest first")
        listing.add_argument("-n", type=int, default=LISTED, help=f"how many ({LISTED})")
        for name, meaning in (
            ("show", "how far it is, where its time went, and what failed why"),
            ("cancel", "end it now: what is ready stays, what waits is put back as it was"),
            ("retry", "queue its failed files again, as a run of their own"),
        ):
            action = actions.add_parser(name, parents=[options], help=meaning)
            action.add_argument("run", type=int, metavar="ID")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        act = {
            "list": self._list,
            "show": self._show,
            "cancel": self._cancel,
            "retry": self._retry,
        }[action]
        try:
            act(options)
        except RagsiteError as error:
            raise CommandError(str(error), returncode=2) from error

    def _list(self, options: dict[str, Any]) -> None:
        runs = IngestionRun.objects.select_related("collection")[: max(options["n"], 0)]
        if options["json"]:
            self._json([_report(run) for run in runs])
            return
        for run in runs:
            self.stdout.write(_line(run))

    def _show(self, options: dict[str, Any]) -> None:
        run = _run(options)
        failed = run.items.filter(state=IngestionItem.State.FAILED)[:FAILURES]
        if options["json"]:
            failures = [
                {"name": item.name, "code": item.error_code, "reason": item.error}
                for item in failed
            ]
            self._json({**_report(run), "failures": failures})
            return
        self.stdout.write(_line(run))
        for stage, seconds in run.timings.items():
            self.stdout.write(f"  {stage:8} {seconds:,.1f} s")
        for item in failed:
            self.stdout.write(f"  failed: {item.name}: {item.error}")

    def _cancel(self, options: dict[str, Any]) -> None:
        run = services.cancel_run(run=_run(options))
        self._say(run, options)

    def _retry(self, options: dict[str, Any]) -> None:
        retried = services.retry_failed(run=_run(options))
        if retried.left_out:
            named = services.summarize_names(retried.left_out)
            self.stderr.write(f"Not stored here, to be brought again: {named}")
        self._say(retried.run, options)

    def _say(self, run: IngestionRun, options: dict[str, Any]) -> None:
        if options["json"]:
            self._json(_report(run))
        else:
            self.stdout.write(_line(run))

    def _json(self, report: Any) -> None:
        self.stdout.write(json.dumps(report, ensure_ascii=False, indent=2))


def _run(options: dict[str, Any]) -> IngestionRun:
    run = IngestionRun.objects.select_related("collection").filter(pk=options["run"]).first()
    if run is None:
        raise NotFound(f"There is no run {options['run']}. `manage.py runs list` shows the newest.")
    return run


def _report(run: IngestionRun) -> dict[str, Any]:
    return {
        **progress_event(run)[1],
        "collection": run.collection.slug,
        "source": run.source,
        "retry_of": run.retry_of_id,
        "started_at": run.started_at.isoformat(),
        "finished_at": run.finished_at.isoformat() if run.finished_at else None,
    }


def _line(run: IngestionRun) -> str:
    counts = (
        (run.ready, "ready"),
        (run.skipped, "unchanged"),
        (run.failed, "failed"),
        (run.cancelled, "cancelled"),
    )
    told = ", ".join(f"{number:,} {word}" for number, word in counts if number) or "nothing yet"
    return (
        f"{run.pk:6} {run.get_state_display():11} {run.started_at:%Y-%m-%d %H:%M}"
        f"  {run.collection.slug}: {told} of {run.total:,}  {run.source[:60]}"
    ).rstrip()
