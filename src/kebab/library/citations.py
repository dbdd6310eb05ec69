"""Hits in a library cite it by name: a path alone may be one of one's own notes, or of another version."""

from __future__ import annotations

from kebab.core.citations import Citation
from kebab.core.search import Neighbour, Neighbours, SearchHit, SearchResponse


def cite_within(response: SearchResponse, place: str) -> None:
    """`place`: /owner/project, or /owner/project/version."""
    response.hits = tuple(_hit(hit, place) for hit in response.hits)


def _hit(hit: SearchHit, place: str) -> SearchHit:
    duplicates = tuple(copy._replace(citation=_citation(copy.citation, place)) for copy in hit.duplicates)
    neighbours = hit.neighbours
    if neighbours is not None:
        neighbours = Neighbours(_passages(neighbours.before, place), _passages(neighbours.after, place))
    return hit._replace(citation=_citation(hit.citation, place), duplicates=duplicates, neighbours=neighbours)


def _passages(passages: tuple[Neighbour, ...], place: str) -> tuple[Neighbour, ...]:
    return tuple(passage._replace(citation=_citation(passage.citation, place)) for passage in passages)


def _citation(citation: Citation, place: str) -> Citation:
    return citation._replace(path=f"{place}:{citation.path}")
