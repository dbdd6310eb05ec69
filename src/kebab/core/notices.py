"""The notices that a search can return in addition to its hits: their wire codes and sentences."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class Notice(NamedTuple):
    """Something the user should know about an answer that is not an error."""

    code: str
    message: str
    suggestions: tuple[str, ...] = ()
    """Queries to ask instead."""


class Says(Enum):
    """A kind of notice: its code, which several kinds may share, and its sentence."""

    EMPTY_CORPUS = "empty_corpus", "Nothing has been ingested yet. Begin with: kb ingest FOLDER"
    EMPTY_QUERY = "empty_query", "The query is empty: there is nothing to search for."
    LONG_QUERY = "long_query", "The query is very long: only a part of its words was looked for."
    WORDS_ONLY = "words_only", "The query excludes words or is raw FTS5, so only words were compared."
    SOME_WORDS = "some_words", "No passage has all the words; these have some of them."
    SIMILAR_ONLY = "similar_only", "No passage has these words; these are the closest in meaning."
    FAR_AWAY = "far_away", "No passage has these words, and none is close in meaning; these are the nearest."
    INSISTED = (
        "insisted",
        "No passage has what was insisted on. Without quotes, operators and --match all, "
        "what is close in meaning is found too.",
    )
    OTHER_SCRIPTS = (
        "other_scripts",
        "Text in Korean and other scripts was not compared with this question by meaning; "
        "the setting embedding.cross_language = on does that.",
    )
    DID_YOU_MEAN = "did_you_mean", "Did you mean: {}?"
    THRESHOLD_UNUSED = (
        "threshold_unused",
        "--threshold compares RRF scores, and there are none here; --min-score works in every mode.",
    )
    NOT_RERANKED = "not_reranked", "These hits are not reranked: {}"
    PARTLY_RERANKED = (
        "partly_reranked",
        "Only the first {} of {} passages were reranked: search.rerank_seconds allows no more time.",
    )
    LEXICAL_INSTEAD = "", "These are lexical results: {}"
    KEY_TERMS_INSTEAD = "", "Compared by the passage's most telling words{}: {}"
    """The codes of these two are those of the errors that prevent a search by vectors."""

    NOTHING_SIMILAR = "nothing_similar", "Nothing similar: no other passage{} can be compared with it."
    NO_KEY_TERMS = "nothing_similar", "Nothing similar: no other passage{} shares a telling word with it."
    ALL_BELOW_SCORE = "nothing_similar", "No other passage is that similar: all are below the least score."
    NO_MORE_SIMILAR = "nothing_similar", "No more passages follow."

    UNKNOWN_TAG = "unknown_tag", "No document has the tag {}. See: kb list tags"
    UNKNOWN_LANG = "unknown_lang", "No document is in {}."
    UNKNOWN_FORMAT = "unknown_format", "No document is of the format {}."
    UNMATCHED_FILTER = "unmatched_filter", "No document passes all of the filters together."
    UNMATCHED_TYPE = "unmatched_filter", "No document is of --type {}."
    UNMATCHED_SOURCE = "unmatched_filter", "No document is of --source {}."
    UNMATCHED_PATH = "unmatched_filter", "No document matches --path '{}'."
    UNMATCHED_TRUST = "unmatched_filter", "No document passes --trust-min {}."
    UNMATCHED_AFTER = "unmatched_filter", "No document is as new as --after {}."
    UNMATCHED_BEFORE = "unmatched_filter", "No document is older than --before {}."
    ALL_EXCLUDED_BY_PATH = "unmatched_filter", "No document is left by --exclude-path '{}'."
    NONE_EXCLUDED_BY_PATH = "unmatched_filter", "No document matches --exclude-path '{}'."
    ALL_EXCLUDED_BY_TAG = "unmatched_filter", "No document is left by --exclude-tag {}."
    NONE_EXCLUDED_BY_TAG = "unmatched_filter", "No document has the tag of --exclude-tag {}."

    CUT_OFF = "cut_off", "The model had more to say: raise ask.answer_tokens to let it."
    UNKNOWN_MARKERS = "unknown_markers", "The model cited sources that it was not given: {}."
    ORDERS_LEFT_OUT = "orders_left_out", "Text was left out because it reads like orders to a machine: {}."

    STALE_INDEX = (
        "stale_index",
        "The text index was built with other analysis settings. Bring it up to date with: kb index --rebuild-fts",
    )
    READ_ONLY = "read_only", "The folder of the database cannot be written to: it is read as it stands."
    INCOMPLETE_MIGRATION = (
        "half_copied",
        "Not everything has come here from {0} yet. Go on with: kb migrate --from {0} --to {1}",
    )
    PENDING = "pending", "{} pending: changed since the last ingest. Bring the index up to date with: kb ingest"
    PARTIAL_VECTORS = (
        "partial_vectors",
        "{:,} of {:,} passages have vectors; the rest is found by words only. Make them with: kb ingest",
    )
    VECTORS_COMING = (
        "partial_vectors",
        "Vectors {} %, about {} min left; until then the rest is found by words only.",
    )
    UNFINISHED_VECTORS = (
        "partial_vectors",
        "Not everything has been embedded that the settings ask for: some questions may find less. "
        "Go on with: kb ingest",
    )

    EARLIER_MODEL = (
        "earlier_model",
        "The vectors here were made by {}, and embedding.multilingual stands for {}. "
        "Make them anew with: kb index --rebuild-vectors",
    )

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        self.sentence = sentence

    def notice(self, *values: object, code: str = "", more: str = "", suggestions: tuple[str, ...] = ()) -> Notice:
        """A notice whose sentence contains these values, followed by `more`. `code` is for members without a code."""
        return Notice(code or self.code, self.sentence.format(*values) + more, suggestions)

    def is_in(self, notices: Iterable[Notice]) -> bool:
        return any(notice.code == self.code for notice in notices)


UNKNOWN_VALUES = frozenset({Says.UNKNOWN_TAG.code, Says.UNKNOWN_LANG.code, Says.UNKNOWN_FORMAT.code})
"""Codes of notices about filters with a value that no document has."""
