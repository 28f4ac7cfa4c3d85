"""A training run, from a recipe and a table to a trained model in a folder."""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from seq2see.data.columns import OUTPUT
from seq2see.errors import UserError
from seq2see.evaluation.baselines import assign
from seq2see.files import unwritable, write_bytes
from seq2see.locking import lock_folder
from seq2see.looks import Prediction
from seq2see.modalities.files import MediaField
from seq2see.pipeline.bundle import RECIPE, WEIGHTS, Bundle, find_device, saved_recipe
from seq2see.pipeline.dataset import Dataset, Stream
from seq2see.pipeline.evaluator import Spread, evaluate_model, plan_evaluation, report_metrics
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.frozen_features import store_features
from seq2see.pipeline.language_models import language_model_of
from seq2see.pipeline.predictor import options_of, predict
from seq2see.pipeline.table_stream import TableStream
from seq2see.pipeline.trained_rows import TrainedRows
from seq2see.pipeline.weights import CHECKSUMS, changed_files, check_files, fill
from seq2see.progress import remaining
from seq2see.recipe import Recipe, fit_recipe, notes
from seq2see.recipe.schema import TrainingSettings, with_plugins
from seq2see.search.options import NONE
from seq2see.training.checkpoints import (
    CHECKPOINTS,
    NONFINITE,
    SOURCES,
    Checkpoint,
    Sources,
    check_free,
    check_same_data,
    has_checkpoint,
    latest_checkpoint,
    recover_checkpoint,
    write_tables,
)
from seq2see.training.dataset import Corpus, read_corpus
from seq2see.training.distillation import (
    check_not_teacher,
    check_same_teachers,
    check_teachers,
    load_teachers,
    teacher_fields,
    with_teachers,
)
from seq2see.training.distributed import Beat, World, join, launch_name, local_device
from seq2see.training.feeds import Feed, RowFeed, StreamFeed, TableStreamFeed
from seq2see.training.film import FILM, Film
from seq2see.training.fine_tuning import initial_weights
from seq2see.training.memory import check_batch, check_fits
from seq2see.training.optimizer import autocast
from seq2see.training.reports import (
    METRICS,
    Listener,
    Report,
    epochs_between_reports,
    samples_of,
    write_examples,
)
from seq2see.training.rewards import Rewards
from seq2see.training.trackers import TensorBoard
from seq2see.training.trainer import Replay, Trainer

SPEED_SECONDS = 10.0
"""Between two messages about files read by a frozen network."""

Say = Callable[[str], None]


def compute_features(
    bundle: Bundle, train: Dataset, dev: Sequence[Mapping[str, str]], say: Say, beat: Beat = lambda: None
) -> None:
    """Have frozen networks read every file of train and dev once, in their order. beat: called now and then."""

    def files(name: str, field: MediaField) -> Iterator[str]:
        yield from (field.file(field.value(train.stores[name][row])) for row in range(len(train)))
        yield from (field.file(row[name]) for row in dev)

    store_features(bundle, files, _Speed(say, beat))


class _Speed:
    """Reports how many files are read and how fast, at most every few seconds and at the end."""

    def __init__(self, say: Say, beat: Beat):
        self._say, self._beat = say, beat
        self._started = self._reported = time.perf_counter()

    def __call__(self, name: str, done: int, of: int) -> None:
        self._beat()
        now = time.perf_counter()
        if now - self._reported > SPEED_SECONDS or done == of:
            self._reported = now
            seconds = max(now - self._started, 1e-9)
            left = remaining(done / of, seconds) + ", before the minutes of training begin" if done < of else ""
            read = f"{done:,} of {of:,} files read by the frozen network"
            self._say(f"'{name}': {read}, {done / seconds:.0f} a second{left}")


# ---------------------------------------------------------------- the run


def train(
    recipe: Recipe,
    sources: Sources,
    *,
    folder: Path,
    listeners: Sequence[Listener] = (),
    resume: bool = False,
    overwrite: bool = True,
    start: Bundle | None = None,
    tables: Mapping[Path, bytes] | None = None,
) -> Bundle:
    """Train a model into `folder`, which is locked against other processes meanwhile.

    overwrite: replace a run that is there. start: a model to fine-tune, whose vocabularies are kept; tables: to be
    written first (see `sources_of`). Processes that torchrun has started train it together.
    """
    folder = Path(folder)
    if folder.is_file():
        raise UserError(f"--out {folder}: a file; a run needs a folder")
    check_not_teacher(recipe, folder)
    settings = recipe.training
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))  # whatever the caller has set, such as in a notebook
        stack.enter_context(torch.enable_grad())
        stack.enter_context(_repeating(settings))
        world = stack.enter_context(join(settings.device, minutes=settings.wait_minutes))
        listeners = listeners if world.leads else []
        with world.together():
            stack.enter_context(lock_folder(folder) if world.leads else nullcontext())
            if not resume and not overwrite and world.leads:
                check_free(folder)
            if resume and world.leads and not has_checkpoint(folder, sources):
                resume = False
                for listener in listeners:
                    listener.on_message("no checkpoint yet: starting from the beginning")
            if world.leads:
                write_tables(tables or {})
        resume = world.leader(resume)
        with world.together():
            if resume:
                check_same_teachers(recipe, sources, folder)
            else:
                recipe, sources = with_teachers(recipe, sources)
                sources = replace(sources, fine_tuned=start is not None, launch=launch_name())
        run = _Run(recipe, sources, folder=folder, listeners=listeners, resume=resume, start=start, world=world)
        return run.train(Path(stack.enter_context(tempfile.TemporaryDirectory())) if not world.leads else folder)


