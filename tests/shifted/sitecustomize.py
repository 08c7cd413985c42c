"""On the path of a Python, this shifts all its clocks by CLOCK_SHIFT_SECONDS, before anything else
is imported."""

import os
from datetime import UTC, datetime, timedelta

import time_machine

_shift = timedelta(seconds=float(os.environ["CLOCK_SHIFT_SECONDS"]))
time_machine.travel(datetime.now(UTC) + _shift, tick=True).start()
