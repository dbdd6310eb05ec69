"""Commands that are forked from this process, which has everything imported: that takes a third of the time of a fresh
interpreter. Everything else about them is as in a process of their own.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from pkgutil import walk_packages


def forked(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    output: int,
    errors: int,
    before: Callable[[], object] = lambda: None,
) -> ForkProcess:
    """`kb ARGUMENTS`, started in a session of its own. `output` and `errors`: files that are open for writing. The
    process that calls this must have no other threads.
    """
    _import_everything()
    process = get_context("fork").Process(target=_run, args=(arguments, environment, output, errors, before))
    process.start()
    return process


@cache
def _import_everything() -> None:
    import kebab

    for module in walk_packages(kebab.__path__, "kebab."):
        if module.name != "kebab.__main__":
            import_module(module.name)
    gc.freeze()


def _run(
    arguments: Sequence[str], environment: Mapping[str, str], output: int, errors: int, before: Callable[[], object]
) -> None:
    from kebab.interfaces.cli.main import run

    os.setsid()
    for standard, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, errors)):
        os.dup2(file, standard)
    # Anew, because the inherited ones remember whether they were files or pipes.
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, closefd=False) for number, mode in enumerate(("r", "w", "w"))
    )
    os.environ.clear()
    os.environ.update(environment)
    before()
    raise SystemExit(run(list(arguments)))
