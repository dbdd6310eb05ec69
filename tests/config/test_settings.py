"""Every setting has a type, a default inside its bounds, a variable and one line of documentation."""

from __future__ import annotations

from kebab.config.settings import Settings, all_settings

ALL = all_settings()


def test_every_field_of_every_section_is_listed_once_in_order() -> None:
    keys = [item.key for item in ALL]
    assert len(set(keys)) == len(keys)
    assert keys == [f"{section}.{name}" for section, part in Settings()._asdict().items() for name in part._asdict()]
    assert {
        "search.default_k",
        "search.snippet_chars",
        "store.path",
        "analysis.korean",
        "ingest.max_file_mb",
        "chunking.max_tokens",
    } <= set(keys)


def test_a_setting_is_documented_typed_and_its_default_is_allowed() -> None:
    for item in ALL:
        assert item.doc.endswith(".")
        assert "\n" not in item.doc
        assert type(item.default) is item.type
        assert item.variable == f"KEBAB_{item.section}_{item.name}".upper()
        if item.choices:
            assert item.default in item.choices
            assert item.allowed == " | ".join(f'"{choice}"' for choice in item.choices)
        if item.least is not None:
            assert isinstance(item.default, int | float)
            assert item.most is not None
            assert item.least <= item.default <= item.most
            assert f"{item.least:g} to" in item.allowed
        assert item.allowed


def test_the_defaults_are_the_documented_ones() -> None:
    """Ten hits, snippets of 220 characters, match `auto`; default_top is another name of default_k."""
    search = Settings().search
    assert (search.default_k, search.snippet_chars, search.match) == (10, 220, "auto")
    assert next(item for item in ALL if item.key == "search.default_k").alias == "default_top"
    assert (search.title_weight, search.heading_weight, search.text_weight, search.cjk_weight) == (8, 2, 1, 1)


def test_only_changes_of_settings_that_shape_chunks_make_documents_be_indexed_again() -> None:
    assert {item.section for item in ALL if item.changes_index} == {"chunking"}
    assert all(item.changes_index for item in ALL if item.section == "chunking")
