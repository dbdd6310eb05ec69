"""Every test of the contract suite that asks for a corpus runs once on each store; on three servers those that could fail
because there are several: of readers and writers at the same time, of counts, and of pages of hits.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contracts.stores import CASES, Case, Corpus

ON_THREE_SERVERS = {"test_stores", "test_store_search", "test_store_words"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        on_three = metafunc.module.__name__.rpartition(".")[2] in ON_THREE_SERVERS
        names = [name for name in CASES if on_three or name != "cluster"]
        metafunc.parametrize("case", names, indirect=True, scope="module")


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def corpus(case: Case, request: pytest.FixtureRequest) -> Iterator[Corpus]:
    """An empty store."""
    made = Corpus(case(request))
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_corpus(case: Case, request: pytest.FixtureRequest) -> Iterator[Corpus]:
    """One store for a module of tests that only read."""
    made = Corpus(case(request))
    yield made
    made.close()
