"""The strongest simple rules that were tried beside each recipe: what a model has to beat.

Data made by `seq2see sample` are looked for below ./data; rules whose data are not there are left out.

SEQ2SEE_DATA=data python benchmarks/studies/simple_rules.py
SEQ2SEE_DATA=data python benchmarks/studies/simple_rules.py tides motions
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from seq2see.data.image_files import ImageInput, read_image
from seq2see.data.log_mel import log_mels
from seq2see.data.sound_files import SoundInput, read_sound, resample
from seq2see.data.video_files import VideoInput, read_video
from seq2see.evaluation import compute

Row: TypeAlias = dict[str, str]
Numbers: TypeAlias = NDArray[np.float64]


def folder(name: str) -> Path:
    return next(
        path for path in (Path(os.environ.get("SEQ2SEE_DATA", "data"), name), Path("data", name)) if path.is_dir()
    )


def table(name: str, part: str) -> list[Row]:
    header, *lines = (folder(name) / f"{part}.tsv").read_text("utf-8").splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


def nearest(known: Numbers, asked: Numbers) -> NDArray[np.int64]:
    """For each row of `asked` the nearest row of `known`, of numbers that are scaled by those of `known`."""
    scale = known.std(0) + 1e-9
    known, asked = known / scale, asked / scale
    return np.asarray(np.argmin(np.square(known).sum(1) - 2 * asked @ known.T, 1))


def share(predicted: Sequence[str], rows: Sequence[Row], column: str) -> str:
    right = sum(text == row[column] for text, row in zip(predicted, rows, strict=True))
    return f"{100 * right / len(rows):.1f} % right"


# ---------------------------------------------------------------- texts


def people() -> str:
    """question-answering: naive Bayes of the question's words, each answer being a class."""
    train, dev = table("people", "train"), table("people", "dev")
    answers, words = Counter(row["answer"] for row in train), defaultdict[str, Counter[str]](Counter)
    for row in train:
        words[row["answer"]].update(row["question"].split())
    known = {word for counts in words.values() for word in counts}

    def fits(answer: str, question: str) -> float:
        total = sum(words[answer].values()) + len(known)
        return math.log(answers[answer]) + sum(
            math.log((words[answer][w] + 1) / total) for w in question.split() if w in known
        )

    best = [max(answers, key=lambda answer: fits(answer, row["question"])) for row in dev]
    return f"naive Bayes of words {share(best, dev, 'answer')}"


def reports() -> str:
    """summarisation-hierarchical: the words that all titles share, and in each gap the first word of the report that
    stands there in some title of train."""
    train, dev = table("reports", "train"), table("reports", "dev")
    slots = list(zip(*(row["title"].split() for row in train), strict=True))
    shared = [Counter(slot).most_common(1)[0][0] if len(set(slot)) == 1 else "" for slot in slots]
    known = [set(slot) for slot in slots]
    titles = []
    for row in dev:
        left = row["abstract"].lower().replace(".", " ").split()
        title = []
        for word, words in zip(shared, known, strict=True):
            found = word or next((other for other in left if other in words and other not in title), "")
            title.append(found)
        titles.append(" ".join(title))
    figures = compute(["rouge1", "rouge2", "rougeL"], titles, [[row["title"]] for row in dev])
    told = " / ".join(f"{value:.1f}" for value in figures.values())
    return f"title filled in {told} ROUGE-1/2/L, {share(titles, dev, 'title')}"


def sets() -> str:
    """set-to-sequence: the numbers sorted, which is how the data are made."""
    dev = table("sets", "dev")
    return f"sorting {share([' '.join(sorted(row['items'].split(), key=int)) for row in dev], dev, 'sorted')}"


def tinyshakespeare(order: int = 5) -> str:
    """language-model: n-grams of characters, each order mixed with the next shorter one (Witten and Bell)."""
    train, dev = ((folder("tinyshakespeare") / f"{part}.txt").read_text("utf-8") for part in ("train", "dev"))
    counts = [defaultdict[str, Counter[str]](Counter) for _ in range(order)]
    for length, after in enumerate(counts):
        for at in range(length, len(train)):
            after[train[at - length : at]][train[at]] += 1
    symbols = len(set(train))

    @cache
    def probability(context: str, symbol: str) -> float:
        shorter = probability(context[1:], symbol) if context else 1 / symbols
        seen = counts[len(context)].get(context)
        if not seen:
            return shorter
        total = seen.total()
        return (seen[symbol] + len(seen) * shorter) / (total + len(seen))

    nats = -sum(math.log(probability(dev[max(at - order + 1, 0) : at], dev[at])) for at in range(len(dev))) / len(dev)
    return f"{order}-grams of characters {nats:.3f} nats, perplexity {math.exp(nats):.2f}"


# ---------------------------------------------------------------- series


def steps(cell: str) -> Numbers:
    """(steps, channels); gaps are filled by a line between neighbours."""
    values = np.array([[math.nan if n == "?" else float(n) for n in step.split()] for step in cell.split(";")])
    for channel in values.T:
        there = np.isfinite(channel)
        channel[~there] = np.interp(np.flatnonzero(~there), np.flatnonzero(there), channel[there]) if there.any() else 0
    return values


