"""Tuning recommends only settings that help on held-out queries."""

from __future__ import annotations

from pathlib import Path

import pytest

import kebab
from kebab.core.errors import UsageError
from kebab.evaluation.files import GoldenQuery, GoldenSet
from kebab.evaluation.runner import RunOptions
from kebab.evaluation.tuning import tune

THINGS = "anchor basket candle dagger engine funnel garden hammer island jacket kettle ladder magnet needle orange pencil quiver ribbon saddle tunnel".split()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that has, for each topic, the expected page and a page with another title that mentions the topic
    often.
    """
    root = tmp_path_factory.mktemp("things")
    notes = root / "notes"
    notes.mkdir()
    for number, thing in enumerate(THINGS):
        (notes / f"{thing}.md").write_text(
            f"# {thing}\n\nHow to look after it, what it costs and where to find number {number} in the shop today.\n"
        )
        (notes / f"talk{number}.md").write_text(
            f"# Talk {number}\n\nThe {thing} again, and the {thing}, that {thing} of {number}.\n"
        )
    path = root / "things.sqlite"
    with kebab.open(path) as knowledge_base:
        knowledge_base.ingest(notes)
    return path


def _golden(things: list[str]) -> GoldenSet:
    return GoldenSet(
        "golden.yaml", "yaml", "0" * 64, tuple(GoldenQuery(thing, f"{thing}s", {f"{thing}.md": 1}) for thing in things)
    )


def test_settings_that_help_on_held_out_queries_are_recommended(database: Path) -> None:
    tried: list[tuple[int, int]] = []
    with kebab.open(database, search_title_weight=0.1, search_heading_weight=0.1) as knowledge_base:
        tuning = tune(
            knowledge_base,
            _golden(THINGS),
            RunOptions(search={"mode": "lexical"}),
            tell=lambda *told: tried.append(told),
        )
        again = tune(knowledge_base, _golden(THINGS), RunOptions(search={"mode": "lexical"}))
        assert knowledge_base.settings.search.title_weight == 0.1
    assert tuning.current < 0.7
    assert tuning.held_out == 1.0
    assert tuning.low > 0
    assert tuning.helps
    assert set(tuning.settings) <= {"search.title_weight", "search.heading_weight"}
    assert tuning.settings
    assert vars(again.trials[0]) == vars(tuning.trials[0])
    assert tried[-1][0] == len(tuning.trials)


def test_nothing_is_recommended_if_all_queries_are_answered(database: Path) -> None:
    with kebab.open(database) as knowledge_base:
        tuning = tune(knowledge_base, _golden(THINGS), RunOptions(search={"mode": "lexical"}))
    assert tuning.current == 1.0
    assert not tuning.helps
    assert tuning.settings == {}


def test_a_lucky_candidate_is_not_recommended(database: Path) -> None:
    """The judgements are random, so the best settings on some queries do not help on the others."""
    wanted = {thing: (f"{thing}.md" if number % 2 else f"talk{number}.md") for number, thing in enumerate(THINGS)}
    golden = GoldenSet(
        "golden.yaml", "yaml", "0" * 64, tuple(GoldenQuery(thing, thing, {path: 1}) for thing, path in wanted.items())
    )
    with kebab.open(database) as knowledge_base:
        tuning = tune(knowledge_base, golden, RunOptions(search={"mode": "lexical"}))
    assert not tuning.helps


def test_too_few_queries_are_refused(database: Path) -> None:
    with kebab.open(database) as knowledge_base, pytest.raises(UsageError, match="too few"):
        tune(knowledge_base, _golden(THINGS[:9]), RunOptions())


def test_hybrid_search_has_fusions_to_try(database: Path, toy: type, tmp_path: Path) -> None:
    with toy.open(tmp_path / "toy.sqlite") as knowledge_base:  # type: ignore[attr-defined]
        knowledge_base.ingest(database.parent / "notes")
        tuning = tune(knowledge_base, _golden(THINGS[:10]), RunOptions())
    fusions = {trial.settings.get("search.hybrid_fusion", "rrf") for trial in tuning.trials}
    assert fusions == {"rrf", "convex"}
    assert any("search.vector_weight" in trial.settings for trial in tuning.trials)
    assert any("search.title_weight" in trial.settings for trial in tuning.trials)
