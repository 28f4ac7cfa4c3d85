"""Where names can stand beside the points of a map, so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

GAP = 0.06
"""Inches between a point and its name."""


@dataclass(frozen=True)
class Spot:
    """The name of a point, its lower left corner at (x, y) inches."""

    point: int
    x: float
    y: float
    width: float
    height: float

    def covers(self, x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"], margin: float) -> bool:
        """Whether any of these points lies under it."""
        across = (x > self.x - margin) & (x < self.x + self.width + margin)
        return bool((across & (y > self.y - margin) & (y < self.y + self.height + margin)).any())

    def meets(self, other: Spot) -> bool:
        apart = self.x + self.width <= other.x or other.x + other.width <= self.x
        return not (apart or self.y + self.height <= other.y or other.y + other.height <= self.y)


def spread_order(points: Float[np.ndarray, "points 2"]) -> list[int]:
    """Points by how much each adds to a picture of all: the one nearest the middle, then always the one that is
    farthest from those before it. So few names tell of the middle, of the outliers and of what lies between.

    >>> spread_order(np.array([[0.1, 0.0], [0.0, 0.0], [5.0, 0.0], [-4.0, 0.0]]))
    [0, 2, 3, 1]
    """
    middle = np.linalg.norm(points - points.mean(0), axis=1)
    order = [int(middle.argmin())]
    far = np.linalg.norm(points - points[order[0]], axis=1)
    far[order[0]] = -1
    for _ in range(len(points) - 1):
        order.append(int(far.argmax()))
        far = np.minimum(far, np.linalg.norm(points - points[order[-1]], axis=1))
        far[order[-1]] = -1
    return order


def placed(
    points: Float[np.ndarray, "points 2"],
    sizes: Sequence[tuple[float, float]],
    *,
    room: tuple[float, float],
    most: int,
    mark: float = 0.035,
) -> list[Spot]:
    """Names for as many points as fit into a room of (width, height) inches without covering a name or a point.

    points: in inches; sizes: (width, height) of each point's name; most: so many names at most; mark: half the width
    of a point itself.
    """
    found: list[Spot] = []
    for point in spread_order(points):
        if len(found) == most:
            break
        x, y = points[point]
        width, height = sizes[point]
        near = GAP + mark
        corners = [
            (x + near, y - height / 2),
            (x - near - width, y - height / 2),
            (x - width / 2, y + near),
            (x - width / 2, y - near - height),
            (x + near * 0.7, y + near * 0.7),
            (x + near * 0.7, y - near * 0.7 - height),
            (x - near * 0.7 - width, y + near * 0.7),
            (x - near * 0.7 - width, y - near * 0.7 - height),
        ]
        others = np.delete(points, point, axis=0)
        for left, bottom in corners:
            spot = Spot(point, float(left), float(bottom), width, height)
            inside = left >= 0 and bottom >= 0 and left + width <= room[0] and bottom + height <= room[1]
            if inside and not spot.covers(others[:, 0], others[:, 1], mark) and not any(map(spot.meets, found)):
                found.append(spot)
                break
    return found