def motions() -> str:
    """series-classification: the nearest row by how far and how often the force changes, and by both ends."""

    def summary(cell: str) -> Numbers:
        x = steps(cell)
        change, force = np.diff(x, axis=0), np.linalg.norm(x, axis=1)
        ends = np.abs(x[-20:].mean(0) - x[:20].mean(0))
        spread = [change.std(), np.abs(change).max(), force.min(), force.max(), force.std(), ends.max()]
        loud = np.abs(force - 1) > 0.5
        return np.array([*spread, loud.sum(), np.abs(np.diff(loud.astype(int))).sum()])

    train, dev = table("motions", "train"), table("motions", "dev")
    known, asked = (np.array([summary(row["series"]) for row in rows]) for rows in (train, dev))
    return f"nearest by eight statistics {share([train[i]['label'] for i in nearest(known, asked)], dev, 'label')}"


def tides() -> str:
    """forecasting: 25 hours before; five tides of known periods fitted to each history; one linear regression."""
    train, dev = table("tides", "train"), table("tides", "dev")
    histories, futures = (
        [[steps(row[column]) for row in rows] for rows in (train, dev)] for column in ("history", "future")
    )
    past, past_dev = (np.array([h[:, 0] for h in part]) for part in histories)
    next_, next_dev = (np.array([f[:, 0] for f in part]) for part in futures)
    length, ahead = past.shape[1], next_.shape[1]

    def error(predicted: Numbers) -> str:
        return f"{np.abs(predicted - next_dev).mean():.2f} m"

    hours = np.arange(length + ahead)[:, None] * 2 * np.pi / np.array([12.4206, 12.0, 12.6583, 23.9345, 25.8193])
    waves = np.hstack([np.ones((length + ahead, 1)), np.cos(hours), np.sin(hours)])
    ridge = np.linalg.solve(waves[:length].T @ waves[:length] + 0.1 * np.eye(11), waves[:length].T @ past_dev.T)
    both, both_dev = (np.array([np.append(h.ravel(), 1) for h in part]) for part in histories)
    fitted = np.linalg.solve(both.T @ both + 10 * np.eye(both.shape[1]), both.T @ next_)
    day = past_dev[:, length - 25 : length - 25 + ahead]
    return (
        f"25 hours before {error(day)}; five tides fitted to each history {error((waves[length:] @ ridge).T)}; "
        f"linear regression on the history {error(both_dev @ fitted)}; mean {error(next_.mean(0))}"
    )


# ---------------------------------------------------------------- images, sound and video


def pictures(name: str, rows: Sequence[Row], side: tuple[int, int], colour: str) -> Numbers:
    settings = ImageInput.model_validate({"height": side[0], "width": side[1], "fit": "stretch", "colour": colour})
    seen = {
        path: read_image(folder(name) / path, settings).ravel() for path in dict.fromkeys(row["image"] for row in rows)
    }
    return np.array([seen[row["image"]] for row in rows], dtype=float)


def clips(name: str, rows: Sequence[Row], frames: int, height: int, width: int) -> Numbers:
    """(rows, frames, height, width), grey."""
    made = {"frames": frames, "height": height, "width": width, "fit": "stretch", "colour": "grey"}
    settings = VideoInput.model_validate(made)
    return np.array([read_video(folder(name) / row["video"], settings).pixels[:, 0] for row in rows], dtype=float)


def digits() -> str:
    """image-autoencoder: principal components of the pixels, as many as the code has numbers."""
    train, dev = (pictures("digits", table("digits", part), (32, 32), "grey") / 255 for part in ("train", "dev"))
    mean = train.mean(0)
    _, _, axes = np.linalg.svd(train - mean, full_matrices=False)
    errors = [
        f"{n}: {np.square((dev - mean) - (dev - mean) @ axes[:n].T @ axes[:n]).mean():.5f}" for n in (8, 16, 32, 64)
    ]
    return f"squared error of PCA, by numbers kept: {', '.join(errors)}; mean image {np.square(dev - mean).mean():.4f}"


def flickr8k() -> str:
    """image-captioning: the caption of the nearest picture of 8 x 8 pixels."""
    train, dev = table("flickr8k", "train"), table("flickr8k", "dev")
    one = list({row["image"]: row for row in train}.values())
    wanted = defaultdict[str, list[str]](list)
    for row in dev:
        wanted[row["image"]].append(row["caption"])
    asked = [{"image": path} for path in wanted]
    found = nearest(pictures("flickr8k", one, (8, 8), "rgb"), pictures("flickr8k", asked, (8, 8), "rgb"))
    figures = compute(
        ["bleu4_plain"], [one[i]["caption"].lower() for i in found], [[t.lower() for t in ts] for ts in wanted.values()]
    )
    return f"caption of the nearest picture {figures['bleu4_plain']:.1f} BLEU-4"


