"""Denoising pre-training: before a model learns from labelled rows, its encoder learns to read texts with masked, left
out and swapped symbols, and its decoder to write them as they were.

Input and output that share their vocabulary are learned by one autoencoder. Otherwise there are two: that of the inputs
gives the encoder, that of the outputs the decoder. They are runs of their own, in folders of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from seq2see.data.columns import OUTPUT
from seq2see.errors import UserError
from seq2see.modalities.text import TextField
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields, unbuilt_fields
from seq2see.pipeline.weights import fill, tensors_of
from seq2see.recipe import Recipe, fit_recipe, load_recipe
from seq2see.recipe.fitting import TableFacts
from seq2see.settings.columns import TextSettings
from seq2see.training.run import seed_everything

Half = Literal["encoder", "decoder", "both"]
NOISE = {"mask": 0.15, "drop": 0.1, "swap": 0.1}
TAKEN: dict[Half, tuple[str, ...]] = {
    "encoder": ("encoders.",),
    "decoder": ("decoder.", "head."),
    "both": ("encoders.", "decoder.", "head."),
}
"""How the names of the weights begin that a model takes from each autoencoder."""
LIMITS = ("epochs", "updates", "minutes")

TrainPart = Callable[[Half, Recipe, list[dict[str, str]], Bundle], Bundle]
"""Trains one autoencoder: (which, its recipe, its rows by column, the model it starts from)."""


def check_pretrainable(recipe: Recipe, share: float) -> None:
    """Refuse recipes whose encoder does not read a text."""
    if not 0 < share < 1:
        raise UserError(f"--pretrain {share:g}: the share of a run; allowed: above 0 and below 1")
    names = list(recipe.inputs)
    if not names:
        raise UserError("--pretrain: a language model has no encoder, and learns texts already")
    others = [name for name, column in recipe.inputs.items() if not column.in_a_row or column.unordered]
    if others:
        kind = recipe.inputs[others[0]].kind
        raise UserError(
            f"--pretrain: input '{others[0]}' is of kind {kind}; texts alone are learned with masked symbols"
        )
    if len(names) > 1:
        raise UserError(f"--pretrain: {len(names)} inputs ({', '.join(names)}); allowed: one text")
    if recipe.output.numeric:
        raise UserError(f"--pretrain: {recipe.output.noun} is not written symbol by symbol; allowed: text, label")


@dataclass
class Pretraining:
    """The pre-training of a model.

    recipe: of the model; inputs: of the labelled rows, then those without outputs; outputs: texts or labels; share: of
    the recipe's limits that all autoencoders together take.
    """

    recipe: Recipe
    inputs: Sequence[str]
    outputs: Sequence[str]
    share: float

    def fit(self) -> Recipe:
        """The recipe with what is `auto` fitted to the labelled rows, so that all stages have the same sizes."""
        fields = self._fields()
        symbols = sum(len(fields.output.ids(text)) + 1 for text in self.outputs)
        read = sum(len(fields.inputs[self.name].ids(text)) for text in self.inputs[: len(self.outputs)])
        self.recipe = fit_recipe(self.recipe, TableFacts(len(self.outputs), symbols, symbols + read))
        return self.recipe

    @property
    def name(self) -> str:
        return next(iter(self.recipe.inputs))

    @property
    def halves(self) -> list[Half]:
        if self.recipe.output.one_step:
            return ["encoder"]
        return ["both"] if self._shared else ["encoder", "decoder"]

    @property
    def _shared(self) -> bool:
        return self.recipe.vocabulary_owner(OUTPUT) == self.name

    @property
    def note(self) -> str:
        learned = {
            "encoder": f"the encoder on {len(self.inputs):,} inputs",
            "decoder": f"the decoder on {len(self.outputs):,} outputs",
            "both": f"encoder and decoder on {len(self.inputs):,} inputs and {len(self.outputs):,} outputs",
        }
        label = "; labels are not written, so that there is no decoder to pre-train"
        done = " and ".join(learned[half] for half in self.halves)
        return f"denoising pre-training, {self.share:g} of the run: {done}{label * self.recipe.output.one_step}"

    def run(self, train: TrainPart, folder: Path) -> Bundle:
        """Train the autoencoders, and write the model that their weights make into the folder."""
        fields = self._fields()
        bundle = self._create(self.recipe, fields)
        weights = tensors_of(bundle.network)
        for half in self.halves:
            recipe = self.autoencoder(half)
            learned = train(half, recipe, self._rows(half), self._start(recipe, fields, half))
            for name, tensor in tensors_of(learned.network).items():
                fits = name in weights and weights[name].shape == tensor.shape
                if fits and name.startswith(TAKEN[half]):
                    weights[name] = tensor
        fill(bundle.network, weights, path=folder)
        bundle.save(folder)
        return bundle

    def autoencoder(self, half: Half) -> Recipe:
        """The recipe of an autoencoder: the model's own parts, with noise on what is read."""
        recipe, name = self.recipe, self.name
        raw = recipe.to_dict()
        read = recipe.inputs[name]
        assert isinstance(read, TextSettings)
        text: TextSettings = read
        if half != "encoder":
            assert isinstance(recipe.output, TextSettings)
            text = recipe.output
        symbols = {key: value for key, value in text.model_dump().items() if key in TextSettings.model_fields}
        symbols |= {"column": None, "share": None}
        if half == "both":
            symbols = {**{key: raw["inputs"][name][key] for key in symbols}, "column": None}
        training: dict[str, Any] = {
            **raw["training"],
            **{key: self._limit(key) for key in LIMITS},
            "metric": None,
            "scheduled_sampling": 0.0,
            "film": 0,
            "samples": 0,
            "tensorboard": False,
            "noise": NOISE,
        }
        writer = {"decoder": {**raw["decoder"], "copy_from": "none"}, "attention": raw["attention"]}
        if recipe.output.one_step:
            size = raw["encoder"].get("size")
            writer = {"decoder": {"size": size} if size else {}}
        elif "copy_from" not in raw["decoder"]:
            del writer["decoder"]["copy_from"]
        try:
            return load_recipe(
                {
                    "task": f"{recipe.task}-{half}",
                    "inputs": {name: {**raw["inputs"][name], **symbols}},
                    "output": {"kind": "text", **symbols, "share": name, "vocabulary": 0, "min_count": 1},
                    "data": {key: raw["data"][key] for key in ("dev_share", "dev_most")},
                    "encoder": raw["encoder"],
                    **writer,
                    "training": training,
                    "search": {"max_length": recipe.search.max_length},
                }
            )
        except UserError as error:
            raise UserError(f"--pretrain: {error}") from None

    def _limit(self, key: str) -> float:
        """The share of a limit that one autoencoder has."""
        limit = getattr(self.recipe.training, key) * self.share / len(self.halves)
        return limit if key == "minutes" else max(round(limit), 1) if limit else 0

    def _rows(self, half: Half) -> list[dict[str, str]]:
        texts: list[str] = [*(self.inputs if half != "decoder" else ()), *(self.outputs if half != "encoder" else ())]
        return [{self.name: text, OUTPUT: text} for text in dict.fromkeys(texts)]

    def _fields(self) -> Fields:
        """The fields of the model: symbols of all inputs, with outputs or without, and of the outputs."""
        fields = unbuilt_fields(self.recipe)
        read, written = fields[self.name], fields[OUTPUT]
        if self._shared:
            read.build([*self.inputs, *self.outputs])
            _text(written).use(_text(read))
        else:
            read.build(self.inputs)
            written.build(self.outputs)
        return Fields.assemble(self.recipe, fields)

    def _start(self, recipe: Recipe, fields: Fields, half: Half) -> Bundle:
        """An autoencoder before its first update, with the symbols of the model."""
        own, owner = unbuilt_fields(recipe), fields.output if half == "decoder" else fields.inputs[self.name]
        for field in own.values():
            _text(field).use(_text(owner))
        return self._create(recipe, Fields.assemble(recipe, own))

    def _create(self, recipe: Recipe, fields: Fields) -> Bundle:
        """An untrained model, whichever were created before it."""
        seed_everything(self.recipe.training.seed)
        return Bundle.create(recipe, fields)


def _text(field: object) -> TextField:
    assert isinstance(field, TextField)
    return field


def texts_of(rows: Iterable[Any], name: str) -> list[str]:
    """A column of rows."""
    return [row[name] for row in rows]
