"""Series simulated here: an accelerometer that is moved, and the water level at a coast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from jaxtyping import Float

from seq2see.data.tables import write as write_table
from seq2see.samples import Written

Steps = Float[np.ndarray, "steps channels"]


def written(values: Steps, *, decimals: int) -> str:
    """Numbers as a cell holds them: channels between spaces, steps between semicolons; ? where one is missing."""
    steps = ([("?" if np.isnan(one) else f"{one:.{decimals}f}") for one in step] for step in values.tolist())
    return "; ".join(" ".join(step) for step in steps) if values.shape[1] > 1 else " ".join(one for (one,) in steps)


def with_gaps(values: Steps, random: np.random.Generator, *, single: float, longest: int) -> Steps:
    """Values of which some are missing: single ones with that probability, and in one series of two a stretch of one
    channel."""
    made = np.where(random.random(values.shape) < single, np.nan, values)
    if random.random() < 0.5:
        width = int(random.integers(2, longest + 1))
        start = int(random.integers(0, len(values) - width + 1))
        made[start : start + width, int(random.integers(values.shape[1]))] = np.nan
    return made


# ---------------- An accelerometer that is moved

MOTIONS = ("drop", "shake", "tap", "turn")
ROWS = {"train": 1200, "dev": 300}
LENGTH, RATE = (80, 120), 50  # steps of a series, and steps a second
EVENTS = {"drop": 20, "shake": 26, "tap": 6, "turn": 26}
"""Steps that each motion takes."""
PARTS = ("early", "halfway", "late")


def write_motions(folder: Path, rows: Mapping[str, int] = ROWS) -> Written:
    """Two seconds of an accelerometer (x, y, z in g), in which something happens once: `label` says what, `text` what
    and when, `at` the step at which it begins.

    The sensor lies or hangs at any angle, drifts, and is noisy, and a hand trembles throughout, so that what happens
    has to be found in time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written_rows = {}
    for number, (part, count) in enumerate(rows.items()):
        random = np.random.default_rng([7, number])
        write_table(folder / f"{part}.tsv", _motions(count, random), ("series", "label", "text", "at"))
        written_rows[f"{part}.tsv"] = count
    return written_rows


