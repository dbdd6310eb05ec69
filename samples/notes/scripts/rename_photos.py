"""Rename photos to the time they were last changed, for example 2024-05-11_143000.jpg.

Usage: python rename_photos.py FOLDER [--apply]

Without --apply nothing is renamed: the plan is printed, one line per file.
"""

import argparse
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

SUFFIXES = {".jpg", ".jpeg", ".heic", ".png"}


def free_name(folder: Path, stem: str, suffix: str, taken: set[Path]) -> Path:
    """Return a path not in use; the second photo of one second gets _1, then _2."""
    target = folder / f"{stem}{suffix}"
    number = 0
    while target in taken or target.exists():
        number += 1
        target = folder / f"{stem}_{number}{suffix}"
    return target


def plan(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield (old, new) for each photo in the folder, oldest first."""
    photos = [p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES]
    taken: set[Path] = set()
    for photo in sorted(photos, key=lambda p: p.stat().st_mtime):
        stem = datetime.fromtimestamp(photo.stat().st_mtime).strftime("%Y-%m-%d_%H%M%S")
        if photo.stem == stem or photo.stem.startswith(stem + "_"):
            continue  # named by an earlier run
        target = free_name(folder, stem, photo.suffix.lower(), taken)
        taken.add(target)
        yield photo, target


def main() -> None:
    parser = argparse.ArgumentParser(description="Rename photos by time.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--apply", action="store_true", help="really rename the files")
    args = parser.parse_args()
    for old, new in list(plan(args.folder)):
        print(f"{old.name} -> {new.name}")
        if args.apply:
            old.rename(new)


if __name__ == "__main__":
    main()
