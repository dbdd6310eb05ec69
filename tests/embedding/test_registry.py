"""The setting embedding.model chooses the models without loading them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kebab.config.settings import EmbeddingSettings
from kebab.core.errors import ConfigError
from kebab.core.ports import EmbeddingModels
from kebab.embedding.models import BundledModels, SingleModel, models_for

if TYPE_CHECKING:
    from tests.embedding.conftest import Python, TinyModel


def made(tmp_path: Path, **settings: Any) -> EmbeddingModels:
    models = models_for(EmbeddingSettings(**settings), tmp_path)
    assert models is not None
    return models


def test_none_means_no_models(tmp_path: Path) -> None:
    assert models_for(EmbeddingSettings(model="none"), tmp_path) is None
    assert models_for(EmbeddingSettings(model=" none "), tmp_path) is None


def test_the_default_is_bundled_and_takes_its_settings(tmp_path: Path) -> None:
    models = made(tmp_path)
    assert isinstance(models, BundledModels)
    assert models.secondary_for_all(other_scripts=False) is None
    assert made(tmp_path, cross_language="on").secondary_for_all(other_scripts=False) is not None


@pytest.mark.parametrize(
    "model",
    ["", "bundle", "bundled:x", "onnx", "onnx:", "openai", "ollama:", "OPENAI:x", "cohere:x", "/path", "터무니"],
)
def test_an_unknown_model_is_refused_with_the_valid_ones(tmp_path: Path, model: str) -> None:
    with pytest.raises(ConfigError) as caught:
        models_for(EmbeddingSettings(model=model), tmp_path)
    assert caught.value.message == f"embedding.model = {model!r} is not known."
    assert caught.value.hint == "Valid: bundled, none, onnx:FOLDER, openai:MODEL, ollama:MODEL."


@pytest.mark.parametrize(
    ("model", "name"),
    [("openai:text-embedding-3-small", "text-embedding-3-small"), ("ollama:bge-m3:latest", "bge-m3:latest")],
)
def test_the_name_of_an_endpoints_model_is_all_after_the_first_colon(tmp_path: Path, model: str, name: str) -> None:
    models = made(tmp_path, model=model)
    assert isinstance(models, SingleModel)
    assert [embedder.name for embedder in models.embedders] == [name]


def test_a_folder_may_be_relative_or_in_the_home(
    tiny: TinyModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tiny.write()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    fingerprints = {
        made(tmp_path, model=f"onnx:{path}").embedders[0].fingerprint
        for path in (tiny.folder, "tiny", "~/tiny", "./tiny/")
    }
    assert len(fingerprints) == 1


def test_the_settings_of_a_folder_reach_its_model(tiny: TinyModel, tmp_path: Path) -> None:
    tiny.write()
    model = f"onnx:{tiny.folder}"
    changes: list[dict[str, Any]] = [{}, {"pooling": "cls"}, {"max_tokens": 64}, {"passage_prefix": "passage: "}]
    fingerprints = [made(tmp_path, model=model, **change).embedders[0].fingerprint for change in changes]
    assert len(set(fingerprints)) == len(changes)
    assert made(tmp_path, model=model, query_prefix="query: ").embedders[0].fingerprint == fingerprints[0], (
        "no stored vector changes by it"
    )


def test_a_model_for_latin_script_leaves_the_other_scripts_to_the_bundled_one(tiny: TinyModel, tmp_path: Path) -> None:
    """Recognised by its tokenizer, which knows eight English words; Korean questions go to another model."""
    tiny.write()
    models = made(tmp_path, model=f"onnx:{tiny.folder}")
    own, bundled = models.embedders
    assert [own.name, bundled.name] == ["tiny", "universal-sentence-encoder-multilingual"]
    assert models.primary_of("version control") is own
    assert models.primary_of("버전 관리") is bundled
    assert {space.embedder.name for space in models.for_query("버전 관리")} == {bundled.name}
    assert [space.embedder.name for space in models.for_query("version control") if not space.instead] == ["tiny"]


def test_the_scripts_of_a_model_can_be_set(tiny: TinyModel, tmp_path: Path) -> None:
    tiny.write()
    assert isinstance(made(tmp_path, model=f"onnx:{tiny.folder}", scripts="all"), SingleModel)
    assert isinstance(made(tmp_path, model="openai:some-model", scripts="latin"), BundledModels)
    assert isinstance(made(tmp_path, model="ollama:some-model", scripts="latin"), BundledModels)


def test_building_models_loads_neither_numpy_nor_a_runtime_and_sends_nothing(
    tiny: TinyModel, tmp_path: Path, python: Python
) -> None:
    """Commands that embed nothing must not pay for the models they could use."""
    (tiny.write() / "config.json").write_text('{"hidden_size": 4}')
    code = """
import json, sys
from pathlib import Path

def refuse(event, _):
    if event.startswith(("socket.", "urllib.", "http.client.")):
        raise RuntimeError(event)

sys.addaudithook(refuse)
from kebab.config.settings import EmbeddingSettings
from kebab.embedding.models import models_for
for model in json.loads(sys.argv[1]):
    models = models_for(EmbeddingSettings(model=model), Path(sys.argv[2]))
    models.primary_of("text"), models.for_query("질문"), models.secondary_for_all(other_scripts=True)
    assert [embedder.name for embedder in models.embedders]
    loaded = [name for name in ("numpy", "onnxruntime", "tokenizers", "huggingface_hub", "onnx") if name in sys.modules]
    assert not loaded, (model, loaded)
print(list(Path(sys.argv[2]).iterdir()))
"""
    empty = tmp_path / "empty"
    empty.mkdir()
    models = ["bundled", f"onnx:{tiny.folder}", "openai:some-model", "ollama:some-model"]
    assert python(code, json.dumps(models), empty).strip() == "[]"
