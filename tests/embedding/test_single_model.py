"""One model for everything: it is the primary space of every text, and every query enters it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kebab.core.ports import SpaceQuery
from kebab.embedding.models import SingleModel

if TYPE_CHECKING:
    from tests.embedding.conftest import TinyModel


@pytest.mark.parametrize("text", ["how to set up version control", "버전 관리", "Съешь ещё", "123", ""])
def test_with_a_single_model_every_text_and_query_uses_its_space(tiny: TinyModel, text: str) -> None:
    tiny.write()
    embedder = tiny.embedder()
    models = SingleModel(embedder)
    assert models.embedders == (embedder,)
    assert models.primary_of(text) is embedder
    assert models.for_query(text) == [SpaceQuery(embedder, primary=None, floor=-1.0, trust=1.0)]


@pytest.mark.parametrize("other_scripts", [True, False])
def test_with_a_single_model_there_is_no_secondary_space(tiny: TinyModel, other_scripts: bool) -> None:
    tiny.write()
    assert SingleModel(tiny.embedder()).secondary_for_all(other_scripts=other_scripts) is None