def arabic_lines() -> str:
    """text-line-recognition: the text of the nearest line of 8 x 64 pixels."""
    train, dev = table("arabic-lines", "train"), table("arabic-lines", "dev")
    found = nearest(*(pictures("arabic-lines", rows, (8, 64), "grey") for rows in (train, dev)))
    wanted = [[row["text"]] for row in dev]
    texts = [train[i]["text"] for i in found]
    return f"text of the nearest line {100 * compute(['cer'], texts, wanted, unit='character')['cer']:.1f} % wrong"


def fsdd() -> str:
    """speech-recognition: the word of the recording with the nearest mean log-mel frames of its ten tenths."""
    settings = SoundInput.model_validate({"rate": 16000, "mels": 40})

    def heard(rows: Sequence[Row], parts: int) -> Numbers:
        made = []
        for row in rows:
            samples, rate = read_sound(folder("fsdd") / row["audio"], settings)
            frames = log_mels(resample(samples, rate, settings.rate), settings)
            made.append(np.concatenate([part.mean(0) for part in np.array_split(frames, parts)]))
        return np.array(made, dtype=float)

    train, dev = table("fsdd", "train"), table("fsdd", "dev")
    told = []
    for parts in (1, 10):
        found = nearest(heard(train, parts), heard(dev, parts))
        wrong = sum(train[i]["text"] != row["text"] for i, row in zip(found, dev, strict=True)) / len(dev)
        told.append(
            f"nearest by the mean frame of {'the whole' if parts == 1 else 'each tenth'} {100 * wrong:.1f} % wrong"
        )
    return "; ".join(told)


def grid() -> str:
    """video-captioning: the sentence of the clip whose changes from frame to frame are nearest. arrow-of-time: a linear
    rule of how the brightness, and its changes, go over time."""
    train, dev = table("grid", "train"), table("grid", "dev")
    known, asked = (clips("grid", rows, 25, 8, 12) for rows in (train, dev))
    moving = [np.diff(part, axis=1).reshape(len(part), -1) for part in (known, asked)]
    texts = [train[i]["text"] for i in nearest(*moving)]
    wer = compute(["wer"], texts, [[row["text"]] for row in dev])["wer"]
    return f"sentence of the nearest clip {100 * wer:.1f} % of words wrong; {direction(known, asked)}"


def direction(known: Numbers, asked: Numbers) -> str:
    """Each clip both ways: the sign of the mean change of brightness, and of a least-squares sum of statistics."""

    def statistics(clip: Numbers) -> Numbers:
        light, change = clip.mean((1, 2)), np.diff(clip, axis=0)
        signed, size = change.mean((1, 2)), np.abs(change).mean((1, 2))
        when = np.linspace(-1, 1, len(size))
        turns = np.diff(size)
        return np.array(
            [light[-1] - light[0], (signed**3).mean(), (change**3).mean(), (when * size).mean(), (turns**3).mean()]
        )

    both = [np.array([statistics(c) for c in part] + [statistics(c[::-1]) for c in part]) for part in (known, asked)]
    forwards = [np.repeat([1.0, -1.0], len(part)) for part in (known, asked)]
    scale = both[0].std(0)
    sum_of, *_ = np.linalg.lstsq(both[0] / scale, forwards[0], rcond=None)
    simple = np.sign(both[0][:, 0] @ forwards[0]) * both[1][:, 0]
    right = [np.mean(np.sign(value) == forwards[1]) for value in (simple, both[1] / scale @ sum_of)]
    told = [f"{100 * value:.1f} %" for value in right]
    return f"direction by the sign of the mean change {told[0]}, by a sum of five statistics {told[1]} right"


def moving_shapes() -> str:
    """video-classification: where the middle of what is not background goes."""
    train, dev = table("moving-shapes", "train"), table("moving-shapes", "dev")

    def path(clip: Numbers) -> Numbers:
        far = np.abs(clip - np.median(clip, axis=0))
        weight = far / (far.sum((1, 2), keepdims=True) + 1e-9)
        y, x = (weight * np.arange(32)[:, None]).sum((1, 2)), (weight * np.arange(32)).sum((1, 2))
        return np.array([y[-1] - y[0], x[-1] - x[0]])

    known, asked = (clips("moving-shapes", rows, 6, 32, 32) for rows in (train, dev))
    paths = [np.array([path(clip) for clip in part]) for part in (known, asked)]
    found, pixels = nearest(*paths), nearest(known.reshape(len(known), -1), asked.reshape(len(asked), -1))
    way, same = (share([train[i]["label"] for i in rows], dev, "label") for rows in (found, pixels))
    return f"nearest by the way of the shape's middle {way}; nearest by pixels {same}"


RULES: dict[str, Callable[[], Any]] = {
    rule.__name__.replace("_", "-"): rule
    for rule in (
        people,
        reports,
        sets,
        tinyshakespeare,
        motions,
        tides,
        digits,
        flickr8k,
        arabic_lines,
        fsdd,
        grid,
        moving_shapes,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "data", nargs="*", choices=[*RULES, []], default=[], help="data sets (default: all that are there)"
    )
    for name in parser.parse_args().data or RULES:
        start = time.process_time()
        try:
            told = RULES[name]()
        except StopIteration:
            told = "not there"
        print(f"{name}: {told} ({time.process_time() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