def replay(recipe: Recipe, sources: Sources, *, folder: Path, listeners: Sequence[Listener] = ()) -> Replay:
    """Compute the latest update of a run whose gradient was not finite again. It writes nothing, and takes as many
    processes as the run had."""
    saved = latest_checkpoint(folder / NONFINITE)
    if saved is None:
        raise UserError(f"{folder}: nothing to replay, every gradient was finite; such updates are in {NONFINITE}/")
    check_same_teachers(recipe, sources, folder)
    settings = recipe.training
    with (
        _repeating(settings),
        tempfile.TemporaryDirectory() as own,
        join(settings.device, minutes=settings.wait_minutes) as world,
    ):
        run = _Run(recipe, sources, folder=folder, listeners=listeners, resume=True, start=None, world=world)
        return run.replay(saved, Path(own))


@dataclass(frozen=True)
class Timing:
    """How long a run takes here, estimated from a few updates; without reading the table and measuring on dev.

    seconds: of an update; updates: of an epoch; total: seconds of the whole run; limit: the setting that ends it.
    """

    seconds: float
    measured: int
    updates: int
    total: float
    limit: str


def time_updates(
    recipe: Recipe, sources: Sources, folder: Path, *, updates: int, seconds: float
) -> tuple[Bundle, Corpus, Timing]:
    """Read the tables and build the model of a run, compute a few of its updates, and tell how long a run would take.

    updates: at most, from all parts of an epoch; seconds: after which no further one begins; folder: a temporary one.
    """
    run = _Run(recipe, sources, folder=folder, listeners=[], resume=False, start=None, world=World())
    run._read(folder)
    feed = run._feed()
    trainer = run._trainer(feed)
    times = trainer.time_updates(updates, seconds)
    each = sum(times) / max(len(times), 1)
    settings, batches = run.recipe.training, feed.batches(0)
    limits = {"epochs": settings.epochs * batches * each, "updates": settings.updates * each}
    limits["minutes"] = 60.0 * settings.minutes
    limit = min((name for name in limits if getattr(settings, name)), key=lambda name: limits[name], default="patience")
    return run.bundle, run.corpus, Timing(each, len(times), batches, limits.get(limit, 0.0), f"training.{limit}")


@contextmanager
def _repeating(settings: TrainingSettings) -> Iterator[None]:
    """Inside, use only algorithms that repeat their bits, in one thread, where the recipe wants that."""
    if not settings.deterministic:
        yield
        return
    threads, before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # which cuBLAS wants for this
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        torch.set_num_threads(threads)


DETERMINISTIC = "training.deterministic: one thread only; compared with two, an update takes 1.1 to 1.5 times as long"


