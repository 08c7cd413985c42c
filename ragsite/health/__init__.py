"""Whether this site can work: probes of what it needs, asked seldom and never for long."""

from ragsite.health.look import Report, Watch
from ragsite.health.registry import Outcome, Probe, probes, register

__all__ = ["Outcome", "Probe", "Report", "Watch", "probes", "register"]
