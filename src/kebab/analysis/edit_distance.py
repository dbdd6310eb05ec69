"""How many slips of the finger lie between two words."""

from __future__ import annotations


def edit_distance(typed: str, meant: str, most: int) -> int | None:
    """Letters inserted, left out, replaced, or swapped with their neighbour; None when it takes more than `most` of
    them.
    """
    if abs(len(typed) - len(meant)) > most:
        return None
    far = most + 1
    before: list[int] = []
    above = [min(column, far) for column in range(len(meant) + 1)]
    for row, letter in enumerate(typed, start=1):
        current = [far] * (len(meant) + 1)
        current[0] = min(row, far)
        for column in range(
            max(1, row - most), min(len(meant), row + most) + 1
        ):  # farther from the diagonal it is too far anyway
            other = meant[column - 1]
            least = (
                above[column - 1] if letter == other else 1 + min(above[column - 1], above[column], current[column - 1])
            )
            if row > 1 < column and letter == meant[column - 2] and other == typed[row - 2]:
                least = min(least, before[column - 2] + 1)
            current[column] = least
        if min(current) > most and min(above) >= most:  # a swap may still reach back over one row
            return None
        before, above = above, current
    return above[-1] if above[-1] <= most else None
