"""Texts and queries go to the right bundled model, and only that one is loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.analysis.cjk import has_cjk
from kebab.embedding.models import BundledModels, OnnxEmbedder, is_latin

GRANITE, MULTILINGUAL = "granite-embedding-30m-english", "universal-sentence-encoder-multilingual"
LATIN = [
    "how to set up version control",
    "Crème brûlée à la carte",
    "Größe der Straße",
    "β-carotene is a red-orange pigment",
    "the angle α between both vectors",
    "An English page about many things, and one word in Korean: 한글. " + "More English. " * 20,
    "12345",
    "192.168.0.1:8080",
    "3.14 + 2.71 = ?",
    "",
    "   \n",
    "🙂",
    "kubectl get pods -n kube-system",
]
OTHER = [
    "버전 관리를 설정하는 방법",
    "kubectl get pods 명령으로 상태를 확인하는 방법",
    "Kubernetes 설치",
    "バージョン管理の設定方法",
    "カタカナ",
    "如何设置版本控制",
    "как настроить контроль версий",
    "Как установить git и настроить репозиторий",
    "πώς να ρυθμίσω τον έλεγχο εκδόσεων",
    "كيف حالك",
    "วันนี้อากาศเป็นอย่างไร",
    "2024년 3월",
]


def names(models: BundledModels, text: str) -> list[str]:
    """The models that embed a query, each once."""
    return list(dict.fromkeys(space.embedder.name for space in models.for_query(text) if not space.instead))


# --- which script


@pytest.mark.parametrize("text", LATIN)
def test_text_in_latin_script_or_without_letters_belongs_to_granite(tmp_path: Path, text: str) -> None:
    models = BundledModels(tmp_path)
    assert is_latin(text)
    assert models.primary_of(text).name == GRANITE
    assert names(models, text) == [MULTILINGUAL if has_cjk(text) else GRANITE]


@pytest.mark.parametrize("text", OTHER)
def test_text_in_any_other_script_belongs_to_the_multilingual_model(tmp_path: Path, text: str) -> None:
    models = BundledModels(tmp_path)
    assert not is_latin(text)
    assert models.primary_of(text).name == MULTILINGUAL
    assert names(models, text) == [MULTILINGUAL]


@given(st.text(), st.sampled_from(["auto", "on", "off"]))
def test_an_english_only_model_gets_no_text_that_it_cannot_read(text: str, cross_language: str) -> None:
    """Its hits would spoil the results of Korean queries (nDCG .937 → .528)."""
    models = BundledModels(Path("unused"), cross_language=cross_language)
    asked = names(models, text)
    assert (GRANITE in asked) == (is_latin(text) and not has_cjk(text))
    assert has_cjk(text) or models.primary_of(text).name == asked[0]


@pytest.mark.parametrize(
    "text",
    [
        "StatefulSet PersistentVolumeClaim 삭제",
        "kubectl rollout restart deployment 방법",
        "PostgreSQL connection pool 오류",
    ],
)
def test_one_korean_word_among_english_names_makes_a_korean_question(text: str) -> None:
    """Regression: such a question was treated as English, and the Korean page that answers it had rank 13."""
    assert names(BundledModels(Path("unused")), text) == [MULTILINGUAL]


# --- cross_language


@pytest.mark.parametrize(("cross_language", "other_scripts", "second"), [
    ("auto", True, MULTILINGUAL), ("auto", False, None),
    ("on", True, MULTILINGUAL), ("on", False, MULTILINGUAL),
    ("off", True, None), ("off", False, None),
])  # fmt: skip
def test_all_chunks_enter_the_multilingual_space_when_the_corpus_has_other_scripts(
    tmp_path: Path, cross_language: str, other_scripts: bool, second: str | None
) -> None:
    found = BundledModels(tmp_path, cross_language=cross_language).secondary_for_all(other_scripts=other_scripts)
    assert (found and found.name) == second


@pytest.mark.parametrize(
    ("cross_language", "spaces"),
    [
        ("auto", [(GRANITE, False, False), (MULTILINGUAL, True, True)]),
        ("on", [(GRANITE, False, False), (MULTILINGUAL, True, False)]),
        ("off", [(GRANITE, False, False)]),
    ],
)
def test_for_an_english_question_the_multilingual_space_is_searched_for_other_scripts_only(
    tmp_path: Path, cross_language: str, spaces: list[tuple[str, bool, bool]]
) -> None:
    """English chunks are found through granite, which is better at them."""
    found = BundledModels(tmp_path, cross_language=cross_language).for_query("how to set up version control")
    assert [(space.embedder.name, space.primary is True, space.instead) for space in found] == spaces
    assert all(space.trust == 1 for space in found)


@pytest.mark.parametrize(("cross_language", "crosses"), [("auto", True), ("on", True), ("off", False)])
def test_a_korean_question_finds_english_text_unless_turned_off(
    tmp_path: Path, cross_language: str, crosses: bool
) -> None:
    """Its hits in the question's own script are worse than those by words, and weigh less."""
    spaces = BundledModels(tmp_path, cross_language=cross_language).for_query("버전 관리")
    assert {space.embedder.name for space in spaces} == {MULTILINGUAL}
    assert any(not space.primary for space in spaces) == crosses
    assert [space.primary for space in spaces if space.trust < 1] == [True]


