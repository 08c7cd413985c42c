"""Wrong settings of memory are said by `check`, and empty nobody's memory before."""

import re
from pathlib import Path
from typing import Any

import pytest

from memory import checks, quotas
from memory.checks import check_settings
from memory.models import Context
from memory.services import prune_to_quotas
from memory.tests.factories import make_scope, remember


def test_good_settings_say_nothing() -> None:
    assert check_settings(None) == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("THRESHOLD", 1.5, "memory.E001"),
        ("THRESHOLD", -0.1, "memory.E001"),
        ("RECENCY_WEIGHT", float("nan"), "memory.E001"),
        ("USER_ROWS", -1, "memory.E002"),
        ("WORKSPACE_BYTES", -1, "memory.E002"),
        ("MAX_FACTS", 0, "memory.E003"),
        ("EXTRACTION_MAX_TURNS", 0, "memory.E003"),
        ("HALF_LIFE_DAYS", 0.0, "memory.E004"),
        ("HALF_LIFE_DAYS", float("inf"), "memory.E004"),
        ("EXTRACTION_SECONDS", float("nan"), "memory.E004"),
        ("EXTRACTION_IDLE_SECONDS", -1.0, "memory.E005"),
        ("EXTRACTION_FEW_IDLE_SECONDS", -1.0, "memory.E005"),
        ("INJECTION_TOKENS", -1, "memory.E005"),
    ],
)
def test_a_bad_setting_is_named(settings: Any, name: str, value: Any, expected: str) -> None:
    setattr(settings, f"MEMORY_{name}", value)
    (message,) = check_settings(None)
    assert message.id == expected
    assert f"RAGSITE_MEMORY_{name} is {value}." == message.msg
    assert message.hint


@pytest.mark.parametrize("name", ["THRESHOLD", "RECENCY_WEIGHT"])
@pytest.mark.parametrize("value", [0, 1])
def test_the_ends_of_a_range_are_in_it(settings: Any, name: str, value: int) -> None:
    setattr(settings, f"MEMORY_{name}", value)
    assert check_settings(None) == []


def test_every_number_of_memory_is_checked() -> None:
    source = Path(checks.__file__).resolve().parents[1] / "ragsite" / "settings.py"
    numbers = re.findall(r'env\.(?:int|float)\(\s*"RAGSITE_MEMORY_(\w+)"', source.read_text())
    checked = {
        *checks._SHARES,
        *checks._NO_LIMIT_AT_ZERO,
        *checks._AT_LEAST_ONE,
        *checks._POSITIVE,
        *checks._NOT_NEGATIVE,
    }
    assert len(numbers) > 10
    assert set(numbers) == checked


@pytest.mark.django_db
def test_a_negative_quota_is_no_quota(settings: Any) -> None:
    remember(make_scope(), "I like tea")
    for name in checks._NO_LIMIT_AT_ZERO:
        setattr(settings, f"MEMORY_{name}", -1)
    assert prune_to_quotas() == []
    assert Context.objects.count() == 1
    assert quotas.Limits.of_user() == quotas.Limits.of_workspace() == quotas.Limits()
