"""What all settings of encoders tell of what they read and give."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from pydantic import Discriminator

from seq2see.recipe.basics import Settings
from seq2see.recipe.own import PLUGIN, Own


def by_kind(default: str, *, brought: Collection[str] = ()) -> Discriminator:
    """Chooses among groups of keys by their `kind`, which need not be given; one group stands for all brought ones."""

    def kind(given: Any) -> Any:
        word = given.get("kind", default) if isinstance(given, dict) else getattr(given, "kind", default)
        if isinstance(word, str) and word in brought:
            return PLUGIN
        return word if isinstance(word, str) and word != PLUGIN else ""

    return Discriminator(kind)


View = tuple[int | None, str | None]
"""Numbers in each place, and how places lie; None: only the built encoder knows."""


class Reader(Settings):
    """What every encoder's settings tell of what it gives, None where only the built encoder knows.

    reads: the kinds of input it can read; lies: how its places lie, where no setting has a say in it.
    """

    reads: ClassVar[tuple[str, ...]] = ("text",)
    lies: ClassVar[str | None] = "tokens"

    @property
    def places_size(self) -> int | None:
        """Numbers in each h_j, which is what is looked at: `size` of them, of each direction where there are two."""
        given: dict[str, Any] = dict(self)
        return int(given["size"]) * (2 if given.get("bidirectional") else 1)

    @property
    def summary_size(self) -> int | None:
        """Numbers in the summary: what starts a decoder or enters its every step."""
        return self.places_size

    @property
    def layout(self) -> str | None:
        """How its places lie."""
        return self.lies

    @property
    def further(self) -> dict[str, View]:
        """Other places of the same input, by the name that stands behind the input's own."""
        return {}

    @property
    def own(self) -> Own | None:
        """The class behind it, where a plug-in brought it."""
        return None
