"""The threat model names tests that are there."""

import re

from django.conf import settings

PAGE = settings.BASE_DIR / "docs" / "threat-model.md"
THREATS = PAGE.read_text().split("## Threats")[1].split("\n## ")[0]
ROWS = [line for line in THREATS.splitlines() if line.startswith("| ")][1:]


def test_every_fence_is_shown_by_tests_that_exist() -> None:
    assert len(ROWS) > 15
    for row in ROWS:
        files = re.findall(r"`([\w/]+\.py)`", row.split("|")[3])
        assert files, row
        assert [file for file in files if not (settings.BASE_DIR / file).is_file()] == [], row


def test_the_security_page_leads_to_it() -> None:
    assert "(docs/threat-model.md)" in (settings.BASE_DIR / "SECURITY.md").read_text()
