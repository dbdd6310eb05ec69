"""Layers of settings (defaults < config file < environment < flags), origins, and errors with place, key and bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab.config.loading import config_folder, data_folder, load_settings
from kebab.core.errors import ConfigError


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def write(config: Path, text: str) -> Path:
    config.write_text(text, encoding="utf-8")
    return config


def refused(
    config: Path | None = None, environment: dict[str, str] | None = None, flags: dict[str, object] | None = None
) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_settings(config, environment or {}, flags)
    assert caught.value.code == "invalid_config"
    assert caught.value.hint
    return caught.value


def test_each_layer_overrides_the_one_below_and_is_named_as_origin(config: Path) -> None:
    write(config, "[search]\ndefault_k = 2\nsnippet_chars = 50\nmatch = 'any'\n")
    environment = {"KEBAB_SEARCH_SNIPPET_CHARS": "60", "KEBAB_SEARCH_MATCH": "all", "OTHER": "x"}
    loaded = load_settings(config, environment, {"search.match": "auto", "store.path": None})
    search = loaded.settings.search
    assert (search.default_k, search.snippet_chars, search.match, search.title_weight) == (2, 60, "auto", 8.0)
    assert loaded.origins == {
        "search.default_k": str(config),
        "search.snippet_chars": "environment KEBAB_SEARCH_SNIPPET_CHARS",
        "search.match": "flag",
    }
    assert loaded.config_file == config


def test_without_file_variables_and_flags_there_are_only_defaults(tmp_path: Path) -> None:
    loaded = load_settings(None, {"XDG_CONFIG_HOME": str(tmp_path)})
    assert (loaded.origins, loaded.config_file) == ({}, None)


def test_the_config_file_is_found_in_the_config_folder_or_named_by_variable_or_argument(
    tmp_path: Path, config: Path
) -> None:
    folder = tmp_path / "xdg" / "kebab"
    folder.mkdir(parents=True)
    write(folder / "config.toml", "[search]\ndefault_k = 3\n")
    write(config, "[search]\ndefault_k = 4\n")
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert load_settings(None, environment).settings.search.default_k == 3
    assert load_settings(None, {**environment, "KEBAB_CONFIG": str(config)}).settings.search.default_k == 4
    assert load_settings(config, environment).settings.search.default_k == 4


def test_a_named_config_file_must_exist(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.toml").path == str(tmp_path / "none.toml")
    assert refused(None, {"KEBAB_CONFIG": str(tmp_path / "none.toml")})


def test_default_top_is_another_name_of_default_k(config: Path) -> None:
    loaded = load_settings(write(config, "[search]\ndefault_top = 5\n"), {})
    assert loaded.settings.search.default_k == 5
    assert "search.default_k" in loaded.origins
    assert "twice" in refused(write(config, "[search]\ndefault_top = 5\ndefault_k = 6\n")).message


def test_the_alias_of_a_setting_works_in_the_environment_and_as_a_flag(config: Path) -> None:
    by_alias = {"KEBAB_SEARCH_DEFAULT_TOP": "5"}
    loaded = load_settings(write(config, "[search]\ndefault_k = 6\n"), by_alias)
    assert loaded.settings.search.default_k == 5
    assert loaded.origins["search.default_k"] == "environment KEBAB_SEARCH_DEFAULT_TOP"
    assert load_settings(config, by_alias, {"search.default_top": 7}).settings.search.default_k == 7
    assert "KEBAB_SEARCH_DEFAULT_TOP" in refused(config, {"KEBAB_SEARCH_DEFAULT_TOP": "0"}).message
    both = refused(config, {**by_alias, "KEBAB_SEARCH_DEFAULT_K": "5"})
    assert "KEBAB_SEARCH_DEFAULT_TOP and KEBAB_SEARCH_DEFAULT_K" in both.message


@pytest.mark.parametrize(
    ("text", "named", "hint"),
    [
        ("[search]\ndefualt_k = 5\n", "search.defualt_k", "search.default_k"),
        ("[serach]\ndefault_k = 5\n", "serach", "search"),
        ("[serach]\n", "serach", "search"),
        ("search = 5\n", "search is a section", "[search]"),
        ("[search]\nbogus = 1\n", "search.bogus", "kb config show"),
        ("[ingest]\nmax_memory_mb = 1\n", "ingest.max_memory_mb", "128 to 1048576"),
        ("default_k = 5\n", "default_k", ""),
        ("[search]\ndefault_k = 0\n", "search.default_k", "1 to 1000"),
        ("[search]\ndefault_k = 1001\n", "search.default_k", "1 to 1000"),
        ("[search]\ndefault_k = '5'\n", "search.default_k", "1 to 1000"),
        ("[search]\ndefault_k = 5.0\n", "search.default_k", "1 to 1000"),
        ("[search]\ndefault_k = true\n", "search.default_k", "1 to 1000"),
        ("[search]\nmatch = 'some'\n", "search.match", '"auto" | "all" | "any"'),
        ("[search]\ntitle_weight = nan\n", "search.title_weight", "0 to 100"),
        ("[search]\ntitle_weight = inf\n", "search.title_weight", "0 to 100"),
        ("[ingest]\nhidden = 1\n", "ingest.hidden", "true | false"),
        ("[ingest]\nhidden = 'yes'\n", "ingest.hidden", "true | false"),
        ("[store]\npath = 5\n", "store.path", "text"),
        ("[search.default_k]\nx = 1\n", "search.default_k", ""),
        ("[chunking]\nmax_tokens = 1\n", "chunking.max_tokens", "64 to"),
    ],
)
def test_the_error_for_a_wrong_line_names_the_file_the_key_and_the_allowed_values(
    config: Path, text: str, named: str, hint: str
) -> None:
    error = refused(write(config, text))
    assert str(config) in error.message
    assert named in error.message
    assert hint in (error.hint or "")
    assert error.path == str(config)


def test_the_error_names_a_config_file_of_any_name(tmp_path: Path) -> None:
    config = write(tmp_path / "settings.conf", "[search]\ndefault_k = 0\n")
    assert refused(config).path == str(config)


@pytest.mark.parametrize("data", [b"[search\n", b"x = \n", b"\xff\xfe", b"a = 1\na = 2\n"])
def test_a_file_that_is_not_toml_is_an_error_that_names_it(config: Path, data: bytes) -> None:
    config.write_bytes(data)
    assert str(config) in refused(config).message


@pytest.mark.parametrize(
    ("variable", "value", "hint"),
    [
        ("KEBAB_SEARCH_DEFUALT_K", "5", "KEBAB_SEARCH_DEFAULT_K"),
        ("KEBAB_NONSENSE", "5", ""),
        ("KEBAB_SEARCH_DEFAULT_K", "many", "1 to 1000"),
        ("KEBAB_SEARCH_DEFAULT_K", "0", "1 to 1000"),
        ("KEBAB_SEARCH_DEFAULT_K", "", "1 to 1000"),
        ("KEBAB_INGEST_HIDDEN", "maybe", "true | false"),
        ("KEBAB_SEARCH_TITLE_WEIGHT", "nan", "0 to 100"),
    ],
)
def test_a_wrong_variable_is_named_with_what_is_allowed(variable: str, value: str, hint: str) -> None:
    error = refused(None, {variable: value})
    assert variable in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    ("value", "read"), [("true", True), ("1", True), ("YES", True), ("false", False), ("0", False), ("no", False)]
)
def test_switches_in_the_environment_may_be_written_in_several_ways(value: str, read: bool) -> None:
    assert load_settings(None, {"KEBAB_INGEST_HIDDEN": value}).settings.ingest.hidden is read


def test_numbers_are_read_from_the_environment_and_whole_numbers_accepted_as_fractions(config: Path) -> None:
    assert load_settings(None, {"KEBAB_SEARCH_TITLE_WEIGHT": "2.5"}).settings.search.title_weight == 2.5
    weight = load_settings(write(config, "[search]\ntitle_weight = 2\n"), {}).settings.search.title_weight
    assert (weight, type(weight)) == (2.0, float)


def test_a_wrong_flag_is_an_error_too() -> None:
    assert "search.nonsense" in refused(flags={"search.nonsense": 1}).message
    assert "1 to 1000" in (refused(flags={"search.default_k": 0}).hint or "")


def test_the_variables_of_the_flags_config_and_db_are_not_settings(config: Path) -> None:
    write(config, "")
    assert load_settings(None, {"KEBAB_CONFIG": str(config), "KEBAB_DB": "x.sqlite"}).config_file == config


def test_config_data_and_cache_folders_follow_the_xdg_rules(isolated_home: Path) -> None:
    """Relative paths are ignored, the folder is called kebab, on every platform."""
    assert config_folder({"XDG_CONFIG_HOME": "/abs"}) == Path("/abs/kebab")
    assert data_folder({"XDG_DATA_HOME": "/abs"}) == Path("/abs/kebab")
    for environment in (
        {},
        {"XDG_CONFIG_HOME": "", "XDG_DATA_HOME": ""},
        {"XDG_CONFIG_HOME": "rel/ative", "XDG_DATA_HOME": "rel/ative"},
    ):
        assert config_folder(environment) == isolated_home / ".config" / "kebab"
        assert data_folder(environment) == isolated_home / ".local" / "share" / "kebab"


def test_a_chunk_target_above_the_maximum_is_refused() -> None:
    with pytest.raises(ConfigError) as error:
        load_settings(environment={"KEBAB_CHUNKING_TARGET_TOKENS": "481"})
    assert "target_tokens = 481 (environment KEBAB_CHUNKING_TARGET_TOKENS) is more than" in error.value.message
    equal = dict.fromkeys(("KEBAB_CHUNKING_TARGET_TOKENS", "KEBAB_CHUNKING_MAX_TOKENS"), "400")
    assert load_settings(environment=equal).settings.chunking.target_tokens == 400


def test_the_default_chunk_target_is_lowered_to_the_maximum() -> None:
    loaded = load_settings(environment={"KEBAB_CHUNKING_MAX_TOKENS": "256"})
    assert (loaded.settings.chunking.target_tokens, loaded.settings.chunking.max_tokens) == (256, 256)
    assert "chunking.target_tokens" not in loaded.origins


CLUSTER = "qdrant://127.0.0.1:6333/notes"


def test_the_option_db_may_be_a_cluster_address(config: Path) -> None:
    write(config, "[store]\npath = 'notes.sqlite'\n")
    for loaded in (load_settings(config, {}, {"store.path": CLUSTER}), load_settings(config, {"KEBAB_DB": CLUSTER})):
        assert (loaded.settings.store.url, loaded.settings.store.path) == (CLUSTER, "")
        assert loaded.origins == {"store.url": "flag"}


def test_of_store_path_and_store_url_the_one_with_the_stronger_origin_counts(config: Path) -> None:
    write(config, f"[store]\nurl = '{CLUSTER}'\n")
    assert load_settings(config, {}).settings.store.url == CLUSTER
    assert load_settings(config, {}, {"store.path": "notes.sqlite"}).settings.store[:1] == ("notes.sqlite",)
    assert load_settings(config, {}, {"store.path": "notes.sqlite"}).settings.store.url == ""
    assert load_settings(config, {"KEBAB_STORE_PATH": "notes.sqlite"}).settings.store.url == ""
    assert load_settings(config, {"KEBAB_STORE_URL": f"{CLUSTER}2", "KEBAB_DB": "x.sqlite"}).settings.store.url == ""


def test_store_path_and_store_url_from_the_same_origin_are_an_error(config: Path) -> None:
    write(config, f"[store]\nurl = '{CLUSTER}'\npath = 'notes.sqlite'\n")
    assert "both set" in refused(config).message
    load_settings(config, {}, {"store.path": "other.sqlite"})
