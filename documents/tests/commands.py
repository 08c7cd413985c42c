"""Run a management command as a shell would see it."""

from io import StringIO

from django.core.management import CommandError, call_command


def run_command(name: str, *arguments: str) -> tuple[int, str]:
    """Its status, and what it printed or failed with."""
    out, err = StringIO(), StringIO()
    try:
        call_command(name, *arguments, stdout=out, stderr=err)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue() + err.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue() + err.getvalue()
