"""Likeness of words for the checker of citations is reproducible."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab.embedding.models import BundledModels, SingleModel, WordLikeness, likeness_by


@pytest.fixture(scope="module")
def models(model_cache: Path) -> BundledModels:
    return BundledModels(model_cache / "kebab")


def made(models: BundledModels) -> WordLikeness:
    alike = likeness_by(models)
    assert alike is not None
    return alike


def test_synonyms_are_nearer_than_other_words(models: BundledModels) -> None:
    english, korean = made(models)(["respond", "조금"], ["answer", "garden", "약간", "정원"])
    assert english[0] == max(english)
    assert korean[2] == max(korean)


def test_the_same_words_are_always_equally_alike(models: BundledModels) -> None:
    alone = made(models)(["submit"], ["hand in"])
    among_others = made(models)(["respond", "submit"], ["answer", "hand in", "garden"])
    assert among_others[1][1] == pytest.approx(alone[0][0], abs=1e-5)
    again = made(models)
    assert again(["submit"], ["hand in"]) == again(["submit"], ["hand in"]) == alone


def test_comparing_no_words_gives_no_result(models: BundledModels) -> None:
    assert made(models)([], ["answer"]) == []
    assert made(models)(["answer"], []) == [[]]


def test_word_likeness_needs_the_multilingual_model(models: BundledModels, tmp_path: Path) -> None:
    assert likeness_by(SingleModel(models.embedders[0])) is None
