"""A model with everything it needs: recipe, fields, network and baselines; and its folder on disk."""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from seq2see.data.columns import OUTPUT
from seq2see.data.pretrained_vectors import read_vectors
from seq2see.decoders.base import SymbolSettings
from seq2see.embeddings import PretrainedSettings
from seq2see.errors import MissingExtra, Notice, UserError
from seq2see.evaluation import Baseline, baseline_from_dict
from seq2see.files import MEBIBYTE, parse_json, read_text, shortened, write_bytes
from seq2see.modalities.files import MediaField
from seq2see.model import EncoderDecoder, Sizes
from seq2see.packed_weights import PackedWeights
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.packing import model_folder, naming_archive
from seq2see.pipeline.trained_rows import FILE as TRAINED_ROWS
from seq2see.pipeline.trained_rows import TrainedRows
from seq2see.pipeline.weights import (
    CHECKSUMS,
    check_files,
    check_finite,
    check_header,
    file_digest,
    fill,
    is_unchanged,
    listed_checksums,
    read_tensors,
    tensors_of,
    write_checksums,
    write_tensors,
)
from seq2see.recipe import Recipe, load_recipe, to_yaml
from seq2see.recipe.schema import with_plugins

if TYPE_CHECKING:
    from seq2see.pipeline.packing import Stamp
    from seq2see.pipeline.row_index import RowIndex

RECIPE, WEIGHTS, BASELINES = "recipe.yaml", "model.safetensors", "baselines.json"
ROW_INDEX = "row_index.safetensors"
"""Of the training rows by their states, where one was made (`row_index.py`)."""
MAX_BASELINES = 32 * MEBIBYTE
"""Bytes of baselines.json. The largest ones are a bag of words (5 million counts of some 3 bytes) and the counts of a
million symbols."""
MAX_BRACKETS = 1 << 20
"""Lists and mappings in baselines.json, which take twenty times the memory that they take in the file. A bag of words
has 50,000. Brackets inside words count too."""
PROBE = 1_000
"""The size of vocabularies that are not known, in a network without numbers."""


@dataclass
class Bundle:
    """A model with what it needs to read its inputs and write its outputs.

    baselines: trivial models, whose metrics are printed beside the model's; notes: messages about how it was created;
    trained: hashes of the rows it was trained on, None if that is not known; packed: weights for predictions;
    language_models: those that its searches have used, by their paths; folder: that of the model, if it was loaded from
    one; row_index: of its training rows, once it was needed; refused_index: the stamps of the files of an index that
    could not be used, and why.
    """

    recipe: Recipe
    fields: Fields
    network: EncoderDecoder
    baselines: list[Baseline] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    trained: TrainedRows | None = None
    packed: PackedWeights = field(default_factory=PackedWeights)
    language_models: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    row_index: RowIndex | None = None
    refused_index: tuple[tuple[Stamp | None, ...], str] | None = None

    @classmethod
    def create(cls, recipe: Recipe, fields: Fields, *, pretrained: bool = True) -> Bundle:
        """Create an untrained model; the caller seeds torch. pretrained: read pre-trained vectors and weights, which is
        not needed if weights are loaded afterwards."""
        vectors: dict[str, Tensor] = {}
        notes: list[str] = []
        if pretrained:
            vectors, notes = _pretrained_vectors(recipe, fields)
        recipe = _with_vector_sizes(recipe, vectors)
        sizes = Sizes({name: field.size for name, field in fields.inputs.items()}, fields.output.size, vectors)
        network = EncoderDecoder(recipe, sizes)
        if pretrained:
            network.fetch()
        return cls(recipe, fields, network, notes=notes)

    def save(self, folder: Path) -> None:
        """Write everything that `load` reads."""
        self.save_setup(folder)
        write_tensors(folder / WEIGHTS, tensors_of(self.network))

    def save_setup(self, folder: Path) -> None:
        """Write all files but the weights: recipe, vocabularies, baselines, hashes of the training rows, checksums."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{folder}: cannot be made: {error.strerror or error}") from None
        write_bytes(folder / RECIPE, to_yaml(self.recipe).encode())
        vocabularies = self.fields.save(folder)
        stored = [baseline.to_dict() for baseline in self.baselines]
        write_bytes(folder / BASELINES, json.dumps(stored, ensure_ascii=False).encode())
        files = [folder / RECIPE, *vocabularies, folder / BASELINES]
        if self.trained is not None:
            self.trained.save(folder)
            files.append(folder / TRAINED_ROWS)
        write_checksums(folder, files)

    @classmethod
    def load(cls, model: str | Path, *, device: str = "cpu") -> Bundle:
        """Read a model's folder, or a packed model; loading never runs code from it."""
        torch_device = find_device(device, key="device")
        folder = model_folder(model)
        with naming_archive(model, folder):
            bundle, unedited = cls._read(folder)
        bundle.folder = folder if folder == Path(model) else None  # the folder of a packed model does not last
        bundle.network.to(torch_device).eval()
        if not unedited:
            text = f"{Path(model) / RECIPE}: edited since the model was saved; it is used as it is now"
            warnings.warn(Notice(text), stacklevel=3)
        return bundle

    @classmethod
    def _read(cls, folder: Path) -> tuple[Bundle, bool]:
        """(the model in a folder, whether its recipe is as it was saved)."""
        check_folder(folder)
        recipe = saved_recipe(folder)  # first, as it refuses folders of a newer format
        unedited = check_files(folder, editable=RECIPE)
        path = folder / WEIGHTS
        try:
            fields = Fields.load(folder, recipe)
            _check_sizes(recipe, fields, path)
            with _naming(folder / RECIPE):
                bundle = cls.create(recipe, fields, pretrained=False)
        except UserError:
            raise
        except Exception:  # a recipe that only claims to be as it was saved: its rules tell what is wrong
            load_recipe(folder / RECIPE, complete=True)
            raise
        tensors = read_tensors(path)
        check_finite(tensors, path=path)
        fill(bundle.network, tensors, path=path)
        bundle.baselines = _read_baselines(folder / BASELINES)
        bundle.trained = TrainedRows.load(folder)
        return bundle, unedited

    def files(self, folder: Path) -> list[Path]:
        """The files in this model's folder that `load` reads; those that a recipe and its fields do not name are not
        among them."""
        with tempfile.TemporaryDirectory() as scratch:
            names = [path.name for path in self.fields.save(Path(scratch))]
        optional = [name for name in (CHECKSUMS, BASELINES, TRAINED_ROWS) if (folder / name).is_file()]
        return [folder / name for name in (RECIPE, WEIGHTS, *names, *optional)]

    @property
    def frozen_inputs(self) -> dict[str, MediaField]:
        """The files whose encoder has a frozen part, which always gives the same features of a file."""
        files = {name: field for name, field in self.fields.inputs.items() if isinstance(field, MediaField)}
        return {name: field for name, field in files.items() if self.network.encoder(name).frozen is not None}

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device


