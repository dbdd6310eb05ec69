"""Bit codes, compared with an implementation that counts single bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.store.sqlite import bit_codes


def vectors(seed: int, rows: int, dimension: int) -> Any:
    return np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32)


def naive_bits(row: Any, centre: Any) -> list[bool]:
    return [bool(value > middle) for value, middle in zip(row.tolist(), centre.tolist(), strict=True)]


def naive_distance(one: list[bool], other: list[bool]) -> int:
    return sum(mine != theirs for mine, theirs in zip(one, other, strict=True))


SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(0, 20), st.integers(1, 260))
def test_distances_are_the_numbers_of_dimensions_on_different_sides_of_the_centre(
    seed: int, rows: int, dimension: int
) -> None:
    stored, query, centre = (
        vectors(seed, rows, dimension),
        vectors(seed + 1, 1, dimension),
        vectors(seed + 2, 1, dimension)[0] / 3,
    )
    planes = bit_codes.encode(stored, centre)
    assert planes.shape == (bit_codes.plane_count(dimension), rows)
    assert planes.flags.c_contiguous
    found = bit_codes.distances(planes, bit_codes.encode(query, centre)[:, 0])
    asked = naive_bits(query[0], centre)
    assert found.tolist() == [naive_distance(naive_bits(row, centre), asked) for row in stored]


@pytest.mark.parametrize(
    ("dimension", "planes"), [(1, 1), (63, 1), (64, 1), (65, 2), (128, 2), (384, 6), (512, 8), (1536, 24)]
)
def test_one_plane_of_a_bit_code_has_64_dimensions(dimension: int, planes: int) -> None:
    assert bit_codes.plane_count(dimension) == planes


@pytest.mark.parametrize("dimension", [64, 192, 256, 384, 1000, 4096])
def test_opposite_vectors_differ_in_every_bit_however_many_there_are(dimension: int) -> None:
    """Bits are counted in bytes, which must not overflow."""
    one = vectors(1, 3, dimension)
    centre = np.zeros(dimension, np.float32)
    opposite = bit_codes.encode(-one[:1], centre)[:, 0]
    assert bit_codes.distances(bit_codes.encode(one, centre), opposite)[0] == dimension


def test_a_value_equal_to_the_centre_counts_as_below_it_in_rows_and_queries() -> None:
    centre = vectors(5, 1, 70)[0]
    code = bit_codes.encode(centre[None, :], centre)
    assert not code.any()
    assert bit_codes.distances(code, code[:, 0]).tolist() == [0]


def test_codes_of_float16_rows_are_those_of_the_same_values_as_float32() -> None:
    stored = vectors(6, 50, 384).astype(np.float16)
    centre = stored.astype(np.float32).mean(axis=0)
    assert np.array_equal(bit_codes.encode(stored, centre), bit_codes.encode(stored.astype(np.float32), centre))


# --- nearest


def naive_nearest(differences: list[int], count: int) -> list[int]:
    """All whose distance is at most that of number `count`."""
    limit = sorted(differences)[min(count, len(differences)) - 1]
    return [place for place, difference in enumerate(differences) if difference <= limit]


@given(st.lists(st.integers(0, 400), min_size=1, max_size=300), st.integers(1, 320))
def test_nearest_returns_the_smallest_distances_and_all_that_equal_the_last(differences: list[int], count: int) -> None:
    found = bit_codes.nearest(np.array(differences, np.uint16), count)
    expected = list(range(len(differences))) if count >= len(differences) else naive_nearest(differences, count)
    assert found.tolist() == expected


@given(
    SEEDS,
    st.integers(1, 40),
    st.sampled_from(["normal", "two peaks", "all equal", "sampled rows are far", "sampled rows are close"]),
)
def test_nearest_is_exact_although_it_estimates_a_limit_from_a_sample(seed: int, count: int, shape: str) -> None:
    random = np.random.default_rng(seed)
    differences = np.clip(random.normal(190, 12, 30_000), 0, 384).astype(np.uint16)
    if shape == "two peaks":
        differences[random.integers(0, 30_000, 5)] = 3
    elif shape == "all equal":
        differences[:] = 192
    elif shape == "sampled rows are far":
        differences[::16] = 384
    elif shape == "sampled rows are close":
        differences[::16] = 0
    assert bit_codes.nearest(differences, count).tolist() == naive_nearest(differences.tolist(), count)


# --- closest


@given(SEEDS, st.integers(1, 60), st.integers(1, 60), st.sampled_from([8, 64, 100, 384]))
def test_closest_keeps_the_codes_that_agree_best_with_the_query(
    seed: int, rows: int, count: int, dimension: int
) -> None:
    stored, query, centre = (
        vectors(seed, 80, dimension),
        vectors(seed + 1, 1, dimension)[0],
        np.zeros(dimension, np.float32),
    )
    positions = np.sort(np.random.default_rng(seed).permutation(80)[:rows])
    kept = bit_codes.closest(bit_codes.encode(stored, centre), positions, query, count)
    product = {
        place: sum(value for value, bit in zip(query.tolist(), naive_bits(stored[place], centre), strict=True) if bit)
        for place in positions.tolist()
    }
    assert len(set(kept.tolist())) == len(kept) >= min(rows, count)
    left_out = set(product) - set(kept.tolist())
    worst = min(product[place] for place in kept.tolist())
    assert all(product[place] <= worst + 1e-3 for place in left_out)


def test_closest_takes_all_or_none_of_equal_codes() -> None:
    one, query, centre = vectors(1, 1, 384), vectors(2, 1, 384)[0], np.zeros(384, np.float32)
    planes = bit_codes.encode(np.concatenate([np.repeat(one, 37, axis=0), np.repeat(-one, 41, axis=0)]), centre)
    for count in (1, 2, 36, 37, 38, 77):
        kept = bit_codes.closest(planes, np.arange(78), query, count)
        assert len(kept) in (37, 41, 78)
