"""The command kb similar."""

from __future__ import annotations

from typing import Any

import click

from kebab.interfaces.cli.options import command, knowledge_base, option
from kebab.interfaces.cli.render import follow_up_notices, show_response
from kebab.interfaces.cli.search import FILTERS, given, search_options


@command(
    "similar",
    example="kb similar git/undo.md#L23-L54\nkb similar git/undo.md --type markdown -k 3\n"
    "kb similar 1f0c9a7be2 --other-docs",
)
@click.argument("passage", metavar="ID|PATH|PATH#L10-L20")
@option("--other-docs", is_flag=True, help="Nothing of the passage's own document.")
@search_options(
    *("mode", "k", "offset", *FILTERS, "per_doc", "min_score", "max_tokens", "full_text"),
    mode="vector: by meaning (the default, while there are vectors); lexical: by telling words.",
    min_score="Least score, 0 to 1.",
)
@option("--exit-code", is_flag=True, help="Exit with 1 when nothing is found.")
def similar_command(passage: str, other_docs: bool, exit_code: bool, **options: Any) -> int:
    """Find passages like this one: a chunk by its id, lines or a page by their citation, or a whole document.

    The vectors that were made of it are compared with those of all other passages; several are taken together. Where
    there are none, passages that share its most telling words are found. The passage itself is left out.
    """
    response = knowledge_base().similar(passage, other_docs=other_docs, **given(options))
    response.notices = follow_up_notices(response.notices)
    show_response(response, [f"note: {notice.message}" for notice in response.notices])
    return 1 if exit_code and not response.hits else 0
