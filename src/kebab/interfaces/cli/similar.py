"""kb similar"""

from __future__ import annotations

from typing import Any

import click

from kebab.interfaces.cli.follow_up import follow_up_notices
from kebab.interfaces.cli.options import command, knowledge_base, wants_json
from kebab.interfaces.cli.render import print_json, print_search, remark
from kebab.interfaces.cli.search import filter_options


@command(
    "similar",
    example="kb similar git/undo.md#L23-L54\nkb similar git/undo.md --type markdown -k 3\nkb similar 1f0c9a7be2 --other-docs",
)
@click.argument("passage", metavar="ID|PATH|PATH#L10-L20")
@click.option("--other-docs", is_flag=True, help="Nothing of the passage's own document.")
@click.option(
    "--mode",
    metavar="MODE",
    help="vector: by meaning (the default, while there are vectors); lexical: by telling words.",
)
@click.option("-k", "--k", "--top", "k", type=int, help="How many hits (setting search.default_k, 10).")
@click.option("--offset", type=int, help="Leave out this many from the beginning.")
@filter_options
@click.option("--per-doc", type=int, help="At most this many hits of one document.")
@click.option("--min-score", type=float, help="Least score, 0 to 1.")
@click.option("--max-tokens", type=int, help="Whole hits up to about this many tokens.")
@click.option("--full-text", is_flag=True, help="The whole passage, not only a snippet.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 when nothing is found.")
def similar_command(passage: str, other_docs: bool, exit_code: bool, **options: Any) -> int:
    """Find passages like this one: a chunk by its id, lines or a page by their citation, or a whole document.

    The vectors that were made of it are compared with those of all other passages; several are taken together. Where
    there are none, passages that share its most telling words are found. The passage itself is left out.
    """
    given = {name: value for name, value in options.items() if value not in (None, ())}
    response = follow_up_notices(knowledge_base().similar(passage, other_docs=other_docs, **given))
    if wants_json():
        from kebab.wire.search import search_response_v1

        print_json(search_response_v1(response))
    for notice in response.notices:
        remark(f"note: {notice.message}")
    if not wants_json():
        print_search(response)
    return 1 if exit_code and not response.hits else 0
