"""Where `kb`, `kebab` and `python -m kebab` begin."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    gc.set_threshold(
        100_000
    )  # loading makes many objects that stay: looking through them every 700 costs a tenth of a short command
    try:
        from kebab.interfaces.cli.main import main as run
    except KeyboardInterrupt:  # it takes a moment to load, and Ctrl-C may come even then
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
