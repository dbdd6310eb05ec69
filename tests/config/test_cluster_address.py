"""Addresses of clusters are read and written; faulty ones are refused with an example."""

from __future__ import annotations

import pytest

import kebab
from kebab.config.cluster_address import ClusterAddress, Node, cluster_address
from kebab.core.errors import UsageError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("qdrant://127.0.0.1:6533/notes", ClusterAddress((Node("127.0.0.1", 6533),), "notes", False)),
        ("qdrant://search.lan/notes", ClusterAddress((Node("search.lan", 6333),), "notes", False)),
        ("qdrant://search.lan/notes/", ClusterAddress((Node("search.lan", 6333),), "notes", False)),
        ("qdrant://search.lan:443/my-notes_2?tls=true", ClusterAddress((Node("search.lan", 443),), "my-notes_2", True)),
        ("qdrant://search.lan/notes?tls=false", ClusterAddress((Node("search.lan", 6333),), "notes", False)),
        (
            "qdrant://a:1,[::2]:2,c/notes",
            ClusterAddress((Node("a", 1), Node("::2", 2), Node("c", 6333)), "notes", False),
        ),
        ("qdrant://[::1]:6333/notes", ClusterAddress((Node("::1", 6333),), "notes", False)),
    ],
)
def test_an_address_is_read_and_written_out_again(url: str, address: ClusterAddress) -> None:
    assert cluster_address(url) == address
    assert cluster_address(str(address)) == address


@pytest.mark.parametrize(
    "url",
    ["qdrant://", "qdrant:///notes", "qdrant://host", "qdrant://host/", "qdrant://host/a/b", "qdrant://host/a.b", "qdrant://host:port/notes",
     "qdrant://host:99999/notes", "qdrant://host:0/notes", "qdrant://host,/notes", "qdrant://host/notes?tls=maybe", "qdrant://host/notes?tsl=true", "qdrant://host/notes?x",
     "qdrant://host/notes#part", "qdrant://[::1/notes", "http://host/notes", "postgres://host/notes"],
)  # fmt: skip
def test_a_faulty_address_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        cluster_address(url)
    assert "qdrant://127.0.0.1:6333/notes" in (refused.value.hint or "")


@pytest.mark.parametrize(
    "url", ["qdrant://:hush@host/notes", "qdrant://host/notes?api_key=hush", "qdrant://host/notes?tls=hush"]
)
def test_a_key_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        cluster_address(url)
    assert "hush" not in f"{refused.value.message} {refused.value.hint}"


def test_an_unknown_suffix_of_an_address_is_named_in_the_error() -> None:
    """Regression: the error named the address instead of its suffix."""
    with pytest.raises(
        UsageError, match=r"What follows 'qdrant://127.0.0.1/notes' is not understood: only \?tls=true is"
    ):
        cluster_address("qdrant://127.0.0.1/notes?foo=1")


@pytest.mark.parametrize("place", ["qdrant:/127.0.0.1/notes", "qdrant:notes"])
def test_a_cluster_address_with_one_slash_is_refused_and_not_taken_for_a_file(place: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a cluster"):
        kebab.open(place)
