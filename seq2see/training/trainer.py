"""The loop: updates, reports, checkpoints. It can be stopped, killed and resumed without losing a step."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from types import FrameType

import torch
from torch import nn

from seq2see.errors import UserError, counted
from seq2see.evaluation import higher_is_better, lookup
from seq2see.pipeline.bundle import WEIGHTS, Bundle
from seq2see.pipeline.devices import random_state, restore_random_state
from seq2see.pipeline.weights import fill, read_tensors, tensors_of, write_tensors
from seq2see.training.checkpoints import (
    Checkpoint,
    CheckpointSchedule,
    Standing,
    save_checkpoint,
    set_aside,
)
from seq2see.training.divergence import check_learned, check_weights, culprit, passed_over
from seq2see.training.feeds import Feed
from seq2see.training.film import Film
from seq2see.training.losses import Loss, Objective, left_out
from seq2see.training.optimizer import (
    averaged,
    build_optimizer,
    check_schedule,
    done,
    factor,
    forget,
    keep_best,
    optimizer_tensors,
    restore_optimizer,
    still_there,
    working_precision,
)
from seq2see.training.reports import Journal, Listener, Report, UpdateStatus

# ---------------- Signals while a run goes on


@dataclass
class StopRequest:
    """The signal that asked a run to stop; None as long as none did."""

    number: int | None = None

    def __bool__(self) -> bool:
        return self.number is not None

    def exception(self) -> BaseException:
        """What ends the program: KeyboardInterrupt for Ctrl-C, as in Python; SystemExit for SIGTERM, as in shells."""
        return KeyboardInterrupt() if self.number == signal.SIGINT else SystemExit(128 + (self.number or 0))


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Note SIGINT and SIGTERM instead of ending at once; in other threads than the main one no handlers are set."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def stop(number: int, frame: FrameType | None) -> None:
        if request:
            raise StopRequest(number).exception()
        request.number = number

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


CHECKPOINTS = "checkpoints"
MOST_UPDATES_BETWEEN_REPORTS = 2000
TIE = 1e-6
"""At most so much a lower perplexity adds to the leading metric: less than any step of a rate."""


class Trainer:
    """Minimises the loss of a bundle over a feed.

    judge: measures the model on the dev rows (metrics, baseline, samples); metric: the one that picks the best model;
    prepare: what is to be done once the weights are there, before the first update; it is given somebody to tell;
    film: takes pictures on the way.
    """

    def __init__(
        self,
        bundle: Bundle,
        feed: Feed,
        judge: Callable[[Bundle], Report],
        *,
        metric: str,
        folder: Path,
        listeners: Sequence[Listener] = (),
        prepare: Callable[[Callable[[str], None]], None] | None = None,
        film: Film | None = None,
    ):
        self.prepare, self.film = prepare, film
        self.bundle, self.feed, self.judge, self.metric = bundle, feed, judge, metric
        self.folder, self.listeners = folder, list(listeners)
        self.settings = bundle.recipe.training
        check_schedule(self.settings)
        self.network = bundle.network
        self.objective = Objective(bundle.recipe.loss, bundle.fields)
        self.optimizer = build_optimizer(self.settings, self.network)
        self.standing = Standing(fingerprint=feed.fingerprint)
        self.objective.state = self.standing.objective
        self.schedule = CheckpointSchedule(self.settings.checkpoint_every, self.settings.checkpoint_seconds)
        self._kept: list[list[float]] = []
        self.norm, self.unfinite = 0.0, ""
        self.unit = "rows" if bundle.recipe.output.one_step else "tokens"
        self._clock = time.perf_counter()

    def run(self, *, resume: bool = False) -> None:
        """Train to the end of the run, and leave the best weights in the bundle. resume: go on with a run that
        `restore` has taken up.

        A signal ends it after the update under way, with a checkpoint; then KeyboardInterrupt (SIGINT) or SystemExit
        (SIGTERM) is raised."""
        self._begin(resume)
        if self.prepare is not None:
            self.prepare(self._say)
            self._clock = time.perf_counter()
        with stop_on_signals() as stop:
            while not self.standing.finished and not stop:
                self._go_on()
            self.checkpoint()
        if stop:
            self._stop()
            raise stop.exception()
        self._finish()

    def checkpoint(self) -> None:
        self.schedule.begin()
        self._tick()
        made = Checkpoint(
            self.standing,
            tensors_of(self.network),
            optimizer_tensors(self.optimizer),
            self.feed.carried(),
            random_device=random_state(self.bundle.device),
        )
        save_checkpoint(self.folder / CHECKPOINTS, made)
        kept = list(self.standing.kept)
        forget(self.folder / CHECKPOINTS, but=kept + self._kept)  # the checkpoint before may yet be needed
        self._kept = kept
        self.schedule.end()

    # ------------------------------------------------------------ the parts of a run

    def _begin(self, resume: bool) -> None:
        if not resume:
            self.checkpoint()  # a run that is killed before its next one can go on from here
        self.journal = Journal(self.folder, up_to=self.standing.updates if resume else None)
        if self.film is not None:
            standing = self.standing
            self.film.begin(standing.updates, epoch=self._epochs(), seconds=standing.seconds, resumed=resume)
        self._clock = time.perf_counter()
        self._speed_clock, self._speed_seen = time.perf_counter(), self.standing.seen

    def restore(self, found: Checkpoint, damaged: Mapping[Path, str]) -> None:
        """Take up a run at its newest checkpoint that is whole, and say which that is. damaged: what is wrong with each
        newer one."""
        folder = self.folder / CHECKPOINTS
        if not self.feed.fingerprint.startswith(found.standing.fingerprint):  # once it had no hash at its end
            raise UserError(
                f"{self.folder}: cannot resume, the data has changed: it was {found.standing.fingerprint}, "
                f"now it is {self.feed.fingerprint}"
            )
        fill(self.network, found.weights, path=folder)
        restore_optimizer(self.optimizer, found.optimizer)
        self.feed.restore({name: tensor.to(self.bundle.device) for name, tensor in found.carried.items()})
        torch.set_rng_state(found.random)
        restore_random_state(self.bundle.device, found.random_device)
        self.standing = standing = found.standing
        self.objective.state = standing.objective
        for path, problem in damaged.items():
            self._say(f"{problem}; left for the checkpoint before it, of update {standing.updates:,}")
            set_aside(path)
        standing.kept, problems = still_there(folder, standing.kept)
        for problem in problems:
            self._say(f"{problem}; left out of the mean of the best weights")
        self._kept = list(standing.kept)
        self._check_best()
        standing.finished = self._over() or self._patience_lost()
        if standing.updates:
            self._say(f"resuming from update {standing.updates:,} (epoch {self._epochs():.2f})")
        else:
            self._say("no checkpoint after the first update yet: starting from the beginning")

    def _check_best(self) -> None:
        """Where the best weights so far are damaged they are lost, and the next report's take their place."""
        if self.standing.best is None:
            return
        try:
            read_tensors(self.folder / WEIGHTS)
        except UserError as error:
            self._say(f"{error}; the best weights so far are lost, those of the next report take their place")
            self.standing.best, self.standing.stale = None, 0

    def _go_on(self) -> None:
        """One update, and what falls due after it."""
        standing = self.standing
        batches, began = self.feed.batches(standing.epoch), time.perf_counter()
        self._update(batches)
        standing.update_seconds += time.perf_counter() - began
        standing.index += 1
        epoch_ended = standing.index == batches
        if epoch_ended:
            standing.epoch, standing.index = standing.epoch + 1, 0
        standing.finished = self._over()
        if standing.finished or self._report_due(epoch_ended):
            self.report()
        self._filmed()
        # where steps fail the weights may be what is wrong: older checkpoints must not make room for them
        if not standing.on_end and self.schedule.due(standing.updates):
            self.checkpoint()

    def _update(self, batches: int) -> None:
        standing, settings = self.standing, self.settings
        share = self._share(batches)
        rate = settings.learning_rate * factor(settings, share) * standing.rate
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.network.train()
        with working_precision(settings.precision, self.bundle.device):
            loss = self.feed.loss(
                self.network,
                self.objective,
                standing.epoch,
                standing.index,
                own_share=settings.scheduled_sampling * min(share, 1.0),
                device=self.bundle.device,
            )
        self.optimizer.zero_grad(set_to_none=True)
        loss.mean.backward()
        limit = settings.clip if settings.clip else math.inf
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), limit)
        if torch.isfinite(norm):
            self.optimizer.step()
            self.norm, standing.on_end = float(norm), 0
            standing.seen += loss.targets
            standing.loss_total += float(loss.total.detach())
            standing.loss_count += loss.count
        else:
            self._pass_over(loss)
        standing.updates += 1
        if standing.updates % 10 == 0:
            self._tell(batches)

    def _pass_over(self, loss: Loss) -> None:
        """No step where the gradient is not finite; what a stream carries is none the better, and begins anew."""
        self.unfinite = culprit(loss, self.objective.settings)
        said = passed_over(self.settings, self.standing, self.folder, self.unfinite)
        if said is not None:
            self._say(said)
        self.feed.restore({})

    def _filmed(self) -> None:
        """A frame where one is due, unless the weights may be lost; the speed that is told is that of learning."""
        standing, began = self.standing, time.perf_counter()
        if self.film is None or standing.on_end:
            return
        self.film.after(
            standing.updates,
            epoch=self._epochs(),
            seconds=standing.seconds,
            reported=standing.reported == standing.updates,
            finished=standing.finished,
        )
        self._speed_clock += time.perf_counter() - began

    def report(self) -> Report:
        """Judge the model, write it down, keep it if it is the best so far."""
        standing = self.standing
        check_learned(standing, self.unfinite)
        check_weights(self.network, self.settings, standing, self.folder)
        speed = self._speed()
        self.network.eval()
        report = self._judged()
        report.loss = standing.loss_total / max(standing.loss_count, 1)
        report.objective = dict(standing.objective)
        report.tokens_per_second, report.unit, report.gradient_norm = round(speed, 1), self.unit, self.norm
        standing.loss_total = standing.loss_count = 0.0
        standing.reported = standing.updates
        self._judge_best(report)
        self.journal.write(report)
        for listener in self.listeners:
            listener.on_report(report, self.metric)
        self._tick()
        self._speed_clock, self._speed_seen = time.perf_counter(), standing.seen
        return report

    def _judged(self) -> Report:
        """A report of the model as it is, with where the run stands."""
        self._tick()
        report = self.judge(self.bundle)
        report.update, report.seconds = self.standing.updates, round(self.standing.seconds, 2)
        report.epoch, report.learning_rate = round(self._epochs(), 4), self.optimizer.param_groups[0]["lr"]
        return report

    def _value(self, report: Report) -> float:
        """The leading metric, turned so that more is better; of equals the one less surprised by the outputs.

        Rates of few rows stand still for long (no word is right yet) while a model learns: that is no reason to stop.
        """
        value = report.dev[self.metric] * (1 if higher_is_better(self.metric) else -1)
        if math.isnan(value):
            return -math.inf
        return value + TIE / (1 + report.dev["perplexity"]) if "perplexity" in report.dev else value

    def _judge_best(self, report: Report) -> None:
        standing, settings = self.standing, self.settings
        value = self._value(report)
        report.best = standing.best is None or value > standing.best
        if report.best:
            standing.best, standing.best_update, standing.stale = value, standing.updates, 0
            write_tensors(self.folder / WEIGHTS, tensors_of(self.network))
        else:
            standing.stale += 1
            if settings.schedule == "plateau":
                standing.rate = max(standing.rate / 2, settings.floor)
        if settings.average > 1:
            standing.kept = keep_best(
                self.folder / CHECKPOINTS,
                tensors_of(self.network),
                standing.kept,
                value=value,
                update=standing.updates,
                most=settings.average,
            )
        if self._patience_lost():
            standing.finished = True
            self._say(f"no better {self.metric} in {counted(standing.stale, 'report')}: stopped early")

    def _finish(self) -> None:
        """The best weights, or the mean of the best ones where that is better, become the model."""
        if self.standing.best is None:
            self.report()
        folder = self.folder / CHECKPOINTS
        best = self.folder / WEIGHTS
        fill(self.network, read_tensors(best), path=best)
        self.network.eval()
        if self.settings.average > 1 and len(self.standing.kept) > 1:
            self._try_average(best)
        if self.standing.passed_over:
            without = f"{self.standing.passed_over:,} of {counted(self.standing.updates, 'update')}"
            self._say(f"{without} took no step: the loss or its gradient was not finite")
        if (unread := left_out(self.standing.objective)) is not None:
            self._say(unread)
        forget(folder, but=[])
        for listener in self.listeners:
            listener.close()

    def _stop(self) -> None:
        """Leave a model: the best so far; before the first report the weights as they are."""
        if self.standing.best is None and not self.standing.on_end:
            write_tensors(self.folder / WEIGHTS, tensors_of(self.network))
        done = f"stopped after {counted(self.standing.updates, 'update')}"
        self._say(f"{done}; to go on: seq2see train {quote(str(self.folder))} --resume")
        for listener in self.listeners:
            listener.close()

    def _try_average(self, best: Path) -> None:
        folder, number = self.folder / CHECKPOINTS, len(self.standing.kept)
        fill(self.network, averaged(folder, self.standing.kept), path=folder)
        report = self._judged()
        report.averaged = number
        report.best = self.standing.best is None or self._value(report) >= self.standing.best
        self.journal.write(report)
        if report.best:
            write_tensors(best, tensors_of(self.network))
        fill(self.network, read_tensors(best), path=best)
        shown = lookup(self.metric).show(report.dev[self.metric])
        verdict = "kept" if report.best else "not better than the best alone"
        self._say(f"mean of the best {number} weights: {self.metric} {shown}, {verdict}")

    # ------------------------------------------------------------ time and limits

    def _epochs(self) -> float:
        return self.standing.epoch + self.standing.index / max(self.feed.batches(self.standing.epoch), 1)

    def _share(self, batches: int) -> float:
        self._tick()
        epochs = self.standing.epoch + self.standing.index / max(batches, 1)
        return done(self.settings, epochs=epochs, updates=self.standing.updates, seconds=self.standing.seconds)

    def _patience_lost(self) -> bool:
        return bool(self.settings.patience) and self.standing.stale >= self.settings.patience

    def _over(self) -> bool:
        settings, standing = self.settings, self.standing
        self._tick()
        return bool(
            (settings.epochs and standing.epoch >= settings.epochs)
            or (settings.updates and standing.updates >= settings.updates)
            or (settings.minutes and standing.seconds >= 60 * settings.minutes)
        )

    def _report_due(self, epoch_ended: bool) -> bool:
        every, standing = self.settings.report_every, self.standing
        if every:
            return standing.updates % every == 0
        return epoch_ended or standing.updates - standing.reported >= MOST_UPDATES_BETWEEN_REPORTS

    def _tick(self) -> None:
        now = time.perf_counter()
        self.standing.seconds += now - self._clock
        self._clock = now

    def _speed(self) -> float:
        elapsed = time.perf_counter() - self._speed_clock
        return (self.standing.seen - self._speed_seen) / elapsed if elapsed > 0 else 0.0

    def _tell(self, batches: int) -> None:
        standing = self.standing
        status = UpdateStatus(
            updates=standing.updates,
            epoch=self._epochs(),
            share=self._share(batches),
            seconds=standing.seconds,
            loss=standing.loss_total / max(standing.loss_count, 1),
            speed=self._speed(),
            unit=self.unit,
        )
        for listener in self.listeners:
            listener.on_update(status)

    def _say(self, message: str) -> None:
        for listener in self.listeners:
            listener.on_message(message)
