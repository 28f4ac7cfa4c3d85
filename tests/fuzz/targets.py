"""What is fuzzed: each target makes one case of random choices, and says whether it was accepted or refused.

A case that ends in anything but success or a documented refusal raises.
"""

from __future__ import annotations

import json
import random
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import yaml
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file

from seq2see import api
from seq2see.data.media_files import MediaError
from seq2see.data.pretrained_vectors import read_vectors
from seq2see.data.vocabulary import Vocabulary
from seq2see.errors import Notice
from seq2see.pipeline.bundle import WEIGHTS
from seq2see.pipeline.five_answers import answers_of
from seq2see.pipeline.weights import CHECKSUMS, write_tensors
from seq2see.recipe import load_recipe, shipped
from seq2see.recipe.schema import flatten
from seq2see.studio.training_runs import TrainingRun
from seq2see.training.checkpoints import CHECKPOINTS, SOURCES, STATE_KEY
from seq2see.training.film import FILM
from seq2see.training.reports import METRICS
from tests.data import test_fuzzed_media as media
from tests.fuzz.chunks import Check
from tests.fuzz.requests import requests
from tests.hostile.models import KINDS, SMALL, make_model, write_rows
from tests.hostile.mutations import KEYS, TEXTS, VALUES, mutate_bytes, mutate_settings, survived
from tests.hostile.test_folders import answers, mutate_file
from tests.hostile.test_recipes import known_recipes, read_settings, read_text
from tests.hostile.test_tables import read_one, seeds


@dataclass(frozen=True)
class Target:
    """share: of a thousand cases; prepare: makes what all cases share in a folder, and gives the check of one."""

    share: int
    prepare: Callable[[Path], Check]
    about: str


# ---------------------------------------------------------------- recipes


def recipe_texts(folder: Path) -> Check:
    known = known_recipes()
    return lambda draw: read_text(folder / "mutated.yaml", draw.choice(known), draw)


def recipe_settings(folder: Path) -> Check:
    known = known_recipes()
    return lambda draw: read_settings(draw.choice(known), draw)


def overrides(folder: Path) -> Check:
    """`--set`: keys and values of all recipes crossed with each other, and with what is no value at all."""
    recipes = known_recipes()[:-1]
    pairs = [pair for recipe in recipes for pair in flatten(recipe, "")]
    keys = sorted({path.lstrip(".") for path, _ in pairs})
    values = sorted({yaml.safe_dump(value, default_flow_style=True).partition("\n...")[0] for _, value in pairs})
    odd = [*TEXTS, *map(str, VALUES)]
    names = sorted(shipped())

    def change(draw: random.Random) -> str:
        key = draw.choice(keys)
        if draw.random() < 0.2:
            key = draw.choice([key.rpartition(".")[0], f"{key}.{draw.choice(KEYS)}", f"{key}s", draw.choice(odd)])
        value = draw.choice(odd if draw.random() < 0.3 else values)
        return f"{key}={value.strip()}" if draw.random() < 0.98 else f"{key}{value}"

    def check(draw: random.Random) -> bool:
        name, changes = draw.choice(names), [change(draw) for _ in range(draw.choice([1, 1, 2, 3]))]
        described = draw.random() < 0.1

        def read() -> None:
            recipe = load_recipe(name, overrides=changes)
            if described:
                answers_of(recipe).text()

        return survived(read)

    return check


# ---------------------------------------------------------------- tables


def tables(folder: Path) -> Check:
    known = [(suffix, content) for suffix, content in seeds(folder) if "parquet" not in suffix]
    return lambda draw: read_one(folder, known, draw)


def parquet(folder: Path) -> Check:
    """Few: each is looked at by a process of its own first, as pyarrow ends the process at some damaged files."""
    known = [(suffix, content) for suffix, content in seeds(folder) if "parquet" in suffix]
    return lambda draw: read_one(folder, known, draw)


def vectors(folder: Path) -> Check:
    """Files of pre-trained vectors."""
    path, vocabulary = folder / "vectors.txt", Vocabulary(["one", "two", "three", "à"])
    plain = "".join(f"{word} 0.5 -1e3 {number}\n" for number, word in enumerate(["one", "two", "à", "x y"]))
    known = [plain.encode(), f"4 3\n{plain}".encode(), plain.encode("utf-16"), plain.replace("\n", "\r\n").encode()]

    def check(draw: random.Random) -> bool:
        path.write_bytes(mutate_bytes(draw.choice(known), draw, others=known))
        return survived(lambda: read_vectors(path, vocabulary))

    return check


# ---------------------------------------------------------------- media


def bombs(kind: str) -> Iterator[bytes]:
    """Small files that promise far more than they hold, or that hold far more than they weigh."""
    if kind == "image":
        for form in ("PNG", "GIF", "WEBP", "TIFF", "BMP"):
            file = BytesIO()
            Image.new("L", (3000, 3000)).save(file, form, **({"compression": "tiff_lzw"} if form == "TIFF" else {}))
            if len(file.getvalue()) < 100_000:
                yield file.getvalue()
        yield b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, 2**31 - 1, 2**31 - 1, 1, 24, 0, 0, 1, 1, 0, 0)
    if kind == "sound":
        head = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", 2**32 - 9, b"WAVE", b"fmt ", 16, 1, 2, 16_000, 64_000, 4, 16)
        yield head + struct.pack("<4sI", b"data", 2**32 - 64) + bytes(64)
        yield head.replace(b"\x01\x00\x02\x00", b"\x01\x00\xff\xff") + struct.pack("<4sI", b"data", 64) + bytes(64)


