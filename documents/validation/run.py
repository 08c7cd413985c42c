"""All probes, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.module_loading import autodiscover_modules

from documents.validation import (
    chunks,
    documents,
    files,
    indexes,
    lexical,
    runs,
    spaces,
    tenants,
    vectors,
)
from documents.validation.base import Finding, Probe, Scope

_probes: list[Probe] = [
    *documents.PROBES,
    *chunks.PROBES,
    *vectors.PROBES,
    *spaces.PROBES,
    *runs.PROBES,
    *tenants.PROBES,
    *lexical.PROBES,
    *indexes.PROBES,
    *files.PROBES,
]


@dataclass(frozen=True, slots=True)
class Report:
    """What was looked for, what was found and is so still, and how much was mended by check."""

    checks: tuple[str, ...]
    findings: tuple[Finding, ...]
    fixed: dict[str, int] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong (any more)."""
        return not self.findings


def register(probes: Sequence[Probe]) -> None:
    """Add an app's own probes: called by its module `validation`, which is found by its name."""
    _probes.extend(probe for probe in probes if probe not in _probes)


def validate(*, collection_id: int | None = None, fix: bool = False) -> Report:
    """Look for everything, in one collection or all. With `fix` mend what is safe to mend, then
    look again. Must not be called inside a transaction where it is to fix."""
    autodiscover_modules("validation")
    scope = Scope(collection_id)
    names = tuple(check.name for probe in _probes for check in probe.checks)
    findings = _find(scope)
    fixed: dict[str, int] = {}
    if fix and findings:
        for finding in findings:
            if finding.check.fix is not None:
                fixed[finding.check.name] = finding.check.fix(scope)
        findings = _find(scope)
    return Report(names, tuple(findings), fixed)


def _find(scope: Scope) -> list[Finding]:
    return [finding for probe in _probes for finding in probe.findings(scope)]