def _motions(count: int, random: np.random.Generator) -> Iterator[Mapping[str, str]]:
    for _ in range(count):
        motion = MOTIONS[int(random.integers(len(MOTIONS)))]
        values, at = move(motion, random)
        values = with_gaps(values, random, single=0.02, longest=8)
        when = PARTS[min(len(PARTS) * at // (len(values) - EVENTS[motion]), len(PARTS) - 1)]
        text = f"a {motion} {when}"
        yield {"series": written(values, decimals=2), "label": motion, "text": text, "at": str(at)}


def move(motion: str, random: np.random.Generator) -> tuple[Steps, int]:
    """(values (steps, 3), the step at which the motion begins)"""
    steps, width = int(random.integers(LENGTH[0], LENGTH[1] + 1)), EVENTS[motion]
    at = int(random.integers(0, steps - width + 1))
    time = np.arange(steps) / RATE
    gravity = _unit(random)
    force = np.tile(gravity, (steps, 1))
    if motion == "turn":  # gravity moves to another side, and stays there
        other = _unit(random)
        while float(other @ gravity) > 0.3:
            other = _unit(random)
        share = np.clip((np.arange(steps) - at) / width, 0, 1)[:, None]
        share = share * share * (3 - 2 * share)
        force = (1 - share) * gravity + share * other
    tremor = 0.1 * np.sin(2 * np.pi * random.uniform(3, 5) * time + random.uniform(0, 2 * np.pi))
    force = force + tremor[:, None] * _unit(random)
    force = force + 0.1 * np.linspace(-1, 1, steps)[:, None] * _unit(random)
    inside, during = slice(at, at + width), np.arange(width) / RATE
    if motion == "shake":
        swing = np.sin(2 * np.pi * random.uniform(7, 9) * during) * np.hanning(width + 2)[1:-1]
        force[inside] += random.uniform(1.0, 1.6) * swing[:, None] * _unit(random)
    elif motion == "tap":
        ringing = np.cos(2 * np.pi * 16 * during) * np.exp(-during * 30)
        force[inside] += random.uniform(1.5, 2.5) * ringing[:, None] * _unit(random)
    elif motion == "drop":  # nothing is felt in free fall, then the ground
        force[inside] *= 0.1
        force[at + width - 3 : at + width] += random.uniform(0.9, 1.4) * np.array([1, -0.5, 0.2])[:, None] * gravity
    return force + random.normal(0, 0.06, force.shape), at


def _unit(random: np.random.Generator) -> Float[np.ndarray, "3"]:
    vector = random.normal(0, 1, 3)
    return np.asarray(vector / np.linalg.norm(vector))


# ---------------- The water level at a coast

HOURS = {"train": 12_000, "dev": 3_000}
HISTORY, FUTURE = 72, 12  # hours
EVERY = 6
"""Hours between the beginnings of two windows."""
CONSTITUENTS = {
    "M2": (12.4206, 1.2),
    "S2": (12.0, 0.4),
    "N2": (12.6583, 0.25),
    "K1": (23.9345, 0.2),
    "O1": (25.8193, 0.15),
}
"""Tides of the moon and the sun: period in hours, and amplitude in metres."""
START = datetime(2021, 1, 1)


def write_tides(folder: Path, hours: Mapping[str, int] = HOURS) -> Written:
    """Three days of water level (m), wind towards the coast (m/s) and air pressure (hPa) by the hour, and the level of
    the next twelve hours. `start` is the first hour of a window; the hours of dev come after those of train."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(11)
    record = simulate_coast(sum(hours.values()), random)
    written_rows, first = {}, 0
    for part, number in hours.items():
        starts = range(first, first + number - HISTORY - FUTURE + 1, EVERY)
        write_table(folder / f"{part}.tsv", _windows(record, starts, random), ("start", "history", "future"))
        written_rows[f"{part}.tsv"] = len(starts)
        first += number
    return written_rows


def _windows(record: Steps, starts: range, random: np.random.Generator) -> Iterator[Mapping[str, str]]:
    for start in starts:
        history = with_gaps(record[start : start + HISTORY], random, single=0.02, longest=10)
        future = record[start + HISTORY : start + HISTORY + FUTURE, :1]
        yield {
            "start": (START + timedelta(hours=start)).strftime("%Y-%m-%d %H:%M"),
            "history": written(history, decimals=2),
            "future": written(future, decimals=2),
        }


def simulate_coast(hours: int, random: np.random.Generator) -> Steps:
    """(hours, 3): level, wind, pressure. Weather is noise that forgets within days; low pressure lifts the water by a
    centimetre for each hPa, and wind piles it up as the square of its speed, slowly."""
    time = np.arange(hours)
    level = np.zeros(hours)
    for period, amplitude in CONSTITUENTS.values():
        level += amplitude * np.cos(2 * np.pi * time / period + random.uniform(0, 2 * np.pi))
    pressure = 1013 + 11 * _forgetting(hours, 60, random)
    wind = 7 * _forgetting(hours, 20, random) - 0.25 * (pressure - 1013)
    surge = np.zeros(hours)
    for hour in range(1, hours):
        pushed = 0.0055 * wind[hour] * abs(wind[hour])
        surge[hour] = surge[hour - 1] + (pushed - surge[hour - 1]) / 6
    level += surge - 0.01 * (pressure - 1013) + random.normal(0, 0.03, hours)
    return np.stack([level, wind, pressure], axis=1)


def _forgetting(hours: int, memory: float, random: np.random.Generator) -> Float[np.ndarray, " hours"]:
    """Noise of deviation 1 that forgets in so many hours, smoothed over six."""
    kept = float(np.exp(-1 / memory))
    noise = random.normal(0, np.sqrt(1 - kept**2), hours)
    values = np.zeros(hours)
    for hour in range(1, hours):
        values[hour] = kept * values[hour - 1] + noise[hour]
    return np.convolve(values, np.ones(6) / 6, mode="same")
