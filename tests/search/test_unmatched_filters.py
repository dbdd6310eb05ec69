"""If no document passes a filter, a notice names it; a format that does not exist is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kebab
from kebab.core.errors import NotFound

NOTES = {
    "ops/tls.md": "---\ntags: [ops]\ndate: 2024-05-01\n---\nAn okapi renews certificates.\n",
    "ops/plain.markdown": "---\ntags: [ops]\ndate: 2024-06-01\n---\nAn okapi in plain words.\n",
    "cooking/kimchi.txt": "An okapi salts the cabbage.\n",
}


@pytest.fixture
def kb(write_notes: Callable[..., Path], tmp_path: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(tmp_path / "index.sqlite") as opened:
        opened.ingest(write_notes(NOTES), embed=False)
        yield opened


def said(kb: kebab.KnowledgeBase, **filters: Any) -> list[str]:
    response = kb.search("okapi", mode="lexical", **filters)
    assert not response.hits
    return [notice.message for notice in response.notices]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"path": "foo/*"}, "No document matches --path 'foo/*'."),
        ({"type": "pdf"}, "No document is of --type pdf."),
        ({"format": "py"}, "No document is of the format py. Formats here: md, txt."),
        ({"after": "2999-01-01"}, "No document is as new as --after 2999-01-01."),
        ({"before": "1999-01-01"}, "No document is older than --before 1999-01-01."),
        ({"exclude_path": "**"}, "No document is left by --exclude-path '**'."),
        ({"lang": "ko"}, "No document is in ko. Languages here: en."),
        ({"tags_any": "oops"}, "No document has the tag oops. See: kb list tags"),
        ({"tags_any": "ops", "path": "cooking/*"}, "No document passes all of the filters together."),
        ({"tags_any": "ops", "path": "foo/*"}, "No document matches --path 'foo/*'."),
    ],
)
def test_the_filter_that_no_document_passes_is_named(
    kb: kebab.KnowledgeBase, filters: dict[str, Any], message: str
) -> None:
    assert said(kb, **filters) == [message]


def test_an_exclusion_that_fits_nothing_is_named_beside_the_reason(kb: kebab.KnowledgeBase) -> None:
    assert said(kb, path="foo/*", exclude_path="opps/*", exclude_tag="opps") == [
        "No document matches --path 'foo/*'.",
        "No document matches --exclude-path 'opps/*'.",
        "No document has the tag of --exclude-tag opps.",
    ]


def test_filters_that_documents_pass_are_not_named_when_words_are_missing(kb: kebab.KnowledgeBase) -> None:
    response = kb.search("giraffe", mode="lexical", path="ops/*", exclude_path="nowhere/*")
    assert not response.hits
    assert "unmatched_filter" not in [notice.code for notice in response.notices]


def test_similar_names_the_filter_that_no_document_passes(kb: kebab.KnowledgeBase) -> None:
    response = kb.similar("ops/tls.md", mode="lexical", path="foo/*")
    assert [notice.code for notice in response.notices] == ["unmatched_filter", "nothing_similar"]


def test_a_format_that_does_not_exist_is_an_error_that_lists_those_that_do(kb: kebab.KnowledgeBase) -> None:
    with pytest.raises(NotFound) as error:
        kb.search("okapi", format="xyz")
    assert error.value.hint == "Formats here: md, txt."


@pytest.mark.parametrize("name", ["md", ".md", "markdown", "MD"])
def test_a_format_may_be_named_by_any_of_its_extensions(kb: kebab.KnowledgeBase, name: str) -> None:
    assert len(kb.search("okapi", mode="lexical", format=name)) == 2


def test_the_format_filter_accepts_every_extension_in_the_corpus(
    write_notes: Callable[..., Path], kb: kebab.KnowledgeBase
) -> None:
    kb.ingest(write_notes({"odd.xyz": "An okapi in an odd file.\n"}), embed=False)
    assert len(kb.search("okapi", mode="lexical", format="xyz")) == 1
