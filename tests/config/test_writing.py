"""Writing values into a config file changes nothing else in it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.config.loading import load_settings
from kebab.config.writing import _with_value, set_values
from kebab.core.errors import ConfigError
from kebab.interfaces.cli.configuration import commented_config


def test_a_file_is_made_when_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "config.toml"
    set_values(path, {"search.hybrid_fusion": "convex", "search.rrf_k": 10, "search.title_weight": 4.0})
    search = load_settings(path, environment={}).settings.search
    assert (search.hybrid_fusion, search.rrf_k, search.title_weight) == ("convex", 10, 4.0)
    assert [file.name for file in path.parent.iterdir()] == ["config.toml"]


def test_comments_order_and_other_values_stay(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("# mine\n[search]\ndefault_k = 5  # few\nrrf_k=60 # the constant\n\n[store]\npath = 'x.sqlite'\n")
    set_values(path, {"search.rrf_k": 10, "search.title_weight": 4.0, "analysis.korean": "bigrams"})
    assert path.read_text() == (
        "# mine\n[search]\ntitle_weight = 4.0\ndefault_k = 5  # few\nrrf_k=10 # the constant\n\n[store]\npath = 'x.sqlite'\n\n"
        '[analysis]\nkorean = "bigrams"\n'
    )


def test_values_in_a_file_made_by_init_can_be_set(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(commented_config(), encoding="utf-8")
    set_values(path, {"search.vector_weight": 2.0})
    loaded = load_settings(path, environment={})
    assert loaded.settings.search.vector_weight == 2.0
    assert list(loaded.origins) == ["search.vector_weight"]


def test_an_invalid_value_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[search]\nrrf_k = 20\n")
    with pytest.raises(ConfigError):
        set_values(path, {"search.rrf_k": 0})
    assert path.read_text() == "[search]\nrrf_k = 20\n"
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ""] == ["config.toml"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["search", "store", "ask"]), st.sampled_from(["a", "b", "ab"]), st.integers(0, 9)),
        max_size=12,
    )
)
def test_the_last_value_of_each_key_is_the_one_that_is_read(written: list[tuple[str, str, int]]) -> None:
    text, expected = "", dict[str, dict[str, int]]()
    for section, name, value in written:
        text = _with_value(text, section, name, str(value))
        expected.setdefault(section, {})[name] = value
    assert tomllib.loads(text) == expected
