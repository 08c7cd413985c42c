"""`manage.py services start|stop|status`: the embedded PostgreSQL and Valkey by hand."""

from argparse import ArgumentParser
from dataclasses import asdict

from django.conf import settings

from common.console import PARTIAL, CommandOutput, Options, ServiceCommand, add_json_option
from ragsite import embedded
from ragsite.bootstrap import used_services

_REPLACED_BY = {"postgresql": "DATABASE_URL", "valkey": "REDIS_URL"}


class Command(ServiceCommand):
    stays_in_main = True
    """Exit codes: 0 all is as asked, 1 a service in use is down, 2 an error."""

    help = (
        "Start, stop or describe the embedded PostgreSQL and Valkey under VAR_DIR. Exit code: 0"
        " done, 1 a service in use is down, 2 not done."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["start", "stop", "status"])
        add_json_option(parser)

    def run(self, options: Options) -> CommandOutput:
        action, used = options["action"], used_services()
        if action == "start":
            embedded.start(
                settings.VAR_DIR, only=used, chmod_parents=settings.EMBEDDED_CHMOD_PARENTS
            )
        elif action == "stop":
            embedded.stop(settings.VAR_DIR)
        services = embedded.status(settings.VAR_DIR)
        lines = []
        for service in services:
            words = [f"{service.name:10}", service.detail]
            if service.running:
                words += [f"version {service.version}", f"process {service.pid}"]
                words.append(service.endpoint)
            if service.name not in used:
                words.append(f"(not used: {_REPLACED_BY[service.name]} is set)")
            lines.append("  ".join(words))
        is_down = action != "stop" and not all(s.running for s in services if s.name in used)
        rows = [asdict(s) | {"used": s.name in used} for s in services]
        return CommandOutput(
            {"var_dir": str(settings.VAR_DIR), "services": rows},
            lines,
            code=PARTIAL if is_down else 0,
        )
