"""Every example in the documentation does what the documentation says.

CONTRIBUTING.md tells how to write one. Where a page needs something else than what is there
already, it says so in an invisible comment.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import static
from tests.examples.pages import PAGES, ROOT, blocks
from tests.examples.runner import Reader
from tests.examples.site import Site, running_site

WITH_EXAMPLES = [page for page in PAGES if any(blocks(page))]
MOST_NOT_RUN = 36


def name_of(page: Path) -> str:
    """Its path in the repository."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_every_block_is_well_formed_and_names_commands_and_options_that_are_there(
    page: Path,
) -> None:
    faults = [f"{block}: {said}" for block in blocks(page) if (said := static.fault(block))]
    assert faults == []


def test_few_examples_cannot_be_run_and_each_says_why() -> None:
    every = [block for page in WITH_EXAMPLES for block in blocks(page)]
    left = [block for block in every if not block.is_run]
    assert len(every) > 200
    assert len(left) <= MOST_NOT_RUN
    assert [block for block in left if not block.said["not run"]] == []


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


@pytest.mark.nightly
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_a_page_shows_what_happens(site: Site, page: Path) -> None:
    site.empty()
    name = name_of(page).replace("/", "_").removesuffix(".md")
    reader = Reader(site, name, site.key)
    try:
        reader.read(list(blocks(page)))
    finally:
        reader.close()
    assert "\n\n".join(reader.faults) == ""
