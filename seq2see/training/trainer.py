"""The training loop: updates, reports, checkpoints. A run can be stopped, killed and resumed without losing a step."""

from __future__ import annotations

import ctypes
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from types import FrameType

import torch
from torch import Tensor, nn

from seq2see.errors import UserError, counted
from seq2see.evaluation import higher_is_better, lookup
from seq2see.model import EncoderDecoder
from seq2see.pipeline.bundle import WEIGHTS, Bundle
from seq2see.pipeline.weights import fill, read_tensors, tensors_of, write_tensors
from seq2see.recipe.schema import LossSettings, TrainingSettings
from seq2see.training.checkpoints import (
    CHECKPOINTS,
    NONFINITE,
    Checkpoint,
    CheckpointSchedule,
    TrainingState,
    random_state,
    restore_random_state,
    resumed_folder,
    save_checkpoint,
    set_aside,
)
from seq2see.training.distributed import World
from seq2see.training.feeds import Feed
from seq2see.training.film import Film
from seq2see.training.losses import Loss, Objective, ctc_note
from seq2see.training.optimizer import (
    MovingAverage,
    autocast,
    average_weights,
    build_optimizer,
    check_schedule,
    existing_weights,
    keep_best,
    optimizer_tensors,
    rate_factor,
    remove_weights,
    restore_optimizer,
    share_done,
)
from seq2see.training.reports import (
    FEWEST_REPORTS,
    MOST_UPDATES_BETWEEN_REPORTS,
    Journal,
    Listener,
    Report,
    UpdateStatus,
    mean_is_reported,
)
from seq2see.training.rewards import Rewards

TRIM_EVERY = 25
"""Updates after which free memory is given back."""
LEAST_GAIN = 1e-3
"""Of the logarithm of dev's perplexity, by which it has to fall for a run to be said to learn."""
TIE_BREAKER = 1e-6
"""The most that a lower perplexity adds to the leading metric: less than any step of a rate."""


@dataclass(frozen=True)
class _Before:
    """What an update changes whether or not it takes a step: random states, and what the loss carries."""

    random: Tensor
    random_device: Tensor | None
    objective: dict[str, float]


@dataclass(frozen=True)
class Replay:
    """A saved update that was computed again.

    epoch, batch: its place in the plan, from 0; rows: of the batch, from 0 among those that are trained on; loss: per
    target; terms: the weighted parts of the total loss; parameters: by name, how many numbers of their gradient are not
    finite.
    """

    update: int
    epoch: int
    batch: int
    rows: list[int]
    loss: float
    terms: dict[str, float]
    parameters: dict[str, int]


def selection_value(dev: Mapping[str, float], metric: str) -> float:
    """The metric that selects the best model, signed so that higher is better; ties are broken by perplexity.

    Rates of few rows do not change for long (no word is right yet) while a model learns: no reason to stop.

    >>> selection_value({"cer": 0.5}, "cer"), selection_value({"exact": float("nan")}, "exact")
    (-0.5, -inf)
    """
    value = dev[metric] * (1 if higher_is_better(metric) else -1)
    if math.isnan(value):
        return -math.inf
    return value + TIE_BREAKER / (1 + dev["perplexity"]) if "perplexity" in dev else value


