"""All that makes a model: recipe, fields, network and the trivial models beside it; and its folder on disk."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seq2see.data.columns import OUTPUT
from seq2see.data.pretrained_vectors import read_vectors
from seq2see.decoders.base import SymbolSettings
from seq2see.embeddings import PretrainedSettings
from seq2see.errors import Notice, UserError
from seq2see.evaluation import Baseline, baseline_from_dict
from seq2see.files import MEBIBYTE, parse_json, read_text, write_bytes
from seq2see.model import EncoderDecoder, Sizes
from seq2see.pipeline.devices import usable
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.parameters import skeleton
from seq2see.pipeline.trained_rows import FILE as TRAINED_ROWS
from seq2see.pipeline.trained_rows import TrainedRows
from seq2see.pipeline.weights import (
    check_files,
    check_finite,
    check_header,
    fill,
    read_tensors,
    tensors_of,
    write_checksums,
    write_tensors,
)
from seq2see.recipe import Recipe, load_recipe, to_yaml
from seq2see.recipe.schema import with_plugins

RECIPE, WEIGHTS, BASELINES = "recipe.yaml", "model.safetensors", "baselines.json"
MOST_BASELINES = 32 * MEBIBYTE
"""Of baselines.json. The largest are a bag of words (5 million counts of some 3 bytes) and the counts of a million
symbols."""
MOST_BRACKETS = 1 << 20
"""... and of its lists and mappings, which take twenty times the memory that they take in the file: a bag of words has
50,000. Brackets inside words count too."""


@dataclass
class Bundle:
    """A model with what it needs to read its inputs and write its outputs.

    trained: the rows it was trained on, as hashes; None where that is not known.
    """

    recipe: Recipe
    fields: Fields
    network: EncoderDecoder
    baselines: list[Baseline] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    trained: TrainedRows | None = None

    @classmethod
    def create(cls, recipe: Recipe, fields: Fields, *, pretrained: bool = True) -> Bundle:
        """A new, untrained model; the caller seeds torch. `pretrained` false: weights will be loaded over it."""
        vectors: dict[str, Tensor] = {}
        notes: list[str] = []
        if pretrained:
            vectors, notes = _vectors(recipe, fields)
        sizes = Sizes({name: one.size for name, one in fields.inputs.items()}, fields.output.size, vectors)
        network = EncoderDecoder(_sized(recipe, vectors), sizes)
        if pretrained:
            network.fetch()
        return cls(_sized(recipe, vectors), fields, network, notes=notes)

    def save(self, folder: Path) -> None:
        """Write everything `load` needs."""
        self.save_setup(folder)
        write_tensors(folder / WEIGHTS, tensors_of(self.network))

    def save_setup(self, folder: Path) -> None:
        """All but the weights: recipe, vocabularies, trivial models, hashes of the rows trained on, and the
        checksums of these."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{folder}: cannot be made: {error.strerror or error}") from None
        write_bytes(folder / RECIPE, to_yaml(self.recipe).encode())
        learned = self.fields.save(folder)
        stored = [baseline.to_dict() for baseline in self.baselines]
        write_bytes(folder / BASELINES, json.dumps(stored, ensure_ascii=False).encode())
        others = [folder / RECIPE, *learned, folder / BASELINES]
        if self.trained is not None:
            self.trained.save(folder)
            others.append(folder / TRAINED_ROWS)
        write_checksums(folder, others)

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "cpu") -> Bundle:
        """Read a model's folder; loading never runs code from it."""
        folder, place = Path(folder), usable(device, key="device")
        check_folder(folder)
        recipe = load_recipe(folder / RECIPE, complete=True)  # first, as it refuses folders of a newer format
        unedited = check_files(folder, free=RECIPE)
        fields, path = Fields.load(folder, recipe), folder / WEIGHTS
        _check_sizes(recipe, fields, path)
        bundle = cls.create(recipe, fields, pretrained=False)
        tensors = read_tensors(path)
        check_finite(tensors, path=path)
        fill(bundle.network, tensors, path=path)
        bundle.baselines = _baselines(folder / BASELINES)
        bundle.trained = TrainedRows.load(folder)
        bundle.network.to(place).eval()
        if not unedited:
            text = f"{folder / RECIPE}: edited since the model was saved; it is used as it is now"
            warnings.warn(Notice(text), stacklevel=3)
        return bundle

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device


