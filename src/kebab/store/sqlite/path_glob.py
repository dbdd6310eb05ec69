"""Path globs as people know them: `*` and `?` stop at a slash, `**` does not."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    out, i = [], 0
    while i < len(pattern):
        if pattern.startswith("**/", i) and (i == 0 or pattern[i - 1] == "/"):
            out.append("(?:.*/)?")  # also no folder at all: docs/**/x.md finds docs/x.md
            i += 3
        elif pattern.startswith("**", i):
            out.append(".*")
            i += 2
        elif pattern[i] == "*":
            out.append("[^/]*")
            i += 1
        elif pattern[i] == "?":
            out.append("[^/]")
            i += 1
        elif pattern[i] == "[" and (end := pattern.find("]", i + 2)) > 0:
            inside = pattern[i + 1 : end].replace("\\", r"\\").replace("[", r"\[")
            negated = inside.startswith(("!", "^"))
            out.append(f"[{'^/' if negated else ''}{inside[1:] if negated else inside}]")
            i = end + 1
        else:
            out.append(re.escape(pattern[i]))
            i += 1
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error:  # a range such as [z-a]: take the pattern literally
        return re.compile(re.escape(pattern))


def path_matches(pattern: str, path: str) -> bool:
    return _compiled(pattern).fullmatch(path) is not None
