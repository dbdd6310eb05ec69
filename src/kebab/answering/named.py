"""A thing that a question names, with patterns that find it and others of its kind."""

from __future__ import annotations

import re
from typing import NamedTuple


class Named(NamedTuple):
    text: str
    """The name as the question has it."""
    pattern: re.Pattern[str] | None = None
    """The pattern that finds it, for codes, numbers, months and letters."""
    rivals: re.Pattern[str] | None = None
    """The pattern of another one of its kind: a sentence that has another one is not about this one."""
    kin: re.Pattern[str] | None = None
    """The pattern of another one with the same name: release 5.0 if the question is about release 4.2."""
    elsewhere: re.Pattern[str] | None = None
    """The pattern that finds it in more distant text: light 3, not any 3."""
    words: tuple[str, ...] = ()
    """The lower-case words of a name or thing, of which a text must have at least one."""
    only_among_rivals: bool = False
    """For years: whether a text without any may be about this one."""
    is_name: bool = False
    """Whether it must be in or beside the quoted text, not only somewhere in its passage."""