class _Run:
    """A training run: what one process of it reads, builds and writes.

    resume: go on from the newest checkpoint; start: a model to fine-tune.
    """

    def __init__(
        self,
        recipe: Recipe,
        sources: Sources,
        *,
        folder: Path,
        listeners: Sequence[Listener],
        resume: bool,
        start: Bundle | None,
        world: World,
    ):
        self.recipe, self.sources, self.folder, self.listeners = recipe, sources, folder, list(listeners)
        self.resume, self.start, self.world = resume, start, world
        self.checkpoint: Checkpoint | None = None
        self.damaged: dict[Path, str] = {}

    def train(self, own: Path) -> Bundle:
        """own: a folder for files that only this process reads."""
        with self.world.together():
            if self.resume and self.world.leads:  # before the rows are read and anything is written
                check_files(self.folder, editable=RECIPE)
                self.checkpoint, self.damaged = recover_checkpoint(self.folder / CHECKPOINTS)
        with self.world.together():
            self._read(own)
            if self.world.leads:
                self._check_language_model()
        with self.world.together():
            feed = self._feed()
            if self.checkpoint is not None:
                check_same_data(self.folder, self.checkpoint.state, feed.fingerprint)
            if self.world.leads:
                self._write()
        self.world.broadcast_weights(self.bundle.network)
        trainer = self._trainer(feed)
        checkpoint, damaged = self.world.leader((self.checkpoint, self.damaged))
        if checkpoint is not None:
            trainer.restore(checkpoint, damaged)
        self.checkpoint = checkpoint = None  # several times the size of the model
        with self.world.together():
            note = check_batch(self.bundle, feed, self.world.size, teachers=self.teachers)
        if note is not None and self.world.leads:
            for listener in self.listeners:
                listener.on_message(note)
        trainer.run(resume=self.resume)
        return self.bundle

    def replay(self, saved: Checkpoint, own: Path) -> Replay:
        """own: a folder for files that only this process reads."""
        with self.world.together():
            self._read(own)
        trainer = self._trainer(self._feed())
        self._prepare(lambda message: None)
        return trainer.replay(saved)

    def _read(self, own: Path) -> None:
        """Read the tables and build the model."""
        settings, folder, start = self.recipe.training, self.folder, self.start
        if settings.threads:
            torch.set_num_threads(settings.threads)
        device = find_device(local_device(settings.device), key="training.device")
        teachers = load_teachers(self.recipe, str(device))
        seed_everything(settings.seed)
        if self.resume:
            fields: Fields | None = Fields.load(folder, self.recipe)
        else:
            fields = start.fields if start is not None else teacher_fields(self.recipe)
        self.measured, self.metric = report_metrics(self.recipe)
        tables = self.sources
        self.corpus = corpus = read_corpus(
            self.recipe, tables.data, dev=tables.dev, columns=tables.columns, fields=fields, folder=own
        )
        self.recipe = corpus.recipe = fit_recipe(corpus.recipe, lambda: corpus.facts)
        self.bundle = bundle = _create(self.recipe, corpus, start, fresh=not self.resume)
        earlier = TrainedRows.load(folder) if self.resume else start.trained if start is not None else None
        bundle.trained = corpus.trained.joined(earlier)
        bundle.network.to(device)
        self.teachers = check_teachers(bundle, teachers)
        self.world.check(bundle.network)

    def _check_language_model(self) -> None:
        """Refuse a `search.language_model` that the model could not use. A run itself needs none: it is not kept, and
        draws no random number of the run."""
        with torch.random.fork_rng(devices=[]):
            language_model_of(self.bundle, options_of(self.recipe))
        self.bundle.language_models.clear()

    def _write(self) -> None:
        """Write what a run's folder has beside its checkpoints."""
        folder, recipe = self.folder, self.recipe
        if not self.resume:
            clear_run(folder)
            sources = json.dumps(asdict(self.sources), ensure_ascii=False)
            write_bytes(folder / SOURCES, sources.encode("utf-8", "backslashreplace"))
            write_examples(folder, recipe, self.corpus.dev)
        if not self.resume or recipe != saved_recipe(folder) or RECIPE in changed_files(folder):
            self.bundle.save_setup(folder)
        if recipe.training.tensorboard:
            self.listeners.append(TensorBoard(folder))

    def _feed(self) -> Feed:
        train, settings = self.corpus.train, self.recipe.training
        if isinstance(train, Dataset):
            return RowFeed(train, settings, self.world)
        if isinstance(train, TableStream):
            return TableStreamFeed(train, settings, self.world)
        return StreamFeed(train, settings, self.world)

    def _trainer(self, feed: Feed) -> Trainer:
        corpus, bundle, world = self.corpus, self.bundle, self.world
        self._check_same_rows(feed)
        report_epochs, planned = _plan_reports(corpus, feed, self.measured)
        costs = [DETERMINISTIC] if self.recipe.training.deterministic else []
        for message in [*notes(self.recipe), *corpus.notes, *bundle.notes, *planned, *costs]:
            for listener in self.listeners:
                listener.on_message(message)
        spread = None if world.size == 1 else world.spread
        filmed = self.recipe.training.film and world.leads
        return Trainer(
            bundle,
            feed,
            lambda bundle: dev_report(bundle, corpus.dev, self.measured, spread=spread),
            metric=self.metric,
            folder=self.folder,
            listeners=self.listeners,
            prepare=self._prepare,
            film=Film(bundle, corpus.dev, folder=self.folder) if filmed else None,
            report_epochs=report_epochs,
            world=world,
            teachers=self.teachers,
            rewards=self._rewards(),
        )

    def _rewards(self) -> Rewards | None:
        """What drawn outputs are compared with, where the recipe rewards them."""
        settings, train = self.recipe.loss.reward, self.corpus.train
        if settings.metric == "none":
            return None
        if not isinstance(train, Dataset):
            raise UserError(
                f"loss.reward.metric: {settings.metric}: a table that is streamed (data.shuffle_rows) does not show "
                "all outputs of an input together; allowed: none"
            )
        return Rewards(settings, train)

    def _check_same_rows(self, feed: Feed) -> None:
        """Refuse processes that read other rows, on machines whose files differ."""
        first = self.world.leader(feed.fingerprint)
        with self.world.together():
            if feed.fingerprint != first:
                raise UserError(
                    f"{self.sources.data}: this process reads other rows than the first one: {feed.fingerprint}, "
                    f"not {first}; the table must be the same on all machines"
                )

    def _prepare(self, say: Say) -> None:
        """Called once the weights are there, before the first update."""
        train = self.corpus.train
        if self.bundle.frozen_inputs and isinstance(train, Dataset):
            self.world.leader_first(lambda beat: compute_features(self.bundle, train, self.corpus.dev, say, beat))


