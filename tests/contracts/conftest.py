"""Every test of the contract suite that asks for a corpus runs once on each store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contracts.stores import CASES, Case, Corpus


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def corpus(case: Case, request: pytest.FixtureRequest) -> Iterator[Corpus]:
    """In which nothing is yet."""
    made = Corpus(case(request))
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_corpus(case: Case, request: pytest.FixtureRequest) -> Iterator[Corpus]:
    """One for a whole module of tests that only read."""
    made = Corpus(case(request))
    yield made
    made.close()
