"""Principal component analysis: the best linear code of a given size, and maps of vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from seq2see.errors import UserError


@dataclass(frozen=True)
class Pca:
    """Principal components of some rows.

    mean (numbers,); components (components, numbers), orthonormal, by falling variance; shares (components,): of the
    variance, which each of them explains.
    """

    mean: Float[np.ndarray, " numbers"]
    components: Float[np.ndarray, "components numbers"]
    shares: Float[np.ndarray, " components"]

    @classmethod
    def fit(cls, rows: Float[np.ndarray, "rows numbers"]) -> Pca:
        """All components of some rows. The sign of each is such that its largest number is above zero, so that a map is
        not mirrored on another machine.

        >>> Pca.fit(np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])).components[0].round(2).tolist()
        [0.6, 0.8]
        """
        if len(rows) < 2:
            raise UserError(f"principal components need two rows or more, got {len(rows)}")
        mean = rows.mean(0)
        _, lengths, components = np.linalg.svd(rows - mean, full_matrices=False)
        largest = components[np.arange(len(components)), np.abs(components).argmax(1)]
        total = float(np.square(lengths).sum())
        shares = np.square(lengths) / total if total > 0 else np.zeros_like(lengths)
        return cls(mean, components * np.where(largest < 0, -1.0, 1.0)[:, None], shares)

    def transform(self, rows: Float[np.ndarray, "rows numbers"], size: int) -> Float[np.ndarray, "rows size"]:
        """Project rows on the first `size` components, with zeros where there are fewer."""
        kept = self.components[:size]
        code = np.zeros((len(rows), size))
        code[:, : len(kept)] = (rows - self.mean) @ kept.T
        return code

    def reconstruct(self, rows: Float[np.ndarray, "rows numbers"], size: int) -> Float[np.ndarray, "rows numbers"]:
        """Project rows on the first `size` components and back."""
        kept = self.components[:size]
        return np.asarray((rows - self.mean) @ kept.T @ kept + self.mean)


def principal_angles(
    first: Float[np.ndarray, "_ numbers"], second: Float[np.ndarray, "_ numbers"]
) -> Float[np.ndarray, " angles"]:
    """Degrees between the subspaces that the rows of two matrices span, from small to large: all 0 where one contains
    the other, 90 where a direction of one is orthogonal to the other.

    >>> principal_angles(np.array([[2.0, 0.0, 0.0]]), np.array([[1.0, 1.0, 0.0]])).round(3).tolist()
    [45.0]
    """
    bases = [np.linalg.qr(np.asarray(rows, dtype=np.float64).T)[0] for rows in (first, second)]
    left, cosines, _ = np.linalg.svd(bases[0].T @ bases[1])
    # arccos is imprecise for small angles; their sines are the parts of one basis outside the other
    directions = bases[0] @ left[:, : len(cosines)]
    outside = directions - bases[1] @ (bases[1].T @ directions)
    sines = np.linalg.norm(outside, axis=0)
    return np.asarray(np.degrees(np.arctan2(sines, np.clip(cosines, 0, 1))))
