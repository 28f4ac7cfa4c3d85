"""Distillation: the models that teach a run (`loss.distillation`), and the recipe of their student.

A student has the vocabularies of its first teacher, and all teachers read the batches that it reads.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from seq2see.errors import UserError
from seq2see.modalities.base import Modality
from seq2see.model import EncoderDecoder
from seq2see.pipeline.bundle import Bundle, find_device, model_checksums
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.packing import model_folder
from seq2see.pipeline.predictor import check_ensemble
from seq2see.pipeline.weights import tensors_of
from seq2see.recipe import Recipe, load_recipe
from seq2see.training.checkpoints import Sources

FREE_INPUT = ("column", "encoder", "augment", "share", "vocabulary", "min_count")
"""Keys of an input that do not say how its values are read: those of vocabularies are compared by their symbols."""
FREE_OUTPUT = ("column", "share", "vocabulary", "min_count", "max_length")


def student_recipe(teacher: Recipe, recipe: Recipe, teachers: Sequence[str]) -> tuple[Recipe, list[str]]:
    """(the recipe of a student, notes for the user): that of `recipe`, but for how values are read and written, which
    is as the first teacher does."""
    if list(recipe.inputs) != list(teacher.inputs) or recipe.output.kind != teacher.output.kind:
        own, theirs = (f"{', '.join(one.inputs) or 'none'} -> {one.output.kind}" for one in (recipe, teacher))
        raise UserError(f"--recipe: its inputs and output are {own}, and those of the teachers are {theirs}")
    raw, kept = recipe.to_dict(), teacher.to_dict()
    differing: list[str] = []
    for name in recipe.inputs:
        raw["inputs"][name] = _read_as(kept["inputs"][name], raw["inputs"][name], f"inputs.{name}", differing)
    raw["output"] = _read_as(kept["output"], raw["output"], "output", differing)
    raw["loss"]["distillation"]["teachers"] = list(teachers)
    notes = [f"read and written as by the teachers: {', '.join(differing)}"] if differing else []
    return load_recipe(raw), notes


def _read_as(teacher: dict[str, Any], own: dict[str, Any], path: str, differing: list[str]) -> dict[str, Any]:
    """The teacher's settings of a column, with the recipe's own encoder, column and augmentation."""
    merged = teacher | {key: own[key] for key in ("column", "encoder", "augment") if key in own and key in teacher}
    differing += [f"{path}.{key} {value}" for key, value in merged.items() if own.get(key, value) != value]
    return merged


def check_not_teacher(recipe: Recipe, *folders: Path) -> None:
    """Refuse to train a student into the folder of one of its teachers."""
    own = [folder.resolve() for folder in folders]
    for teacher in recipe.loss.distillation.teachers:
        if Path(teacher).resolve() in own:
            raise UserError(
                f"loss.distillation.teachers: {teacher} would be replaced by its student in --out {folders[0]}; give "
                "another --out"
            )


def with_teachers(recipe: Recipe, sources: Sources) -> tuple[Recipe, Sources]:
    """The recipe and the sources of a new run, with absolute paths of its teachers and their checksums."""
    settings = recipe.loss.distillation
    if not settings.teachers:
        return recipe, sources
    folders = [str(Path(folder).resolve()) for folder in settings.teachers]
    loss = recipe.loss.model_copy(update={"distillation": settings.model_copy(update={"teachers": folders})})
    checksums = {folder: model_checksums(folder)[0] for folder in folders}
    return recipe.model_copy(update={"loss": loss}), replace(sources, teachers=checksums)


def check_same_teachers(recipe: Recipe, sources: Sources, folder: Path) -> None:
    """Refuse to go on with other teachers than those a run was begun with."""
    teachers = recipe.loss.distillation.teachers
    if teachers != list(sources.teachers):
        then, now = (", ".join(names) or "none" for names in (sources.teachers, teachers))
        raise UserError(f"loss.distillation.teachers: the run in {folder} was started with {then}, got {now}")
    for teacher, checksum in sources.teachers.items():
        if model_checksums(teacher)[0] != checksum:
            raise UserError(f"{teacher}: changed since the run in {folder}, which it teaches, was started")


def load_teachers(recipe: Recipe, device: str) -> list[Bundle]:
    """The teachers of a recipe, which read and write as it does."""
    find_device(device, key="training.device")
    teachers = [Bundle.load(folder, device=device) for folder in recipe.loss.distillation.teachers]
    for folder, teacher in zip(recipe.loss.distillation.teachers, teachers, strict=True):
        _check_read_alike(recipe, teacher.recipe, folder)
        for parameter in teacher.network.parameters():
            parameter.requires_grad_(False)
    return teachers


def teacher_fields(recipe: Recipe) -> Fields | None:
    """The fields that a student takes over from its first teacher; None without teachers."""
    teachers = recipe.loss.distillation.teachers
    return Fields.load(model_folder(teachers[0]), recipe) if teachers else None


def check_teachers(student: Bundle, teachers: Sequence[Bundle]) -> list[EncoderDecoder]:
    """The networks of the teachers; a UserError where they cannot read the student's batches or have other symbols."""
    if teachers:
        check_ensemble([student, *teachers])
    for folder, teacher in zip(student.recipe.loss.distillation.teachers, teachers, strict=True):
        for name, field in student.fields.inputs.items():
            if _files_of(field, name) != _files_of(teacher.fields.inputs[name], name):
                raise UserError(f"{folder}: a teacher with other symbols of input '{name}' than the first one's")
            _check_frozen_alike(student, teacher, name, folder)
    return [teacher.network for teacher in teachers]


def _check_read_alike(recipe: Recipe, teacher: Recipe, folder: str) -> None:
    if list(recipe.inputs) != list(teacher.inputs):
        names = [", ".join(one.inputs) or "none" for one in (recipe, teacher)]
        raise UserError(f"loss.distillation.teachers: the recipe's inputs are {names[0]}, those of {folder} {names[1]}")
    columns: list[tuple[str, Any, Any, tuple[str, ...]]] = [
        (f"inputs.{name}", column, teacher.inputs[name], FREE_INPUT) for name, column in recipe.inputs.items()
    ]
    columns.append(("output", recipe.output, teacher.output, FREE_OUTPUT))
    for path, own, theirs, free in columns:
        here, there = (column.model_dump(exclude=set(free)) for column in (own, theirs))
        for key in dict.fromkeys([*here, *there]):
            if here.get(key) != there.get(key):
                raise UserError(
                    f"{path}.{key}: {here.get(key)}, and the teacher {folder} has {there.get(key)}; a student reads "
                    "and writes as its teachers do"
                )


def _files_of(field: Modality, name: str) -> list[bytes]:
    """All that a field has learned from its table."""
    with tempfile.TemporaryDirectory() as folder:
        return [path.read_bytes() for path in field.save(Path(folder), name)]


def _check_frozen_alike(student: Bundle, teacher: Bundle, name: str, folder: str) -> None:
    """Where a frozen network has read the files beforehand, the teacher must begin with the same one."""
    own, theirs = student.network.encoder(name).frozen, teacher.network.encoder(name).frozen
    if own is None:
        return
    weights, others = tensors_of(own), {} if theirs is None else tensors_of(theirs)
    same = weights.keys() == others.keys()
    if not same or not all(torch.equal(weights[key], others[key].to(weights[key])) for key in weights):
        raise UserError(
            f"{folder}: its network that reads '{name}' is not the frozen one of the student, whose features both use"
        )
