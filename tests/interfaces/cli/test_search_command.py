"""kb search: every test runs the real command."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.parsing.pdf_bytes import make_pdf
from tests.parsing.test_docx import docx

Kb = Callable[..., Any]

NOTES = {
    "ops/deploy.md": "---\ntags: [ops, production]\ndate: 2024-02-01\n---\n# Deploy\n\nRun the gnu installation, restart nginx.\n",
    "ops/backup.md": "---\ntags: [ops]\ndate: 2024-03-01\n---\n# Backup\n\nThe gnu tar writes to a disk.\n",
    "rust/kb.md": "---\ntags: [rust]\ndate: 2024-01-01\n---\n# Architecture\n\n## Rust workspace\n\nA Rust workspace groups several gnu packages into one.\n",
    "tools/install.py": "def install_gnu():\n    return 'gnu git'\n",
}


@pytest.fixture(scope="module")
def notes_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import kebab

    folder = tmp_path_factory.mktemp("search-command")
    for path, text in NOTES.items():
        (folder / "notes" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "notes" / path).write_text(text, encoding="utf-8")
    with kebab.open(folder / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(folder / "notes")
    return folder / "kb.sqlite"


@pytest.fixture
def search(kb: Kb, notes_db: Path) -> Kb:
    def run(*arguments: str, **options: Any) -> Any:
        return kb("--db", notes_db, "search", *arguments, **options)

    return run


def hit_paths(ran: Any) -> list[str]:
    assert ran.code == 0, ran.err
    return [hit["doc_path"] for hit in ran.json()["hits"]]


def test_search_works_with_k_tag_and_mode(search: Kb) -> None:
    """There are no vectors and no language model yet, and none is needed."""
    ran = search("gnu", "--k", "1", "--tag", "rust", "--mode", "lexical", "--json")
    assert hit_paths(ran) == ["rust/kb.md"]
    assert (ran.json()["mode"], ran.json()["method"], ran.json()["notices"]) == ("lexical", "lexical", [])


def test_the_human_output_is_one_block_per_hit(search: Kb) -> None:
    ran = search("rust workspace", "-k", "1")
    assert ran.code == 0
    expected = """\
1. [SCORE] # Architecture ## Rust workspace A Rust workspace groups several gnu packages into one.
   doc: rust/kb.md
   citation: rust/kb.md:L5-L9
   heading: Architecture > Rust workspace

