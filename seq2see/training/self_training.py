"""Training in stages, for tables of which a part has no outputs, in one folder.

`pretraining/`: autoencoders of the texts (`denoising.py`). `teacher/`: a model trained on the labelled rows, which
predicts pseudo-labels for the others. The folder itself: the model trained on the labelled rows and on the
pseudo-labels that the teacher is confident of, with the teacher's settings. A stage that is finished is not repeated by
--resume.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from seq2see.data.columns import OUTPUT
from seq2see.data.records import Data, as_lines, records_of
from seq2see.errors import UserError
from seq2see.files import MEBIBYTE, read_json, shortened, write_bytes
from seq2see.locking import lock_folder
from seq2see.pipeline.bundle import RECIPE, WEIGHTS, Bundle
from seq2see.recipe import Recipe, load_recipe
from seq2see.training.checkpoints import (
    CHECKPOINTS,
    SOURCES,
    STAGES,
    TABLES,
    Sources,
    check_free,
    checkpoint_paths,
    latest_checkpoint,
    resumable,
    resumed_recipe,
    sources_of,
    write_tables,
)
from seq2see.training.denoising import TAKEN, Half, Pretraining, check_pretrainable, texts_of
from seq2see.training.distillation import check_not_teacher
from seq2see.training.distributed import check_command
from seq2see.training.reports import Listener
from seq2see.training.run import clear_run, train
from seq2see.training.unlabelled import (
    LabelledRows,
    check_pseudo_labels,
    pseudo_labelled_rows,
    read_labelled,
    read_unlabelled,
    unseen_rows,
)

TEACHER, PRETRAINING = "teacher", "pretraining"
CONFIDENCE = 0.9
"""The lowest confidence of a pseudo-label that is learned, where none is given."""
MOST_BYTES = 4 * MEBIBYTE


@dataclass(frozen=True)
class Plan:
    """What the stages of a run are made from.

    recipe: complete; data, dev, columns: of the labelled rows; unlabelled: a table of inputs, None: no self-training;
    confidence: the lowest of a pseudo-label; pretrain: the share of a run for denoising, 0: none; start: the folder of
    a model whose weights the first and the last stage begin with.
    """

    recipe: dict[str, Any]
    data: str
    dev: str | None = None
    columns: list[str] | None = None
    unlabelled: str | None = None
    confidence: float = CONFIDENCE
    pretrain: float = 0.0
    start: str | None = None


def plan_stages(
    recipe: Recipe,
    data: Data,
    dev: Data | None,
    columns: Sequence[str] | None,
    *,
    folder: Path,
    unlabelled: Data | None,
    confidence: float | None,
    pretrain: float,
    start: object,
    overwrite: bool,
) -> Plan:
    """Check what is given, clear the folder and write down its plan."""
    check_command("train --unlabelled, train --pretrain")
    if unlabelled is not None:
        check_pseudo_labels(recipe, "--unlabelled")
    if pretrain:
        check_pretrainable(recipe, pretrain)
    stages = [folder, folder / TEACHER, folder / PRETRAINING, *(folder / PRETRAINING / half for half in TAKEN)]
    _check_options(unlabelled=unlabelled, confidence=confidence, pretrain=pretrain, start=start, stages=stages)
    check_not_teacher(recipe, *stages)
    if isinstance(unlabelled, str | Path):
        read_unlabelled(recipe, unlabelled)  # what is wrong with it is said before anything is trained or written
    sources, tables = sources_of(recipe, data, dev, columns, folder=folder / TEACHER)
    if unlabelled is not None and not isinstance(unlabelled, str | Path):
        path = folder.resolve() / TABLES / "unlabelled.jsonl"
        records = records_of(unlabelled, what="unlabelled")
        files = [column.column or name for name, column in recipe.inputs.items() if column.file]
        tables[path] = as_lines(records, files=[name for name in files if name in records[0]])
        unlabelled = path
    plan = Plan(
        recipe.to_dict(),
        sources.data,
        sources.dev,
        sources.columns,
        None if unlabelled is None else str(Path(unlabelled).resolve()),
        CONFIDENCE if confidence is None else confidence,
        pretrain,
        str(Path(start).resolve()) if isinstance(start, str | Path) else None,
    )
    if not overwrite:
        for stage in stages:
            check_free(stage)
    with lock_folder(folder):
        for stage in filter(Path.is_dir, stages):
            clear_run(stage)
            for name in (SOURCES, RECIPE):
                (stage / name).unlink(missing_ok=True)
        write_tables(tables)
        write_bytes(folder / STAGES, json.dumps(asdict(plan), ensure_ascii=False).encode("utf-8", "backslashreplace"))
    return plan


def _check_options(
    *, unlabelled: Data | None, confidence: float | None, pretrain: float, start: object, stages: Sequence[Path]
) -> None:
    """Refuse options that contradict each other; stages: the folders that the run replaces."""
    if confidence is not None and unlabelled is None:
        raise UserError(f"--confidence {confidence:g}: there are no pseudo-labels without --unlabelled")
    if confidence is not None and not 0 <= confidence <= 1:
        raise UserError(f"--confidence {confidence:g}: a probability; allowed: 0 to 1")
    if pretrain and start is not None:
        raise UserError("--pretrain: the model of --from has weights already; give one of the two")
    if start is not None and not isinstance(start, str | Path):
        raise UserError("start: a run in stages starts from a folder; give the path of the model")
    if start is not None and Path(start).resolve() in [stage.resolve() for stage in stages]:
        raise UserError(
            f"--from {start}: the run in --out {stages[0]} would replace the model that it starts from; give another "
            "--out"
        )


def unfinished_stages(folder: Path) -> bool:
    """Whether the run in a folder has stages, the last of which is not begun."""
    return (folder / STAGES).is_file() and not (folder / SOURCES).is_file()


def read_plan(folder: Path) -> Plan:
    """The plan that `plan_stages` wrote."""
    path = folder / STAGES
    stored = read_json(path, most=MOST_BYTES, what="the stages of a run")
    try:
        return TypeAdapter(Plan).validate_python(stored)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where, got = ".".join(map(str, first["loc"])), shortened(first["input"])
        raise UserError(f"{path}: damaged: '{where}': {first['msg']}, got {got}") from None


def train_in_stages(
    plan: Plan,
    *,
    folder: Path,
    listeners: Sequence[Listener] = (),
    changes: Sequence[str] = (),
) -> Bundle:
    """Train all stages that are not finished yet; the limits of the recipe are those of each stage. changes: of a
    resumed run."""
    check_command("train --unlabelled, train --pretrain")
    return _Stages(plan, folder, listeners, changes).run()


class _Stages:
    def __init__(self, plan: Plan, folder: Path, listeners: Sequence[Listener], changes: Sequence[str]):
        self.plan, self.folder, self.listeners, self.changes = plan, folder, listeners, changes
        self.recipe = resumed_recipe(load_recipe(plan.recipe), changes)

    def run(self) -> Bundle:
        plan = self.plan
        labelled = read_labelled(self.recipe, plan.data, plan.dev, plan.columns)
        self.recipe = labelled.recipe
        start = None if plan.start is None else Bundle.load(plan.start)
        if plan.unlabelled is not None:
            unseen_rows(labelled, plan.unlabelled)
        if plan.pretrain:
            start = self._pretrained(labelled)
        if plan.unlabelled is None:
            sources, tables = Sources(plan.data, plan.dev, plan.columns), None
            return self._stage(self.recipe, sources, self.folder, start, tables)
        self._say(f"stage: the teacher, trained on the labelled rows, in {self.folder / TEACHER}")
        sources = Sources(plan.data, plan.dev, plan.columns)
        teacher = self._stage(self.recipe, sources, self.folder / TEACHER, start)
        self.recipe = resumed_recipe(teacher.recipe, self.changes)  # fitted to the labelled rows
        rows, notes = pseudo_labelled_rows(labelled, plan.unlabelled, [teacher], confidence=plan.confidence)
        for note in notes:
            self._say(note)
        self._say(f"stage: the model, trained on labelled rows and pseudo-labels, in {self.folder}")
        train_rows, dev_rows = labelled.records(rows), labelled.records(labelled.dev)
        sources, tables = sources_of(self.recipe, train_rows, dev_rows, None, folder=self.folder)
        return self._stage(self.recipe, sources, self.folder, start, tables)

    def _pretrained(self, labelled: LabelledRows) -> Bundle:
        """The model that the stages start from."""
        folder, name = self.folder / PRETRAINING, next(iter(self.recipe.inputs))
        if (folder / WEIGHTS).is_file():
            self._say(f"pre-trained already, in {folder}")
            start = Bundle.load(folder)
            self.recipe = resumed_recipe(start.recipe, self.changes)  # fitted to the table
            return start
        more = read_unlabelled(labelled.recipe, self.plan.unlabelled)[0] if self.plan.unlabelled is not None else []
        inputs = [*texts_of(labelled.train, name), *texts_of(labelled.unseen(more), name)]
        pretraining = Pretraining(self.recipe, inputs, texts_of(labelled.train, OUTPUT), self.plan.pretrain)
        self.recipe = pretraining.fit()
        self._say(pretraining.note)

        def autoencoder(half: Half, recipe: Recipe, rows: list[dict[str, str]], start: Bundle) -> Bundle:
            self._say(f"stage: pre-training of {half}, in {folder / half}")
            sources, tables = sources_of(recipe, rows, None, None, folder=folder / half)
            return self._stage(recipe, sources, folder / half, start, tables, changes=())

        return pretraining.run(autoencoder, folder)

    def _stage(
        self,
        recipe: Recipe,
        sources: Sources,
        folder: Path,
        start: Bundle | None,
        tables: Mapping[Path, bytes] | None = None,
        *,
        changes: Sequence[str] | None = None,
    ) -> Bundle:
        """Train a stage, go on with it, or load it where it is finished."""
        if not checkpoint_paths(folder / CHECKPOINTS):
            return train(recipe, sources, folder=folder, listeners=self.listeners, start=start, tables=tables)
        checkpoint = latest_checkpoint(folder / CHECKPOINTS)
        if checkpoint is not None and checkpoint.state.finished and (folder / WEIGHTS).is_file():
            self._say(f"finished already: {folder}")
            return Bundle.load(folder)
        stored, sources = resumable(folder)
        again = resumed_recipe(stored, self.changes if changes is None else changes)
        return train(again, sources, folder=folder, listeners=self.listeners, resume=True)

    def _say(self, message: str) -> None:
        for listener in self.listeners:
            listener.on_message(message)