def saved_recipe(folder: Path) -> Recipe:
    """The recipe of a model's folder, trusted where it is as it was saved, and checked where it was edited."""
    path = folder / RECIPE
    try:
        trusted = is_unchanged(folder, RECIPE)
    except UserError:  # a damaged list of checksums, or that of a newer format, which the recipe states
        trusted = False
    return load_recipe(path, complete=True, trusted=trusted)


def folders_of(model: str | Path) -> list[str]:
    """The folders of an ensemble, or packed models, which are joined by +; a name may have a + in itself.

    >>> folders_of("runs/a+runs/b")
    ['runs/a', 'runs/b']
    """
    parts = [str(model)] if Path(model).exists() else str(model).split("+")
    if not all(part.strip() for part in parts):
        raise UserError(f"{model}: a folder is missing next to +; the models of an ensemble are given as FOLDER+FOLDER")
    return parts


def model_checksums(model: str | Path) -> list[str]:
    """For each folder of a model, a SHA-256 checksum of what its predictions depend on: recipe, weights, and the
    vocabularies that checksums.json lists (folders of 0.1.0 have no such list)."""
    checksums = []
    for folder in map(model_folder, folders_of(model)):
        check_folder(folder)
        names = {RECIPE, WEIGHTS, *listed_checksums(folder)} - {BASELINES, TRAINED_ROWS}
        files = {name: file_digest(folder / name) for name in sorted(names)}
        checksums.append(hashlib.sha256(json.dumps(files).encode()).hexdigest())
    return checksums


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds no model; the error says what is wrong."""
    if not folder.exists():
        raise UserError(f"{folder}: no such folder; a model is a folder that `seq2see train` wrote")
    if not folder.is_dir():
        raise UserError(
            f"{folder}: a file; a model is a folder that `seq2see train` wrote, or a file of `seq2see pack`"
        )
    for name in (RECIPE, WEIGHTS):
        if not (folder / name).is_file():
            raise UserError(
                f"{folder}: not a whole model, {name} is missing; a model is a folder that `seq2see train` wrote"
            )


def _check_sizes(recipe: Recipe, fields: Fields, path: Path) -> None:
    """Compare the recipe with the header of the weights file before anything of that size is allocated.

    The network is built on the meta device, which costs no memory. Constructors of plug-ins need not work there: their
    models are compared by `fill`, once they are built.
    """
    if with_plugins(recipe):
        return
    try:
        with _naming(path.parent / RECIPE):
            network = meta_network(recipe, vocabulary_sizes(recipe, fields))
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:
        load_recipe(path.parent / RECIPE, complete=True)  # a recipe that only claims to be as it was saved
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path.parent / RECIPE}: no model can be built with these sizes: {reason}") from None
    check_header(path, network)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the name of a recipe's file before what the constructors of a network refuse: a recipe that only claims to be
    as it was saved comes this far."""
    try:
        yield
    except MissingExtra:
        raise
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def vocabulary_sizes(recipe: Recipe, fields: Fields) -> dict[str, int]:
    """The sizes of vocabularies, by the name of the field that owns them."""
    return {recipe.vocabulary_owner(name): field.size for name, field in fields.all.items() if field.size}