returned: 1
"""
    shown = re.sub(r"\[0\.\d\d\]", "[SCORE]", ran.out)
    assert shown == expected
    assert "\x1b" not in ran.out


def test_explain_names_lexical_vector_fusion_with_rank_and_score_per_hit(search: Kb) -> None:
    ran = search("how is gnu installed", "--explain")
    assert re.search(r"^   lexical: rank 1, score 0\.\d{4}$", ran.out, re.MULTILINE)
    assert re.search(r"^   vector: not used$", ran.out, re.MULTILINE)
    assert re.search(r"^   fusion: rank 1, score 0\.\d{4} \(fts5-bm25\)$", ran.out, re.MULTILINE)
    assert "matched: " in ran.out
    assert "stop words dropped: how, is" in ran.out
    assert ran.out.splitlines()[-1] == f"returned: {ran.out.count('citation:')}"


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        (("--rerank", "gnu tar"), 3),
        (("gnu tar", "--rerank"), 3),
        (("gnu", "--rerank", "tar"), 3),
        (("--rerank", "2", "gnu", "tar"), 2),
        (("--rerank=2", "gnu tar"), 2),
        (("--rerank", "0", "gnu tar"), 0),
    ],
)
def test_rerank_may_have_a_number_and_takes_no_word_of_the_query(
    search: Kb, model_cache: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], read: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(model_cache))
    response = search(*arguments, "--type", "markdown", "--mode", "lexical", "--explain", "--json").json()
    assert response["query"] == "gnu tar"
    assert response["notices"] == []
    reranked = [hit["explanation"].get("rerank") for hit in response["hits"]]
    assert [one["model"] for one in reranked if one] == ["ms-marco-MiniLM-L-12-v2"] * read


def test_explain_says_what_the_cross_encoder_said(
    search: Kb, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(model_cache))
    ran = search("gnu tar", "--rerank", "--explain")
    assert re.search(
        r"^   rerank: rank 1 before, score -?\d+\.\d{4} \(ms-marco-MiniLM-L-12-v2\)$", ran.out, re.MULTILINE
    )


LEVELS = ("some", "all", "near", "phrase")


def test_install_git_finds_stems_of_either_word_ranked_by_bm25(sample: Kb) -> None:
    response = sample("search", "install git", "--json").json()
    texts = [hit["doc_path"] for hit in response["hits"]]
    assert texts[0] == "git/setup.md"
    places = [(-LEVELS.index(hit["exactness"]), -hit["score"]) for hit in response["hits"]]
    assert places == sorted(places), "the most literal first, equally literal ones by bm25"
    assert any("nstallation" in hit["snippet"] for hit in response["hits"])


def test_fts_only_is_lexical_without_a_notice(search: Kb) -> None:
    response = search("gnu", "--fts-only", "--json").json()
    assert (response["mode"], response["method"], response["notices"]) == ("lexical", "lexical", [])
    assert {hit["retrieval"]["vector_rank"] for hit in response["hits"]} == {None}


def test_the_option_tags_requires_all_tags_and_tag_any(search: Kb) -> None:
    assert set(hit_paths(search("gnu", "--tags", "ops", "--json"))) == {"ops/deploy.md", "ops/backup.md"}
    assert hit_paths(search("gnu", "--tags", "ops,production", "--json")) == ["ops/deploy.md"]
    assert set(hit_paths(search("gnu", "--tag", "production", "--tag", "rust", "--json"))) == {
        "ops/deploy.md",
        "rust/kb.md",
    }


def test_type_code_gives_only_code_and_an_unknown_type_lists_the_valid_ones(search: Kb) -> None:
    assert hit_paths(search("gnu", "--type", "code", "--json")) == ["tools/install.py"]
    wrong = search("gnu", "--type", "movie", "--json")
    assert wrong.code == 2
    assert "pdf, markdown, code, note" in wrong.json()["hint"]


@pytest.mark.parametrize("option", ["-k", "--k", "--top"])
def test_k_top_and_long_k_all_set_the_number_of_hits(search: Kb, option: str) -> None:
    assert len(hit_paths(search("gnu", option, "2", "--json"))) == 2


def test_default_top_in_the_config_file_sets_the_number_of_hits(search: Kb, tmp_path: Path, sample: Kb) -> None:
    assert len(hit_paths(sample("search", "the", "--json"))) == 10
    config = tmp_path / "config.toml"
    config.write_text("[search]\ndefault_top = 1\n", encoding="utf-8")
    assert len(hit_paths(search("gnu", "--config", str(config), "--json"))) == 1
    assert len(hit_paths(search("gnu", "--json", env={"KEBAB_SEARCH_DEFAULT_K": "3"}))) == 3


def test_fewer_matches_than_asked_for_are_no_error(search: Kb) -> None:
    ran = search("gnu", "--top", "50", "--type", "markdown")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "returned: 3"


def test_no_match_exits_with_0_and_with_the_option_exit_code_with_1(search: Kb) -> None:
    ran = search("zzzqqq")
    assert (ran.code, ran.out) == (0, "returned: 0\n")
    assert "No passage matches" in ran.err
    assert search("zzzqqq", "--exit-code").code == 1
    assert search("gnu", "--exit-code").code == 0


def test_an_empty_query_prints_no_hits_and_a_hint(search: Kb) -> None:
    for query in ("", "   "):
        ran = search(query)
        assert (ran.code, ran.out) == (0, "returned: 0\n")
        assert "empty" in ran.err


def test_a_search_in_an_empty_corpus_prints_no_hits_and_a_hint(kb: Kb) -> None:
    ran = kb("search", "git", "--json")
    assert ran.code == 0
    assert ran.json()["hits"] == []
    assert "kb ingest" in ran.err


def test_a_named_database_that_does_not_exist_is_an_error(kb: Kb, tmp_path: Path) -> None:
    ran = kb("search", "git", "--db", tmp_path / "none.sqlite", "--json")
    assert ran.code == 2
    assert ran.json()["code"] == "not_found"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--fts-only", "--vec-only", "x"], "usage"),
        (["--mode", "hybrid", "--fts-only", "x"], "usage"),
        (["--mode", "psychic", "x"], "usage"),
        (["--match", "some", "x"], "usage"),
        (["--sort", "size", "x"], "usage"),
        (["--trust-min", "total", "x"], "usage"),
        (["--k", "0", "x"], "usage"),
        (["--k", "many", "x"], "usage"),
        (["--offset", "-1", "x"], "usage"),
        (["--after", "yesterdayish", "x"], "usage"),
        (["--source", "nowhere", "x"], "not_found"),
        (["--doc", "nowhere", "x"], "not_found"),
        (["--cursor", "nonsense", "x"], "stale_cursor"),
        (["--vec-only", "x"], "vectors_off"),
        (["'AND'"], "invalid_query"),
        (["--no-such", "x"], "usage"),
        ([], "usage"),
        (["--bulk", "x"], "usage"),
    ],
)
def test_every_usage_error_exits_with_2_and_prints_one_error_object_with_a_hint(
    search: Kb, arguments: list[str], code: str
) -> None:
    ran = search(*arguments, "--json")
    assert ran.code == 2
    error = ran.json()
    assert (error["schema_version"], error["code"]) == ("error.v1", code)
    assert error["message"].endswith((".", "?", "!"))
    assert error["hint"]
    assert f"Error: {error['message']}" in ran.err
    assert "Traceback" not in ran.err


def test_without_vectors_mode_vector_is_an_error_and_hybrid_prints_a_notice(search: Kb) -> None:
    """Hybrid mode then searches by words, with a notice."""
    default = search("gnu", "--json").json()
    assert (default["mode"], default["method"], [notice["code"] for notice in default["notices"]]) == (
        "hybrid",
        "lexical",
        ["vectors_off"],
    )
    assert search("gnu").err == ""


def test_json_is_the_only_thing_on_stdout(search: Kb) -> None:
    ran = search("gnu", "--json", "--mode", "hybrid", "--tag", "unknown-tag")
    assert ran.out.count("\n") == 1
    assert {notice["code"] for notice in ran.json()["notices"]} == {"vectors_off", "unknown_tag"}
    assert "unknown-tag" in ran.err
    assert search("gnu", "--json", "--quiet", "--tag", "unknown-tag").err == ""


def test_words_need_no_quotes_and_dashes_may_follow_two_dashes(search: Kb) -> None:
    assert hit_paths(search("rust", "workspace", "-k", "1", "--json")) == ["rust/kb.md"]
    assert search("--json", "--", "--gnu").json()["query"] == "--gnu"


def test_global_options_stand_before_or_after_the_command(kb: Kb, notes_db: Path) -> None:
    before, after = kb("--json", "--db", notes_db, "search", "gnu"), kb("search", "gnu", "--db", notes_db, "--json")
    assert hit_paths(before) == hit_paths(after) != []


def test_invalid_bytes_on_the_command_line_are_an_ordinary_query(search: Kb) -> None:
    ran = search("gnu \udcff\udcfe")
    assert ran.code == 0
    assert "Traceback" not in ran.err


def test_full_text_prints_the_passage_and_json_has_it_whole(search: Kb, sample: Kb) -> None:
    printed = sample("search", "git installation", "-k", "1", "--full-text").out
    assert "   | # Git installation and first-time setup" in printed
    assert "   | | Fedora        | `sudo dnf install git`" in printed
    hit = search("rust workspace", "-k", "1", "--full-text", "--json").json()["hits"][0]
    assert hit["text"].startswith("# Architecture")
    assert hit["text"].endswith("into one.")


def test_no_highlight_leaves_the_marks_out(search: Kb) -> None:
    assert search("gnu", "--json").json()["hits"][0]["highlights"]
    assert search("gnu", "--json", "--no-highlight").json()["hits"][0]["highlights"] == []


def test_filter_options_of_the_command_restrict_the_hits(search: Kb) -> None:
    assert hit_paths(search("gnu", "--path", "ops/*.md", "--exclude-tag", "production", "--json")) == ["ops/backup.md"]
    assert set(hit_paths(search("gnu", "--exclude-path", "ops/**", "--type", "markdown", "--json"))) == {"rust/kb.md"}
    assert hit_paths(search("gnu", "--after", "2024-02-15", "--before", "2024-06-01", "--json")) == ["ops/backup.md"]
    assert hit_paths(search("gnu", "--format", "py", "--json")) == ["tools/install.py"]
    assert hit_paths(search("gnu", "--lang", "ko", "--json")) == []
    assert hit_paths(search("gnu", "--doc", "rust/kb.md", "--json")) == ["rust/kb.md"]
    assert hit_paths(search("gnu", "--sort", "date", "--type", "markdown", "--json")) == [
        "ops/backup.md",
        "ops/deploy.md",
        "rust/kb.md",
    ]
    assert len(hit_paths(search("gnu", "--source", "notes", "--trust-min", "primary", "--json"))) == 4


def test_a_cursor_continues_the_list_after_the_previous_page(search: Kb) -> None:
    seen: list[str] = []
    cursor: list[str] = []
    for _ in range(4):
        response = search("gnu", "-k", "1", "--json", *cursor).json()
        seen += [hit["chunk_id"] for hit in response["hits"]]
        if not response["next_cursor"]:
            break
        cursor = ["--cursor", response["next_cursor"]]
    assert seen == [hit["chunk_id"] for hit in search("gnu", "--json").json()["hits"]]
    assert "--cursor" not in search("gnu", "-k", "1").err  # said on a terminal only


# --- bulk


def bulk_lines(*lines: Any) -> str:
    return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)


def test_bulk_answers_line_by_line_in_order_and_bad_lines_in_their_place(search: Kb) -> None:
    ran = search(
        "--bulk",
        input=bulk_lines(
            {"id": "a", "query": "nginx"},
            "",
            "not json",
            {"id": "b", "query": "gnu", "nonsense": 1},
            {"id": "c"},
            {"id": "d", "query": "'AND'"},
            {"id": 7, "query": "gnu", "k": 1, "type": "code", "mode": "lexical"},
            "[1]",
            {"id": "e", "query": ""},
            {"query": "gnu", "tags_all": ["ops", "production"]},
        ),
    )
    assert ran.code == 0
    answers = ran.json_lines()
    assert [(answer["schema_version"], answer["id"]) for answer in answers] == [
        ("search_response.v1", "a"),
        ("error.v1", None),
        ("error.v1", "b"),
        ("error.v1", "c"),
        ("error.v1", "d"),
        ("search_response.v1", "7"),
        ("error.v1", None),
        ("search_response.v1", "e"),
        ("search_response.v1", None),
    ]
    assert answers[0]["hits"][0]["doc_path"] == "ops/deploy.md"
    assert [hit["doc_path"] for hit in answers[5]["hits"]] == ["tools/install.py"]
    assert answers[7]["hits"] == []
    assert [hit["doc_path"] for hit in answers[8]["hits"]] == ["ops/deploy.md"]


def test_options_of_the_command_line_are_the_defaults_of_every_bulk_line(search: Kb) -> None:
    first, second = search(
        "--bulk", "-k", "1", "--tag", "ops", input=bulk_lines({"query": "gnu"}, {"query": "gnu", "k": 2})
    ).json_lines()
    assert (first["returned"], second["returned"]) == (1, 2)


def test_invalid_bulk_lines_do_not_affect_other_lines(search: Kb) -> None:
    deep = "[" * 100_000
    ran = search(
        "--bulk",
        input=bulk_lines(
            '{"id": "s", "query": "\\ud800 gnu"}', deep, '{"query": "x", "min_score": NaN}', {"id": "z", "query": "gnu"}
        ).encode()
        + b'{"query": "\xff\xfe"}\n',
    )
    assert ran.code == 0, ran.err
    answers = ran.json_lines()
    assert len(answers) == 5
    assert (answers[3]["id"], answers[3]["returned"]) == ("z", 4)


def test_bulk_without_input_prints_nothing(search: Kb) -> None:
    ran = search("--bulk", input="\n\n")
    assert (ran.code, ran.out) == (0, "")


# --- the editor


def fake_editor(folder: Path, name: str = "editor") -> Path:
    script = folder / name
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder / "opened"}\nexit 0\n', encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


@pytest.mark.parametrize(
    ("name", "expected"), [("editor", "+5\n{file}\n"), ("code", "--goto\n{file}:5\n"), ("hx", "{file}:5\n")]
)
def test_open_shows_the_hit_in_the_editor_at_its_line(
    search: Kb, tmp_path: Path, notes_db: Path, name: str, expected: str
) -> None:
    editor = fake_editor(tmp_path, name)
    ran = search("rust workspace", "--open", "1", env={"EDITOR": str(editor)})
    assert ran.code == 0, ran.err
    assert (tmp_path / "opened").read_text(encoding="utf-8") == expected.format(
        file=notes_db.parent / "notes" / "rust" / "kb.md"
    )


@pytest.mark.parametrize("name", ["a.pdf", "b.docx"])
def test_open_opens_files_that_are_not_text_in_the_default_program(kb: Kb, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(make_pdf([["Nothing here."], ["A penguin walks."]]))
    (folder / "b.docx").write_bytes(docx("<w:p><w:r><w:t>The penguin of Word.</w:t></w:r></w:p>"))
    kb("ingest", folder)
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    fake_editor(tmp_path, opener)
    search = ("search", "penguin", "--path", name, "--open", "1")
    ran = kb(*search, env={"EDITOR": "false", "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"})
    assert ran.code == 0, ran.err
    assert (tmp_path / "opened").read_text(encoding="utf-8") == f"{folder / name}\n"
    assert {"a.pdf": "a.pdf:p2", "b.docx": "b.docx:L1-L1"}[name] in ran.err
    refused = kb(*search, "--json", env={"EDITOR": "false", "PATH": str(folder)})
    assert (refused.code, refused.json()["code"]) == (2, "usage")
    assert opener in refused.json()["message"]
    assert "kb fetch span" in refused.json()["hint"]


def test_open_without_an_editor_a_wrong_number_or_a_missing_editor_is_a_clear_error(search: Kb) -> None:
    for arguments, environment in (
        (["gnu", "--open", "1"], {}),
        (["gnu", "--open", "99"], {"EDITOR": "true"}),
        (["gnu", "--open", "1"], {"EDITOR": "/no/such/editor"}),
        (["gnu", "--open", "1"], {"EDITOR": "'unbalanced"}),
    ):
        ran = search(*arguments, "--json", env=environment)
        assert ran.code == 2
        assert ran.json()["code"] == "usage"
        assert "Traceback" not in ran.err


def test_a_misspelt_query_without_hits_prints_a_suggestion(search: Kb) -> None:
    ran = search("worksapce")
    assert (ran.code, ran.out) == (0, "returned: 0\n")
    assert ran.err == "No passage matches. Did you mean: workspace?\n"
    (notice,) = (
        each
        for each in search("worksapce", "--json", "--mode", "lexical").json()["notices"]
        if each["code"] == "did_you_mean"
    )
    assert notice == {"code": "did_you_mean", "message": "Did you mean: workspace?", "suggestions": ["workspace"]}
    assert "note: Did you mean" not in search("worksapce gnu").err


def test_responses_to_bulk_lines_contain_suggestions(search: Kb) -> None:
    ran = search("--bulk", "--mode", "lexical", input='{"query": "worksapce"}\n{"query": "workspace"}\n')
    assert [[notice["suggestions"] for notice in line["notices"]] for line in ran.json_lines()] == [[["workspace"]], []]