def seed_everything(seed: int) -> None:
    """Seed the random numbers of Python, numpy and torch."""
    random.seed(seed)
    np.random.seed(abs(seed) % (1 << 32))  # noqa: NPY002 - libraries that draw from the old generator repeat too
    torch.manual_seed(seed)


def dev_report(
    bundle: Bundle, rows: Sequence[Mapping[str, str]], metrics: Sequence[str], spread: Spread | None = None
) -> Report:
    """Metrics and samples on the dev rows, by greedy search without a language model, which is enough to follow a run;
    perplexity under the precision of training. spread: shares the work out between processes."""
    settings = bundle.recipe.training
    text = not bundle.recipe.output.one_step
    options = options_of(bundle.recipe, beam=1 if text else None, language_model=NONE if text else None)
    evaluation = evaluate_model(
        [bundle],
        rows,
        options=options,
        most=settings.dev_rows,
        metrics=metrics,
        scoring=autocast(settings.precision, bundle.device),
        spread=spread,
        further=False,
    )
    few = slice(settings.samples if evaluation.predictions else 0)
    samples = samples_of(bundle.recipe, evaluation.questions[few], evaluation.predictions[few], metrics=metrics)
    if not bundle.recipe.inputs and text and settings.samples:
        samples = [{"input": "", "output": sample.text or "", "reference": ""} for sample in _sample(bundle)]
    report = evaluation.report
    assigned = assign(bundle.baselines, list(report.metrics))
    says = {name: baseline.description for baseline, names in assigned.items() for name in names}
    return Report(
        update=0,
        epoch=0.0,
        seconds=0.0,
        loss=0.0,
        learning_rate=0.0,
        tokens_per_second=0.0,
        gradient_norm=0.0,
        dev=report.metrics,
        baseline=report.baseline,
        baseline_says=says,
        samples=samples,
    )


def _sample(bundle: Bundle) -> list[Prediction]:
    """Text sampled from a language model."""
    most = min(80, bundle.recipe.search.max_length)
    return predict([bundle], [{}], options_of(bundle.recipe, sample=True, n_best=1, max_length=most))


def _create(recipe: Recipe, corpus: Corpus, start: Bundle | None, *, fresh: bool) -> Bundle:
    """The model to train: the only network that is built. Its size is checked first, but for constructors of plug-ins,
    which need not work on the meta device."""
    plugins = with_plugins(recipe)
    if not plugins:
        check_fits(recipe, corpus.fields)
    bundle = Bundle.create(recipe, corpus.fields, pretrained=fresh and start is None)
    if plugins:
        check_fits(recipe, corpus.fields, bundle.network)
    if start is not None:
        fill(bundle.network, initial_weights(bundle.network, start.network), path=Path("the model to start from"))
    bundle.baselines = corpus.baselines
    return bundle


def _plan_reports(corpus: Corpus, feed: Feed, metrics: Sequence[str]) -> tuple[int, list[str]]:
    """(epochs from one report to the next, a note where these are several). The recipe's own number of updates comes
    first."""
    recipe, settings = corpus.recipe, corpus.recipe.training
    if settings.report_every:
        return 1, []
    if isinstance(corpus.train, Stream):
        evaluated = len(Stream.build(corpus.fields.text_output, [row[OUTPUT] for row in corpus.dev]))
    else:
        evaluated = plan_evaluation(recipe, corpus.dev, metrics, most=settings.dev_rows).work
    epochs = epochs_between_reports(
        settings, trained=len(corpus.train), evaluated=evaluated, batches=feed.batches(epoch=0)
    )
    if epochs == 1:
        return 1, []
    return epochs, [
        f"a report every {epochs} epochs, as dev is large compared with train (training.report_every: in updates)"
    ]


def clear_run(folder: Path) -> None:
    """Remove an old run from a folder, weights first: they must never be beside another vocabulary."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        old = [folder / name for name in (WEIGHTS, CHECKSUMS, METRICS, FILM)]
        parts = [path for part in (CHECKPOINTS, NONFINITE) for path in (folder / part).glob("*.safetensors*")]
        for path in [*old, *parts]:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