def media_files(kind: str) -> Callable[[Path], Check]:
    def prepare(folder: Path) -> Check:
        whole, large = list(media.files(kind, folder)), list(bombs(kind))
        path = folder / "damaged.bin"

        def check(draw: random.Random) -> bool:
            if large and draw.random() < 0.01:
                path.write_bytes(mutate_bytes(draw.choice(large), draw))
            else:
                path.write_bytes(media.damaged(whole, draw))
            media.read(kind, path)
            try:
                media.SETTINGS[kind].decode(str(path))
            except MediaError as error:
                str(error).encode("utf-8")
                return False
            return True

        return check

    return prepare


# ---------------------------------------------------------------- folders of models and of runs


class Folder:
    """A folder that is damaged for one case and whole again for the next."""

    def __init__(self, path: Path, left_out: tuple[str, ...] = ()):
        self.path = path
        for name in left_out:
            (path / name).unlink(missing_ok=True)
        self.whole = {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}

    def restore(self) -> None:
        for file in [file for file in self.path.rglob("*") if file.is_file() and file not in self.whole]:
            file.unlink()
        for file, content in self.whole.items():
            file.parent.mkdir(exist_ok=True)
            if not file.is_file() or file.read_bytes() != content:
                file.write_bytes(content)


def folders(folder: Path) -> Check:
    """One file of a model's folder is damaged; three in four folders have no checksums, as a stranger's would fit."""
    table = write_rows(folder)
    known = []
    for number, kind in enumerate(KINDS):
        made = make_model(kind, table)
        tensors = load_file(made / WEIGHTS)
        write_tensors(made / WEIGHTS, tensors)
        known.append((kind, Folder(made, () if number % 4 == 0 else (CHECKSUMS,))))

    def check(draw: random.Random) -> bool:
        kind, whole = draw.choice(known)
        files = [file for file in whole.whole if file.parent == whole.path]
        try:
            mutate_file(draw.choice(files), draw)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Notice)
                return answers(kind, whole.path)
        finally:
            whole.restore()

    return check


RUN_FILES = (METRICS, FILM, SOURCES, "recipe.yaml")


def runs(folder: Path) -> Check:
    """A run that was stopped: files that the page shows and a checkpoint with the right checksum, and what is made of
    them by the page and by --resume."""
    table = write_rows(folder)
    recipe = {"task": "run", **SMALL, **KINDS["word"]}
    recipe["training"] = {**SMALL["training"], "updates": 2, "checkpoint_every": 1, "report_every": 1, "samples": 2}
    api.train(recipe, table, out=folder / "run", listeners=[])
    whole = Folder(folder / "run")

    def check(draw: random.Random) -> bool:
        resume = draw.random() < 0.2
        try:
            if resume:
                newest, oldest = sorted((whole.path / CHECKPOINTS).glob("update-*.safetensors"), reverse=True)[:2]
                oldest.unlink()
                damage_checkpoint(newest, draw)
            else:
                name = draw.choice([name for name in RUN_FILES if (whole.path / name).is_file()])
                mutate_file(whole.path / name, draw)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Notice)
                return survived(lambda: go_on(whole.path) if resume else show(whole.path))
        finally:
            whole.restore()

    return check


def damage_checkpoint(path: Path, draw: random.Random) -> None:
    """Bytes, or parts of it under a checksum that fits."""
    if draw.random() < 0.2:
        path.write_bytes(mutate_bytes(path.read_bytes(), draw))
        return
    tensors = load_file(path)
    with safe_open(path, framework="pt") as file:
        state = json.loads(file.metadata()[STATE_KEY])
    name = draw.choice(sorted(tensors))
    way = draw.randrange(6)
    if way == 0:
        del tensors[name]
    elif way == 1:
        tensors[name] = tensors[name].reshape(-1)[: draw.randrange(5)].clone()
    elif way == 2:
        tensors[name] = tensors[name].double()
    elif way == 3:
        tensors[draw.choice(["x", "weights/x", "optimizer/x", "a/b/c"])] = tensors.pop(name)
    else:
        state = mutate_settings({"state": state}, draw).get("state")
    text = json.dumps(state, default=str, skipkeys=True) if draw.random() < 0.95 else draw.choice(TEXTS)
    write_tensors(path, tensors, metadata={STATE_KEY: text})


def go_on(run: Path) -> None:
    api.train(None, None, out=run, resume=True, overrides=["training.updates=3"], listeners=[])


def show(run: Path) -> None:
    shown = TrainingRun("run", run)
    json.dumps(shown.about(), allow_nan=False)
    json.dumps(shown.metrics(0, None), allow_nan=False)
    json.loads(shown.film(0, None))
    with suppress(FileNotFoundError):
        from seq2see.training.checkpoints import resumable

        resumable(run)


TARGETS = {
    "recipe-texts": Target(100, recipe_texts, "YAML files"),
    "recipe-settings": Target(100, recipe_settings, "dicts, with overrides"),
    "overrides": Target(80, overrides, "--set on shipped recipes"),
    "tables": Target(248, tables, "TSV, CSV, JSON lines, text, gzip; encodings and quotes"),
    "parquet": Target(2, parquet, "tables in Parquet"),
    "vectors": Target(60, vectors, "files of pre-trained vectors"),
    "images": Target(120, media_files("image"), "PNG, JPEG, WebP, GIF, BMP, TIFF"),
    "sounds": Target(110, media_files("sound"), "WAV, FLAC, Ogg, MP3, AIFF, AU"),
    "videos": Target(20, media_files("video"), "MP4, Matroska, WebM, AVI, MPEG, FLV, WMV, GIF"),
    "series": Target(75, media_files("series"), "Parquet, text, NPY"),
    "folders": Target(20, folders, "a file of a model's folder, then load and predict"),
    "runs": Target(5, runs, "a run's files and checkpoint, then the page and --resume"),
    "requests": Target(60, requests, "HTTP: bodies, forms, headers, methods, paths"),
}
