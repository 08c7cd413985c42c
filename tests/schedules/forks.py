"""A Python that has imported what workers need, and forks one for each line that it reads: a worker
is a process of its own, and comes up in a tenth of the time."""

import json
import os
import signal
import sys
from typing import Any, NoReturn


def main() -> None:
    """Lines are JSON: `arguments` of celery and the file to `log` into. Answers are process ids."""
    import django

    django.setup()
    # Imported here, once: the tasks, and what the first of them would import.
    import memory.embedding  # noqa: F401
    from ragsite.celery import app

    app.loader.import_default_modules()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are not waited for
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _become(app, **json.loads(line))
        print(pid, flush=True)  # noqa: T201


def _become(app: Any, arguments: list[str], log: str) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, output), (2, output)):
        os.dup2(source, target)
    sys.stdin = open(0)  # noqa: SIM115 (as long as the process lives)
    try:
        app.start(arguments)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
