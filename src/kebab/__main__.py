"""Where `kb`, `kebab` and `python -m kebab` begin."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from kebab.interfaces.cli.main import main as run
    except KeyboardInterrupt:  # it takes a moment to load, and Ctrl-C may come even then
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