def folders_of(given: str | Path) -> list[str]:
    """The folders of an ensemble's models, which + joins; a folder may have a + in its own name.

    >>> folders_of("runs/a+runs/b")
    ['runs/a', 'runs/b']
    """
    parts = [str(given)] if Path(given).is_dir() else str(given).split("+")
    if not all(part.strip() for part in parts):
        raise UserError(f"{given}: a folder is missing beside +; the models of an ensemble are given as FOLDER+FOLDER")
    return parts


def check_folder(folder: Path) -> None:
    """Say what is wrong with a folder that holds no model."""
    if not folder.exists():
        raise UserError(f"{folder}: no such folder; a model is a folder that `seq2see train` wrote")
    if not folder.is_dir():
        raise UserError(f"{folder}: a file; a model is a folder that `seq2see train` wrote")
    for name in (RECIPE, WEIGHTS):
        if not (folder / name).is_file():
            raise UserError(
                f"{folder}: not a whole model, {name} is missing; a model is a folder that `seq2see train` wrote"
            )


def _check_sizes(recipe: Recipe, fields: Fields, path: Path) -> None:
    """Compare what the recipe asks for with the header of the weights, before anything of that size is allocated."""
    if with_plugins(recipe):
        return  # a constructor of the user's own need not work without numbers; `fill` compares what it built
    known = {recipe.vocabulary_owner(name): one.size for name, one in fields.all.items() if one.size}
    try:
        network = skeleton(recipe, known)
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:
        said = str(error).partition("\n")[0]
        raise UserError(f"{path.parent / RECIPE}: no model can be built of these sizes: {said}") from None
    check_header(path, network)


def _baselines(path: Path) -> list[Baseline]:
    if not path.exists():
        return []
    text = read_text(path, most=MOST_BASELINES, what="a list of trivial models")
    if (brackets := text.count("[") + text.count("{")) > MOST_BRACKETS:
        raise UserError(
            f"{path}: damaged: {brackets:,} opening brackets; trivial models have at most {MOST_BRACKETS:,}"
        )
    try:
        stored: Any = parse_json(text)
    except ValueError as error:
        raise UserError(f"{path}: damaged: not JSON: {error}") from None
    if not isinstance(stored, list) or not all(isinstance(one, dict) for one in stored):
        raise UserError(f"{path}: damaged: a list of trivial models ({{'name': ...}}) expected, got {str(stored)[:40]}")
    try:
        return [baseline_from_dict(one) for one in stored]
    except UserError as error:
        raise UserError(f"{path}: damaged: {error}") from None


def _vectors(recipe: Recipe, fields: Fields) -> tuple[dict[str, Tensor], list[str]]:
    """Pre-trained vectors by field name, and how much of each vocabulary they cover."""
    found: dict[str, Tensor] = {}
    notes = []
    wanted = {name: recipe.encoder_of(name).symbols for name in recipe.inputs if recipe.reader_of(name) == name}
    if not recipe.output.one_step and isinstance(recipe.decoder, SymbolSettings):
        wanted[OUTPUT] = recipe.decoder.embedding
    for name, settings in wanted.items():
        if settings is not None and isinstance(settings, PretrainedSettings) and settings.path:
            random = np.random.default_rng(abs(recipe.training.seed))
            read = read_vectors(settings.path, fields.all[name].vocabulary, generator=random)
            found[name] = torch.from_numpy(read.matrix)
            notes.append(f"'{name}': {read.note} in {settings.path}")
    return found, notes


def _sized(recipe: Recipe, vectors: dict[str, Tensor]) -> Recipe:
    """The recipe with the sizes that pre-trained vectors brought along, so that it builds without their files."""
    if not vectors:
        return recipe
    raw = recipe.to_dict()
    for name, matrix in vectors.items():
        part = raw["decoder"] if name == OUTPUT else (raw["inputs"][name].get("encoder") or raw["encoder"])
        part["embedding"]["size"] = matrix.shape[1]
    return load_recipe(raw)
