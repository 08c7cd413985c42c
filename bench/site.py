"""Searching a site's own documents: speed by size and mode, recall by filter.

    python -m bench.site speed [--chunks N ...] [--fail] [--json]
    python -m bench.site recall [--chunks N] [--json]

`bench.search` measures without a site.
"""

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")

from ragsite import bootstrap

if __name__ == "__main__":
    bootstrap.prepare(["manage.py", "evaluate"])
    from bench.measure_site import Command

    bootstrap.run(Command().run_from_argv, ["python -m", "bench.site", *sys.argv[1:]])
