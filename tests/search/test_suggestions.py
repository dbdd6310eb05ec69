"""Suggestions for misspelt words that no passage has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import kebab
from kebab.core.search import SearchResponse

NOTES = {
    "deploy.md": "# Deploy\n\nA Kubernetes deployment restarts the containers. Deployments are separate from the form.\n",
    "again.md": "# Again\n\nAnother deployment, from another team, with Café tables.\n",
    "forms.md": "# Forms\n\nThe form on paper, the form on the wall.\n",
    "korean.md": "# 배포\n\n쿠버네티스를 설치하고 저장소를 만든다. 쿠버네티스는 서버가 필요하다.\n",
    "tagged.md": "---\ntags: [ops]\n---\n# Tagged\n\nNginx and certificates.\n",
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("did-you-mean")
    (folder / "notes").mkdir()
    for name, text in NOTES.items():
        (folder / "notes" / name).write_text(text, encoding="utf-8")
    with kebab.open(folder / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(folder / "notes")
    return folder / "kb.sqlite"


@pytest.fixture
def kb(database: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(database) as opened:
        yield opened


def meant(response: SearchResponse) -> list[str]:
    return [query for notice in response.notices if notice.code == "did_you_mean" for query in notice.suggestions]


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("kuberntes", "kubernetes"),
        ("Kubernetse", "kubernetes"),
        ("kuberntes deploymnet", "kubernetes deployment"),
        ("deplyomnet", "deployment"),
        ("seperate", "separate"),
        ('"kuberntes deployment"', '"kubernetes deployment"'),
        ("kuberntes AND containers", "kubernetes AND containers"),
        ("the kuberntes!", "the kubernetes!"),
        ("kuberntes-deployment", "kubernetes-deployment"),
        ("nginxx", "nginx"),
    ],
)
def test_a_misspelt_word_is_replaced_and_the_rest_of_the_query_kept(
    kb: kebab.KnowledgeBase, typed: str, suggested: str
) -> None:
    response = kb.search(typed, match="all")
    assert not response.hits
    assert meant(response)[:1] == [suggested]


def test_the_notice_has_suggestions_as_a_sentence_and_as_a_list(kb: kebab.KnowledgeBase) -> None:
    response = kb.search("kuberntes deploymnet", mode="lexical")
    assert [(notice.code, notice.message, notice.suggestions) for notice in response.notices] == [
        ("did_you_mean", "Did you mean: kubernetes deployment?", ("kubernetes deployment",))
    ]


def test_every_suggested_query_has_hits(kb: kebab.KnowledgeBase) -> None:
    for typed in ("frm", "forn", "deploymnet formm", "contaners papr", "wal teem"):
        for query in meant(kb.search(typed, match="all")):
            assert kb.search(query, match="all").hits
    assert meant(kb.search("nginxx kuberntes", match="all")) == []  # both are there, in different notes


def test_more_frequent_words_are_suggested_first_and_never_as_stems(kb: kebab.KnowledgeBase) -> None:
    response = kb.search("forn", mode="lexical")
    assert meant(response) == ["form"]
    assert meant(kb.search("deploymentss", mode="lexical")) == ["deployments"]  # deploy is the stem


def test_only_words_of_documents_that_pass_the_filters_are_suggested(kb: kebab.KnowledgeBase) -> None:
    assert meant(kb.search("certifcates", tags_any=["ops"])) == ["certificates"]
    assert meant(kb.search("kuberntes", tags_any=["ops"])) == []


@pytest.mark.parametrize(
    "query", ["okapiquagga", "xyz", "2025", "'kuberntes'", "kubernetes nginx", "…", "the", "nothinglikeit AND neither"]
)
def test_without_near_words_there_is_no_suggestion(kb: kebab.KnowledgeBase, query: str) -> None:
    assert meant(kb.search(query, match="all")) == []


def test_no_suggestion_is_looked_up_if_there_are_hits(kb: kebab.KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    from kebab.search.lexical import LexicalRetriever

    monkeypatch.setattr(LexicalRetriever, "suggestions", None)
    assert kb.search("kuberntes deployment", mode="lexical").hits
    assert not kb.search("zzzz", mode="lexical", offset=10).hits
    assert not kb.search("zzzz", mode="lexical", type_ahead=True).hits


def test_words_of_removed_documents_are_not_suggested(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "gone.md").write_text("okapi", encoding="utf-8")
    (notes / "stays.md").write_text("zebra", encoding="utf-8")
    with kebab.open(tmp_path / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(notes)
        assert meant(knowledge_base.search("okappi")) == ["okapi"]
        (notes / "gone.md").unlink()
        knowledge_base.ingest(notes)
        assert meant(knowledge_base.search("okappi")) == []


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [("쿠버네티즈", "쿠버네티스"), ("쿠버네티즈를", "쿠버네티스를"), ("저장쇼에서", "저장소에서")],
)
def test_a_wrong_letter_inside_a_korean_syllable_is_corrected(
    kb: kebab.KnowledgeBase, typed: str, suggested: str
) -> None:
    assert meant(kb.search(typed, match="all")) == [suggested]


def test_a_korean_word_without_a_common_pair_of_syllables_is_not_suggested(kb: kebab.KnowledgeBase) -> None:
    """The index of pairs of syllables cannot find it."""
    assert meant(kb.search("서보", match="all")) == []
    assert kb.search("쿠버네티즈").hits  # by the pairs that are right, so nothing has to be said


def test_in_vector_mode_no_spelling_is_suggested(kb: kebab.KnowledgeBase, tmp_path: Path) -> None:
    from kebab.core.errors import ModelError

    with pytest.raises(ModelError):
        kb.search("kuberntes", mode="vector")