def test_the_bundled_models_are_listed_in_a_fixed_order(tmp_path: Path) -> None:
    assert [embedder.name for embedder in BundledModels(tmp_path).embedders] == [GRANITE, MULTILINGUAL]


def test_every_space_of_the_bundled_models_has_a_similarity_floor(tmp_path: Path) -> None:
    models = BundledModels(tmp_path, cross_language="on")
    for text in ("version control", "버전 관리"):
        assert all(-1 < space.floor < 1 for space in models.for_query(text))


@pytest.mark.parametrize(
    ("text", "secondary"),
    [
        ("Reverting a faulty rollout takes a minute. " * 4 + "배포를 되돌리는 방법을 한국어로 적었다.", GRANITE),
        ("배포를 되돌리는 방법을 한국어로 적었다. rollout", None),
        ("Only English here.", None),
        ("한국어만 있다.", None),
    ],
)
def test_text_that_is_mostly_latin_has_granite_as_secondary_space(
    tmp_path: Path, text: str, secondary: str | None
) -> None:
    models = BundledModels(tmp_path)
    also = models.secondary_of(text)
    assert (also and also.name) == secondary
    assert also is None or models.primary_of(text).name == MULTILINGUAL


# --- what is loaded


@pytest.mark.parametrize(
    ("text", "needed"), [("how to set up version control", "granite"), ("버전 관리를 설정하는 방법", "multilingual")]
)
def test_a_question_loads_only_the_model_of_its_script(
    tmp_path: Path, granite_folder: Path, multilingual_folder: Path, text: str, needed: str
) -> None:
    """The cache holds one model; the other would be unpacked beside it if it were loaded."""
    cache = tmp_path / "cache"
    cache.mkdir()
    folder = granite_folder if needed == "granite" else multilingual_folder
    (cache / folder.name).symlink_to(folder)
    models = BundledModels(cache, threads=1)
    for space in [space for space in models.for_query(text) if not space.instead]:
        assert space.embedder.embed([text], "query").shape == (1, space.embedder.dimension)
    assert models.primary_of(text).embed([text], "passage") is not None
    assert [path.name for path in cache.iterdir()] == [folder.name]


def test_both_bundled_models_have_a_name_and_version(
    granite_model: OnnxEmbedder, multilingual_model: OnnxEmbedder, tmp_path: Path
) -> None:
    loaded = [granite_model.fingerprint, multilingual_model.fingerprint]
    assert [embedder.fingerprint for embedder in BundledModels(tmp_path).embedders] == loaded
    assert re.fullmatch(rf"{GRANITE}@int8-\d+:384 {MULTILINGUAL}@3-\d+:512", " ".join(loaded))
