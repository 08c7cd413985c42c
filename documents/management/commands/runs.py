"""`manage.py runs list|show|cancel|retry`: what became of files, and what may still be done."""

from argparse import ArgumentParser
from typing import Any

from common.console import CommandOutput, Options, ServiceCommand
from common.errors import NotFound
from documents import services
from documents.models import IngestionItem, IngestionRun
from documents.run_progress import progress_event

LISTED = 20
FAILURES = 200


class Command(ServiceCommand):
    help = (
        "Ingestion runs: look at them, cancel one, try the failed files of one again. Exit code: 0"
        " done, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = self.add_actions(parser)
        listing = add("list", list_runs, "the newest, newest first")
        listing.add_argument("-n", type=int, default=LISTED, help=f"how many ({LISTED})")
        for name, act, meaning in (
            ("show", show_run, "how far it is, where its time went, and what failed why"),
            (
                "cancel",
                cancel_run,
                "end it now: what is ready stays, what waits is put back as it was",
            ),
            ("retry", self._retry, "queue its failed files again, as a run of their own"),
        ):
            add(name, act, meaning).add_argument("run", type=int, metavar="ID")

    def _retry(self, options: Options) -> CommandOutput:
        retried = services.retry_failed(run=_run(options))
        if retried.left_out:
            named = services.summarize_names(retried.left_out)
            self.stderr.write(f"Not stored here, to be brought again: {named}")
        return CommandOutput(_report(retried.run), [_line(retried.run)])


def list_runs(options: Options) -> CommandOutput:
    runs = IngestionRun.objects.select_related("collection")[: max(options["n"], 0)]
    return CommandOutput(list(map(_report, runs)), list(map(_line, runs)))


def show_run(options: Options) -> CommandOutput:
    run = _run(options)
    failed = run.items.filter(state=IngestionItem.State.FAILED)[:FAILURES]
    failures = [
        {"name": item.name, "code": item.error_code, "reason": item.error} for item in failed
    ]
    lines = [
        _line(run),
        *(f"  {stage:8} {seconds:,.1f} s" for stage, seconds in run.timings.items()),
        *(f"  failed: {item.name}: {item.error}" for item in failed),
    ]
    return CommandOutput({**_report(run), "failures": failures}, lines)


def cancel_run(options: Options) -> CommandOutput:
    run = services.cancel_run(run=_run(options))
    return CommandOutput(_report(run), [_line(run)])


def _run(options: Options) -> IngestionRun:
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
