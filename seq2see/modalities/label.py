"""Labels: one of a few names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field as Setting

from seq2see.data.batches import Labels, Ragged
from seq2see.data.tokens import Unit
from seq2see.data.vocabulary import Vocabulary
from seq2see.errors import UserError, nearest
from seq2see.evaluation import OutputType
from seq2see.files import whole_characters
from seq2see.modalities.base import Chosen, Output, file_of, outputs
from seq2see.registry import Problem
from seq2see.settings.base import no_effect
from seq2see.settings.columns import ColumnSettings, OutputColumn

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

FORWARD, BACKWARD = "forward", "backward"
"""The labels of `made: direction`; a clip as it lies on the disk is the first."""


class LabelOutput(OutputColumn):
    """An output that is one of the classes found in the data."""

    noun: ClassVar[str] = "a label"
    classes: ClassVar[bool] = True
    usual_decoder: ClassVar[str] = "label"
    correct: ClassVar[str] = "accuracy"
    measured_as: ClassVar[OutputType] = "label"
    kind: Literal["label"] = Setting("label", description="what the column holds")
    made: Literal["direction"] | None = Setting(
        None,
        description="labels that are not in a column; direction: the videos of each row are read forward and "
        "backward, and the label says which",
    )

    @property
    def sized_by_data(self) -> bool:
        return self.made is None

    @property
    def generated(self) -> str | None:
        return self.made

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        """`made: direction` needs a video, and an encoder that notices the direction in which it is read."""
        if self.made is None:
            return
        if not recipe.videos:
            kinds = ", ".join(dict.fromkeys(column.kind for column in recipe.inputs.values())) or "none"
            message = f"{self.made} is that of a video, and the inputs are {kinds}; allowed: with a video"
            yield Problem(f"{path}.made", message, "direction")
        for name in recipe.videos:
            reason = recipe.encoder_of(name).order_lost
            if reason and not recipe.attention.sees_order:
                message = f"{reason}: their order is lost, and both directions are the same"
                allowed = "recurrent, transformer with positions, or motion [16, 32, 64]"
                key = f"{recipe.encoder_path(name)}.over_time"
                yield Problem(key, f"{message}; allowed: {allowed}", "direction")
        yield from no_effect(self, path, ["column"], f"{path}.made: {self.made} is read from no column")
        if recipe.loss.class_weights == "balanced":
            reason = "every row is read both ways: both labels are as frequent"
            yield Problem("loss.class_weights", reason, "no-effect", no_effect=True)


_SHOWN = 20


@outputs.register("label")
class LabelField(Output):
    """Names without special symbols, in the order of the alphabet: an id does not depend on how often a label occurs.

    >>> field = LabelField(LabelOutput())
    >>> field.build(["yes", "no", "yes"])
    >>> field.labels, field.counts, field.encode("yes")
    (['no', 'yes'], [1, 2], 1)
    """

    Settings: ClassVar[type[ColumnSettings]] = LabelOutput
    settings: LabelOutput

    def __init__(self, settings: LabelOutput, *, output: bool = True):
        super().__init__(settings, output=output)
        self.vocabulary = Vocabulary([], specials=False)
        self._counts: Counter[str] = Counter()

    def describe(self, name: str, size: int | None, *, exact: bool) -> str:
        if self.settings.made:
            return f"output y: {FORWARD} or {BACKWARD}, not from a column: videos are read in both directions"
        many = "" if size is None else f", {'' if exact else 'at most '}{size:,} labels"
        return f"output y: a label, column '{self.settings.column or name}'{many}"

    @property
    def stated_size(self) -> int | None:
        return len((FORWARD, BACKWARD)) if self.settings.made else None

    @property
    def counted(self) -> str:
        return "labels"

    def observe(self, value: str) -> None:
        self.observe_part(value, 1)

    @property
    def unit(self) -> Unit | None:
        return None if self.settings.made else "value"

    def observe_part(self, part: str, times: int) -> None:
        self._counts[_name(part)] += times

    def part_ids(self, part: str) -> list[int]:
        return self.ids(part)

    def settle(self) -> None:
        if len(self._counts) < 2:
            only = f" ('{next(iter(self._counts))}')" if self._counts else ""
            raise UserError(f"a column of labels needs two different ones at least, found {len(self._counts)}{only}")
        self.vocabulary = Vocabulary(sorted(self._counts), counts=self._counts, specials=False)
        self._counts = Counter()

    @property
    def labels(self) -> list[str]:
        """Names by id."""
        return self.vocabulary.symbols

    @property
    def counts(self) -> list[int]:
        """Rows of each label, by id (for class weights)."""
        return self.vocabulary.counts

    def knows(self, value: str) -> bool:
        """Whether it is one of them."""
        return _name(value) in self.vocabulary

    def encode(self, value: str) -> int:
        name = _name(value)
        if name not in self.vocabulary:
            more = f", ... ({len(self.labels):,} in total)" if len(self.labels) > _SHOWN else ""
            known = ", ".join(self.labels[:_SHOWN]) + more
            raise UserError(f"unknown label '{name}'{nearest(name, self.labels)}; known: {known}")
        return self.vocabulary.ids[name]

    def decode(self, label: int) -> str:
        return self.labels[int(label)]

    def ids(self, value: str) -> list[int]:
        return [self.encode(value)]

    def widths(self, store: Ragged) -> NDArray[np.int64]:
        return np.ones(len(store), dtype=np.int64)

    def pad(self, store: Ragged, rows: Chosen) -> Labels:
        chosen = np.asarray(rows, dtype=np.int64)
        return Labels(torch.from_numpy(np.asarray(store.flat[store.offsets[chosen]], dtype=np.int64)))

    def batch(self, values: Sequence[str]) -> Labels:
        return Labels(torch.tensor([self.encode(value) for value in values], dtype=torch.int64))

    def check(self, value: str) -> None:
        """An empty or unknown label has no probability."""
        self.encode(value)

    def save(self, folder: Path, name: str) -> list[Path]:
        path = file_of(folder, "labels", name, suffix=".txt")
        self.vocabulary.save(path)
        return [path]

    @classmethod
    def load(cls, folder: Path, name: str, settings: LabelOutput, *, output: bool = True) -> Self:
        field = cls(settings, output=output)
        field.vocabulary = Vocabulary.load(file_of(folder, "labels", name, suffix=".txt"), specials=False)
        return field


def _name(value: str) -> str:
    """The label without the spaces around it."""
    name = whole_characters(value).strip()
    if not name:
        raise UserError("the label is empty")
    return name