class Trainer:
    """Minimises the loss of a model over a feed of batches.

    evaluate: measures the model on the dev rows (metrics, baseline, samples); metric: the one that selects the best
    model; prepare: called before the first update, once the weights are there, with a function that takes messages;
    film: records the attention of some examples on the way; report_epochs: from one report to the next, where
    `training.report_every` is 0; world: the processes that train together, of which the leader alone writes files. All
    of them take the same decisions at the same updates: by the leader's clock, and by signals to any of them. teachers:
    those of `loss.distillation`; rewards: those of `loss.reward`.
    """

    def __init__(
        self,
        bundle: Bundle,
        feed: Feed,
        evaluate: Callable[[Bundle], Report],
        *,
        metric: str,
        folder: Path,
        listeners: Sequence[Listener] = (),
        prepare: Callable[[Callable[[str], None]], None] | None = None,
        film: Film | None = None,
        report_epochs: int = 1,
        world: World | None = None,
        teachers: Sequence[EncoderDecoder] = (),
        rewards: Rewards | None = None,
    ):
        self.prepare, self.film, self.report_epochs = prepare, film, report_epochs
        self.world = World() if world is None else world
        self.bundle, self.feed, self.evaluate, self.metric = bundle, feed, evaluate, metric
        self.folder, self.listeners = folder, list(listeners)
        self.settings = bundle.recipe.training
        check_schedule(self.settings)
        self.network = bundle.network
        self.objective = Objective(
            bundle.recipe.loss,
            bundle.fields,
            sums=self.world.sums,
            teachers=teachers,
            noise=self.settings.noise,
            rewards=rewards,
        )
        self.optimizer = build_optimizer(self.settings, self.network)
        self.average = MovingAverage(self.network, self.settings.ema) if self.settings.ema else None
        self.state = TrainingState(fingerprint=feed.fingerprint)
        self.objective.state = self.state.objective
        self.schedule = CheckpointSchedule(self.settings.checkpoint_every, self.settings.checkpoint_seconds)
        self._kept: list[list[float]] = []
        self.norm, self.culprit = 0.0, ""
        self.unit = "rows" if bundle.recipe.output.one_step else "tokens"
        self._clock = time.perf_counter()
        self._late_checkpoint = False

    def run(self, *, resume: bool = False) -> None:
        """Train to the end of the run, and leave the best weights in the bundle. resume: continue the run that
        `restore` has loaded.

        A signal ends the run after the current update, with a checkpoint; then KeyboardInterrupt (SIGINT) or SystemExit
        (SIGTERM) is raised.
        """
        self._begin(resume)
        if self.prepare is not None:
            self.prepare(self._say)
            self._clock = time.perf_counter()
        with stop_on_signals(again=self.world.size == 1) as stop:
            while not self.state.finished and not self._stops(stop):
                self._step()
            self.checkpoint()
            stopped = self._stops(stop)  # all processes decide the same, also where the run has just ended
            if stopped:
                self._stop()
        if stopped:
            raise stop.exception()
        self._finish()

    def time_updates(self, most: int, seconds: float) -> list[float]:
        """Seconds of some updates, spread over an epoch; the first, which is slower, is not among them. They change the
        weights: this is no run. seconds: after which no further one begins."""
        batches, times, begun = self.feed.batches(0), list[float](), time.perf_counter()
        for number in range(most + 1 if most else 0):
            self.state.index = min(number * batches // (most + 1), batches - 1)
            start = time.perf_counter()
            self._update(batches)
            times.append(time.perf_counter() - start)
            if time.perf_counter() - begun > seconds:
                break
        return times[1:] or times

    def _stops(self, stop: StopRequest) -> bool:
        """Whether a signal has asked any process to stop."""
        number = stop.number if stop else None
        asked = self.world.sums([float(number == signal_number) for signal_number in STOPPING])
        agreed = next((number for number, count in zip(STOPPING, asked, strict=True) if count), None)
        if agreed is not None:  # a signal that came meanwhile counts the next time
            stop.number = agreed
        return agreed is not None

    def checkpoint(self) -> None:
        """Write a checkpoint, and remove weights that are no longer kept. Several processes have the same weights
        afterwards, should their processors round differently."""
        self.schedule.begin()
        self._tick()
        self.world.broadcast_weights(self.network)
        carried = self.feed.carried()
        if self.world.leads:
            checkpoint = Checkpoint(
                self.state,
                tensors_of(self.network),
                optimizer_tensors(self.optimizer),
                carried,
                {} if self.average is None else self.average.tensors,
                random_device=random_state(self.bundle.device),
            )
            save_checkpoint(self.folder / CHECKPOINTS, checkpoint)
            kept = list(self.state.kept)
            remove_weights(self.folder / CHECKPOINTS, but=kept + self._kept)  # the one before may still be needed
            self._kept = kept
        self.schedule.end()

    # ------------------------------------------------------------ the parts of a run

    def _begin(self, resume: bool) -> None:
        if not resume:
            self.checkpoint()  # a run that is killed before the next one can be resumed from here
        if self.world.leads:
            self.journal = Journal(self.folder, up_to=self.state.updates if resume else None)
        if self.film is not None:
            self.film.begin(self.state.updates, epoch=self._epochs(), seconds=self.state.seconds, resumed=resume)
        self._clock = time.perf_counter()
        self._speed_clock, self._speed_seen = time.perf_counter(), self.state.seen

    def restore(self, checkpoint: Checkpoint, damaged: Mapping[Path, str]) -> None:
        """Load the state of a run from its newest checkpoint. damaged: the problem of each newer one."""
        folder = self.folder / CHECKPOINTS
        fill(self.network, checkpoint.weights, path=folder)
        restore_optimizer(self.optimizer, checkpoint.optimizer, path=folder)
        if self.average is not None:
            self.average.restore(checkpoint.averages, path=folder)
        self.feed.restore({name: tensor.to(self.bundle.device) for name, tensor in checkpoint.carried.items()})
        try:
            torch.set_rng_state(checkpoint.random)
            restore_random_state(self.bundle.device, checkpoint.random_device)
        except (RuntimeError, TypeError) as error:
            raise UserError(f"{folder}: damaged: no state of torch's random numbers: {error}") from None
        self.state = checkpoint.state
        if self.world.leads:
            self._check_files(damaged)
        self.state = state = self.world.leader(self.state)
        self.objective.state = state.objective
        self._kept = list(state.kept)
        state.finished = self._over() or (self._out_of_patience() and not self._rewards_to_come())
        if state.updates:
            self._say(f"resuming from update {state.updates:,} (epoch {self._epochs():.2f})")
        else:
            self._say("no checkpoint after the first update yet: starting from the beginning")

    def _check_files(self, damaged: Mapping[Path, str]) -> None:
        """Say which files of the run are damaged, and leave them out."""
        folder, state = self.folder / CHECKPOINTS, self.state
        for path, problem in damaged.items():
            self._say(f"{problem}; the checkpoint before it, of update {state.updates:,}, is used instead")
            set_aside(path)
        if state.finished and (len(state.kept) < 2 or mean_is_reported(self.folder, state.updates)):
            state.kept = []  # their mean was made, and some may be removed already
        state.kept, problems = existing_weights(folder, state.kept)
        for problem in problems:
            self._say(f"{problem}; left out of the mean of the best weights")
        self._check_best()

    def _check_best(self) -> None:
        """Forget the best weights so far where their file is damaged; those of the next report replace them."""
        if self.state.best is None:
            return
        try:
            read_tensors(self.folder / WEIGHTS)
        except UserError as error:
            self._say(f"{error}; the best weights so far are lost, those of the next report replace them")
            self.state.best, self.state.stale = None, 0

    def _step(self) -> None:
        """One update, and the report, film frame and checkpoint that are due after it."""
        state = self.state
        batches, began = self.feed.batches(state.epoch), time.perf_counter()
        self._update(batches)
        state.update_seconds += time.perf_counter() - began
        state.index += 1
        epoch_ended = state.index == self.feed.batches(state.epoch)  # known by now, where it was an estimate
        if epoch_ended:
            state.epoch, state.index = state.epoch + 1, 0
        self._tick()
        state.finished = self._over()
        if state.finished or self._report_due(epoch_ended):
            self.report()
        self._film()
        # while steps fail the weights may be lost: they must not replace older checkpoints
        if not state.skipped_in_a_row and self.schedule.due(state.updates, late=self._late_checkpoint):
            self.checkpoint()

    def _update(self, batches: int) -> None:
        state, settings = self.state, self.settings
        share = self._share(batches)
        state.learning_rate = settings.learning_rate * rate_factor(settings, share) * state.rate
        for group in self.optimizer.param_groups:
            group["lr"] = state.learning_rate
        before = _Before(torch.get_rng_state(), random_state(self.bundle.device), dict(state.objective))
        loss = self._gradient(share)
        limit = settings.clip if settings.clip else math.inf
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), limit)
        if torch.isfinite(norm):
            self.optimizer.step()
            if self.average is not None:
                self.average.update(state.updates)
            self.norm, state.skipped_in_a_row = float(norm), 0
            state.seen += loss.targets
            state.loss_total += float(loss.total.detach())
            state.loss_count += loss.count
        else:
            self._skip(loss, before)
        state.updates += 1
        if state.updates % TRIM_EVERY == 0:
            trim_memory()
        if state.updates % 10 == 0:
            self._show_progress(batches)

    def _gradient(self, share: float) -> Loss:
        """Compute the loss and the gradient of the batch that is due. share: of the run that is done."""
        state, settings = self.state, self.settings
        self.network.train()
        self.world.seed(settings.seed, state.updates)
        self.objective.begin(share, rewarding=state.rewarding)
        if self.objective.rewarding and not state.rewarding:
            state.rewarding, state.stale = True, 0
        with autocast(settings.precision, self.bundle.device):
            loss = self.feed.loss(
                self.network,
                self.objective,
                state.epoch,
                state.index,
                own_share=settings.scheduled_sampling * min(share, 1.0),
                device=self.bundle.device,
            )
        self.optimizer.zero_grad(set_to_none=True)
        return self.world.backward(loss, self.network)

    def _skip(self, loss: Loss, before: _Before) -> None:
        """Take no step where the gradient is not finite; the state that a stream carries is not either, and starts
        anew. The first of several in a row is saved, so that `replay` can compute it again."""
        self.culprit = find_culprit(loss, self.objective.settings)
        carried = self.feed.carried(before=True)
        with self.world.together():
            message = count_skipped(self.settings, self.state, self.folder, self.culprit)
            if message is not None and self.world.leads:
                state = replace(self.state, objective=before.objective)
                weights = tensors_of(self.network)
                checkpoint = Checkpoint(
                    state, weights, {}, carried, random=before.random, random_device=before.random_device
                )
                save_checkpoint(self.folder / NONFINITE, checkpoint)
                self._say(f"{message}; to see it again: seq2see train {quote(str(self.folder))} --replay")
        self.feed.restore({})

    def replay(self, checkpoint: Checkpoint) -> Replay:
        """Compute a saved update again, without a step: what is not finite in it."""
        fill(self.network, checkpoint.weights, path=self.folder / NONFINITE)
        self.feed.restore({name: tensor.to(self.bundle.device) for name, tensor in checkpoint.carried.items()})
        self.state = state = checkpoint.state
        self.objective.state = state.objective
        torch.set_rng_state(checkpoint.random)
        restore_random_state(self.bundle.device, checkpoint.random_device)
        loss = self._gradient(self._share(self.feed.batches(state.epoch)))
        wrong = {
            name: int((~parameter.grad.isfinite()).sum())
            for name, parameter in self.network.named_parameters()
            if parameter.grad is not None and not bool(parameter.grad.isfinite().all())
        }
        return Replay(
            update=state.updates + 1,
            epoch=state.epoch,
            batch=state.index,
            rows=self.feed.rows(state.epoch, state.index),
            loss=float(loss.total.detach()) / max(loss.count, 1),
            terms=loss.terms,
            parameters=wrong,
        )

    def _film(self) -> None:
        """Record a frame where one is due, unless the weights may be lost. Its time does not count for the speed."""
        state, began = self.state, time.perf_counter()
        if self.film is None or state.skipped_in_a_row:
            return
        self.film.after(
            state.updates,
            epoch=self._epochs(),
            seconds=state.seconds,
            reported=state.reported == state.updates,
            finished=state.finished,
        )
        self._speed_clock += time.perf_counter() - began

    def report(self) -> Report:
        """Evaluate the model, write the report, and keep the weights if they are the best so far."""
        state = self.state
        with self.world.together():
            check_trained(state, self.culprit)
            check_weights(self.network, self.settings, state, self.folder)
        speed = self._speed()
        self.network.eval()
        with self._averaged():
            report = self._evaluated()
            self._keep_if_best(report)
        report.loss = state.loss_total / max(state.loss_count, 1)
        report.objective = dict(state.objective)
        report.tokens_per_second, report.unit, report.gradient_norm = round(speed, 1), self.unit, self.norm
        state.loss_total = state.loss_count = 0.0
        state.reported, state.reported_seconds = state.updates, state.seconds
        self._write(report)
        for listener in self.listeners:
            listener.on_report(report, self.metric)
        self._tick()
        self._speed_clock, self._speed_seen = time.perf_counter(), state.seen
        return report

    def _averaged(self) -> AbstractContextManager[None]:
        """The network with the weights that are measured and kept."""
        return nullcontext() if self.average is None else self.average.swapped_in()

    def _evaluated(self) -> Report:
        """A report of the current model, with the numbers of the run."""
        self._tick()
        report = self.world.leader(self.evaluate(self.bundle))
        report.update, report.seconds = self.state.updates, round(self.state.seconds, 2)
        report.epoch, report.learning_rate = round(self._epochs(), 4), self.state.learning_rate
        return report

    def _learns(self, report: Report) -> bool:
        """Whether the perplexity of dev is the lowest so far: the rate of a few hundred right outputs jumps,
        and stands still on a plateau, while the probability of all of them tells that the model still learns."""
        perplexity, lowest = report.dev.get("perplexity", math.inf), self.state.lowest
        if not 1 <= perplexity < math.inf:
            return False
        if lowest is not None and math.log(perplexity) >= (1 - LEAST_GAIN) * math.log(lowest):
            return False
        self.state.lowest = perplexity
        return True

    def _keep_if_best(self, report: Report) -> None:
        state, settings = self.state, self.settings
        value = selection_value(report.dev, self.metric)
        report.best = state.best is None or value > state.best
        state.stale = 0 if self._learns(report) or report.best else state.stale + self._stands_for()
        if report.best:
            state.best, state.best_update = value, state.updates
            self._write_weights()
        elif settings.schedule == "plateau":
            state.rate = max(state.rate / 2, settings.floor)
        if settings.average > 1:
            state.kept = keep_best(
                self.folder / CHECKPOINTS,
                tensors_of(self.network),
                state.kept,
                value=value,
                update=state.updates,
                most=settings.average,
                write=self.world.leads,
            )
        if self._out_of_patience():
            since = counted(state.stale, "report" if self._stands_for() == 1 else "epoch")
            measured = dict.fromkeys([self.metric, "perplexity"] if state.lowest is not None else [self.metric])
            reason = f"no better {' or '.join(measured)} in {since}"
            if self._rewards_to_come() and not state.finished:
                state.rewarding, state.stale = True, 0
                self._say(f"{reason}: outputs are rewarded from here on (loss.reward)")
            else:
                state.finished = True
                self._say(f"{reason}: stopped early")

    def _finish(self) -> None:
        """Load the best weights, or the mean of the best ones where that is better."""
        if self.state.best is None:
            self.report()
        folder = self.folder / CHECKPOINTS
        best = self.folder / WEIGHTS
        self._load(lambda: read_tensors(best), best)
        self.network.eval()
        if self.settings.average > 1 and len(self.state.kept) > 1:
            self._try_average(best)
        if self.state.skipped:
            skipped = f"{self.state.skipped:,} of {counted(self.state.updates, 'update')}"
            self._say(f"{skipped} took no step: the loss or its gradient was not finite")
        if (note := ctc_note(self.state.objective)) is not None:
            self._say(note)
        if self.world.leads:
            remove_weights(folder, but=[])
        for listener in self.listeners:
            listener.close()

    def _stop(self) -> None:
        """Leave a model in the folder: the best so far, or before the first report the current weights."""
        if self.state.best is None and not self.state.skipped_in_a_row:
            with self._averaged():
                self._write_weights()
        stopped = f"stopped after {counted(self.state.updates, 'update')}"
        self._say(f"{stopped}; to continue: seq2see train {quote(str(resumed_folder(self.folder)))} --resume")
        for listener in self.listeners:
            listener.close()
        self.world.sums([0.0])  # torchrun ends all processes when one has ended: none may before the files are written

    def _write(self, report: Report) -> None:
        if self.world.leads:
            self.journal.write(report)

    def _write_weights(self) -> None:
        """Write the model as it is now into the run's folder."""
        if self.world.leads:
            write_tensors(self.folder / WEIGHTS, tensors_of(self.network))

    def _load(self, read: Callable[[], Mapping[str, Tensor]], path: Path) -> None:
        """Have all processes use the weights that the leader reads."""
        if self.world.leads:
            fill(self.network, read(), path=path)
        self.world.broadcast_weights(self.network)

    def _try_average(self, best: Path) -> None:
        """Use the mean of the best weights if it is better than the best."""
        folder, number = self.folder / CHECKPOINTS, len(self.state.kept)
        self._load(lambda: average_weights(folder, self.state.kept), folder)
        report = self._evaluated()
        report.averaged = number
        report.best = self.state.best is None or selection_value(report.dev, self.metric) >= self.state.best
        if report.best:
            self._write_weights()
        self._write(report)  # last: a run that is killed after it does not make the mean again
        self._load(lambda: read_tensors(best), best)
        shown = lookup(self.metric).show(report.dev[self.metric])
        verdict = "kept" if report.best else "not better than the best alone"
        self._say(f"mean of the best {number} weights: {self.metric} {shown}, {verdict}")

    # ------------------------------------------------------------ time and limits

    def _epochs(self) -> float:
        return self.state.epoch + self.state.index / max(self.feed.batches(self.state.epoch), 1)

    def _share(self, batches: int) -> float:
        epochs = self.state.epoch + self.state.index / max(batches, 1)
        return share_done(self.settings, epochs=epochs, updates=self.state.updates, seconds=self.state.seconds)

    def _out_of_patience(self) -> bool:
        return bool(self.settings.patience) and self.state.stale >= self.settings.patience

    def _rewards_to_come(self) -> bool:
        """Whether outputs are rewarded in a later part of the run, and the decoder has begun to learn without."""
        return self.objective.rewards is not None and self.objective.decoding and not self.state.rewarding

    def _over(self) -> bool:
        settings, state = self.settings, self.state
        return bool(
            (settings.epochs and state.epoch >= settings.epochs)
            or (settings.updates and state.updates >= settings.updates)
            or (settings.minutes and state.seconds >= 60 * settings.minutes)
        )

    def _report_due(self, epoch_ended: bool) -> bool:
        every, state = self.settings.report_every, self.state
        if every:
            return state.updates % every == 0
        planned = epoch_ended and (state.epoch % self.report_epochs == 0 or self._late())
        return planned or state.updates - state.reported >= MOST_UPDATES_BETWEEN_REPORTS

    def _late(self) -> bool:
        """Whether a run that ends by the clock would else have too few reports."""
        waited = self.state.seconds - self.state.reported_seconds
        return bool(self.settings.minutes) and waited >= 60 * self.settings.minutes / FEWEST_REPORTS

    def _stands_for(self) -> int:
        """What a report counts for the patience: 1, or the epochs since the one before where it is planned by them, but
        no more than half: a single report says too little to end a run."""
        half = -(-self.settings.patience // 2)
        return 1 if self.settings.report_every else max(1, min(self.report_epochs, half))

    def _tick(self) -> None:
        """Read the leader's clock, by which all processes decide."""
        now = time.perf_counter()
        seconds = self.state.seconds + now - self._clock
        self._clock = now
        read = [seconds, float(self.schedule.late())] if self.world.leads else [0.0, 0.0]
        self.state.seconds, late = self.world.sums(read)
        self._late_checkpoint = bool(late)

    def _speed(self) -> float:
        elapsed = time.perf_counter() - self._speed_clock
        return (self.state.seen - self._speed_seen) / elapsed if elapsed > 0 else 0.0

    def _show_progress(self, batches: int) -> None:
        state = self.state
        status = UpdateStatus(
            updates=state.updates,
            epoch=self._epochs(),
            share=self._share(batches),
            seconds=state.seconds,
            loss=state.loss_total / max(state.loss_count, 1),
            speed=self._speed(),
            unit=self.unit,
        )
        for listener in self.listeners:
            listener.on_update(status)

    def _say(self, message: str) -> None:
        for listener in self.listeners:
            listener.on_message(message)


# ---------------------------------------------------------------- memory


def trim_memory() -> None:
    """Give free memory back to the system, where the C library can (glibc).

    Batches of many shapes leave holes between what oneDNN keeps of each shape, and the heap grows with every one: to
    several times what a batch needs.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


# ---------------------------------------------------------------- divergence

MOST_IN_A_ROW = 20
"""A single gradient that is not finite may be due to a rare row; so many in a row mean that the weights are lost."""

LARGEST_WEIGHT = 1e12
"""Far above any trained weight, and far enough below the largest number for sums of products."""


def find_culprit(loss: Loss, settings: LossSettings) -> str:
    """Name what is not finite: terms of the loss by their keys, -log P of the outputs, or only the gradient."""
    wrong = [name for name, value in loss.terms.items() if not math.isfinite(value)]
    if wrong:
        return " and ".join(_term(name, settings) for name in wrong)
    if not math.isfinite(float(loss.total.detach())):
        return "-log P of the outputs"
    largest = max(loss.terms, key=lambda name: abs(loss.terms[name]), default=None)
    if largest is None or abs(loss.terms[largest]) < abs(float(loss.total.detach())) / 2:
        return "the gradient"
    return f"the gradient, most of which is of {_term(largest, settings)},"


def _term(name: str, settings: LossSettings) -> str:
    setting = getattr(settings, name, None)
    weight = getattr(setting, "weight", setting)
    return "the term of hard attention's draws" if weight is None else f"the term loss.{name} (weight {weight:g})"


def check_trained(state: TrainingState, culprit: str) -> None:
    """Refuse the model of a run that ends without a single step: its weights are the initial ones."""
    if state.finished and state.updates and state.skipped >= state.updates:
        updates = "the only update" if state.updates == 1 else f"all {state.updates:,} updates"
        raise UserError(
            f"nothing was learned: in {updates} {culprit} was not finite, and no step was taken; there is no model"
        )


def count_skipped(settings: TrainingSettings, state: TrainingState, folder: Path, culprit: str) -> str | None:
    """Count an update without a step; a UserError where there are too many in a row.

    Returns a message for the first of several in a row.
    """
    state.skipped += 1
    state.skipped_in_a_row += 1
    if state.skipped_in_a_row >= MOST_IN_A_ROW:
        happened = f"{culprit} was not finite in {state.skipped_in_a_row} updates in a row, the last of them"
        raise UserError(_diverged(f"{happened} update {state.updates + 1:,}", settings, state, folder))
    if state.skipped_in_a_row > 1:
        return None
    so_far = f" ({state.skipped:,} so far)" if state.skipped > 1 else ""
    return f"update {state.updates + 1:,}: the loss or its gradient is not finite, no step was taken{so_far}"


def check_weights(network: nn.Module, settings: TrainingSettings, state: TrainingState, folder: Path) -> None:
    """Refuse weights that are not finite or too large to compute with: they never recover."""
    if not all(bool((parameter.abs() < LARGEST_WEIGHT).all()) for parameter in network.parameters()):
        happened = f"after update {state.updates:,} there are weights that are not finite, or above {LARGEST_WEIGHT:g}"
        raise UserError(_diverged(happened, settings, state, folder))


def _diverged(happened: str, settings: TrainingSettings, state: TrainingState, folder: Path) -> str:
    clip = f"training.clip {settings.clip:g}" if settings.clip else "no clipping (training.clip 0)"
    advice = f"try training.learning_rate={settings.learning_rate / 10:g}"
    if not settings.clip or settings.clip > 1:
        advice += " or training.clip=1"
    kept = (
        f"the best model so far, of update {state.best_update:,}, is kept in {folder}"
        if state.best is not None
        else "there was no report before, so there is no model yet"
    )
    return (
        f"the run diverges: {happened}, with training.learning_rate {settings.learning_rate:g} and {clip}; "
        f"{advice}; {kept}"
    )


# ---------------------------------------------------------------- signals


@dataclass
class StopRequest:
    """The signal that asked a run to stop; None before any did."""

    number: int | None = None

    def __bool__(self) -> bool:
        return self.number is not None

    def exception(self) -> BaseException:
        """The exception that ends the program: KeyboardInterrupt for Ctrl-C, SystemExit for SIGTERM."""
        return KeyboardInterrupt() if self.number == signal.SIGINT else SystemExit(128 + (self.number or 0))


STOPPING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signals(*, again: bool = True) -> Iterator[StopRequest]:
    """Remember SIGINT and SIGTERM instead of ending at once; only in the main thread, as others set no handlers.

    again: a second signal ends at once. Several processes get signals from more than one side (the terminal, torchrun,
    Slurm), and torchrun itself kills those that do not end.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def stop(number: int, frame: FrameType | None) -> None:
        if request and again:
            raise StopRequest(number).exception()
        request.number = number

    before = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