def meta_network(recipe: Recipe, sizes: Mapping[str, int]) -> EncoderDecoder:
    """The network on the meta device: names and shapes without numbers or memory.

    sizes: of vocabularies, by `vocabulary_owner`; those that are missing have the size PROBE.
    """
    complete = {name: sizes.get(recipe.vocabulary_owner(name), PROBE) for name in [*recipe.inputs, OUTPUT]}
    with torch.device("meta"):
        return EncoderDecoder(recipe, Sizes(complete, complete[OUTPUT]))


def find_device(name: str, *, key: str) -> torch.device:
    """The device of that name; a UserError if this machine does not have it. key: of the name, for the message."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device).cpu()
    except (RuntimeError, AssertionError, ValueError, NotImplementedError) as error:
        reason = shortened(str(error).splitlines()[0], 120, quotes=False)
        raise UserError(f"{key}: '{name}' cannot be used here: {reason}; allowed: {', '.join(_devices())}") from None
    return device


def _devices() -> list[str]:
    """Names of the devices of this machine."""
    cuda = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return ["cpu", *cuda, *mps]


def _read_baselines(path: Path) -> list[Baseline]:
    if not path.exists():
        return []
    text = read_text(path, most=MAX_BASELINES, what="a list of trivial models")
    if (brackets := text.count("[") + text.count("{")) > MAX_BRACKETS:
        raise UserError(f"{path}: damaged: {brackets:,} opening brackets; trivial models have at most {MAX_BRACKETS:,}")
    try:
        stored: Any = parse_json(text)
    except ValueError as error:
        raise UserError(f"{path}: damaged: not JSON: {error}") from None
    if not isinstance(stored, list) or not all(isinstance(baseline, dict) for baseline in stored):
        raise UserError(f"{path}: damaged: a list of trivial models ({{'name': ...}}) expected, got {str(stored)[:40]}")
    try:
        return [baseline_from_dict(baseline) for baseline in stored]
    except UserError as error:
        raise UserError(f"{path}: damaged: {error}") from None


def _pretrained_vectors(recipe: Recipe, fields: Fields) -> tuple[dict[str, Tensor], list[str]]:
    """(pre-trained vectors by field, notes on how much of each vocabulary they cover)."""
    vectors: dict[str, Tensor] = {}
    notes = []
    embeddings = {name: recipe.encoder_of(name).symbols for name in recipe.inputs if recipe.reader_of(name) == name}
    if not recipe.output.one_step and isinstance(recipe.decoder, SymbolSettings):
        embeddings[OUTPUT] = recipe.decoder.embedding
    for name, settings in embeddings.items():
        if settings is not None and isinstance(settings, PretrainedSettings) and settings.path:
            random = np.random.default_rng(abs(recipe.training.seed))
            read = read_vectors(settings.path, fields.all[name].vocabulary, generator=random)
            vectors[name] = torch.from_numpy(read.matrix)
            notes.append(f"'{name}': {read.note} in {settings.path}")
    return vectors, notes


def _with_vector_sizes(recipe: Recipe, vectors: dict[str, Tensor]) -> Recipe:
    """The recipe with the sizes of pre-trained vectors, so that the model can be built without their files."""
    if not vectors:
        return recipe
    raw = recipe.to_dict()
    for name, matrix in vectors.items():
        part = raw["decoder"] if name == OUTPUT else (raw["inputs"][name].get("encoder") or raw["encoder"])
        part["embedding"]["size"] = matrix.shape[1]
    return load_recipe(raw)
