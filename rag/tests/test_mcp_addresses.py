"""What resources are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.mcp.resource_uris import ResourceUri, UnknownResource, parse_uri

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@given(TEXTS, st.one_of(st.just(""), TEXTS), st.integers(1, 2**31 - 1))
def test_every_collection_and_key_has_an_address_that_is_read_again(
    collection: str, key: str, version: int
) -> None:
    for address in (
        ResourceUri(collection, key),
        ResourceUri(collection, key, version if key else None),
    ):
        assert address.uri.isascii()
        assert parse_uri(address.uri) == address


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_no_two_documents_share_an_address(one: str, its: str, other: str, theirs: str) -> None:
    first, second = ResourceUri(one, its), ResourceUri(other, theirs)
    assert (first.uri == second.uri) == (first == second)


@given(st.text(max_size=80))
def test_whatever_is_asked_for_is_an_address_or_refused(text: str) -> None:
    for uri in (text, f"ragsite://{text}"):
        try:
            address = parse_uri(uri)
        except UnknownResource:
            continue
        assert parse_uri(address.uri) == address


def test_slashes_of_a_key_may_stand_as_they_are() -> None:
    assert parse_uri("ragsite://handbook/a/b c.md") == ResourceUri("handbook", "a/b c.md")
    assert ResourceUri("handbook", "a/b c.md").uri == "ragsite://handbook/a%2Fb%20c.md"
    assert parse_uri("ragsite://handbook/") == ResourceUri("handbook")
    assert parse_uri("ragsite://handbook/a?version=3") == ResourceUri("handbook", "a", 3)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "handbook/a",
        "file:///etc/passwd",
        "ragsite:handbook",
        "ragsite://",
        "ragsite:///a",
        "ragsite://handbook/a?version=0",
        "ragsite://handbook/a?version=99999999999",
        "ragsite://handbook/a?version=²",
        "ragsite://handbook/a?v=1",
        "ragsite://handbook?version=1",
        "ragsite://handbook/a#part",
        "ragsite://handbook/%ff",
    ],
)
def test_other_addresses_are_refused_with_the_form_of_ours(uri: str) -> None:
    with pytest.raises(UnknownResource, match="percent-encoded"):
        parse_uri(uri)
