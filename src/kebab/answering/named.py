"""Something that a question names, with what finds it and what finds others of its kind."""

from __future__ import annotations

import re
from typing import NamedTuple


class Named(NamedTuple):
    text: str
    """As the question has it."""
    pattern: re.Pattern[str] | None = None
    """What finds it, of codes, numbers, months and letters."""
    rivals: re.Pattern[str] | None = None
    """What finds another one of its kind, with which a sentence is not about this one."""
    kin: re.Pattern[str] | None = None
    """What finds another one that is called the same: release 5.0, where release 4.2 was asked about."""
    elsewhere: re.Pattern[str] | None = None
    """What finds it farther away: light 3, not any 3."""
    words: tuple[str, ...] = ()
    """Of a name or a thing: in small letters, one of them at least."""
    only_among_rivals: bool = False
    """Of years: a text that names none may be about any."""
    is_name: bool = False
    """Whether it must stand beside what is quoted, not only somewhere in its passage."""
