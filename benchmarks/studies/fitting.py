"""Whether `auto` fits: it beside other sizes, dropouts, epochs, batches and rates, on tables of 100 to 100,000 rows.

Every arm changes one setting of a recipe that is `auto` throughout; what depends on it (the moving average) follows.
Rows are drawn from a data set's train, smaller tables being parts of larger ones; dev is the same for all sizes of a
data set. Arms that were measured already (same --log) are not run again, so a study can be stopped and continued.

SEQ2SEE_DATA=data OMP_NUM_THREADS=1 python benchmarks/studies/fitting.py sigmorphon2020/fre:300 cmudict:1000 \
    --arms auto,size/2,size*2,dropout-0.15,dropout+0.15,epochs/2,epochs*2 --log fitting.jsonl
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import seq2see

AUTO = [
    *(f"{part}.{key}=auto" for part in ("encoder", "decoder") for key in ("size", "dropout", "embedding.size")),
    "attention.size=auto",
    *(f"training.{key}=auto" for key in ("learning_rate", "batch_tokens", "epochs", "ema")),
    *("training.average=1", "training.patience=0", "training.schedule=cosine"),
]
RECIPES = {"dakshina-hi": "transliteration", "multi30k": "translation"}
"""Others are grapheme-to-phoneme."""
SIZES = ("encoder.size", "decoder.size", "encoder.embedding.size", "decoder.embedding.size", "attention.size")
DROPOUTS = ("encoder.dropout", "decoder.dropout")
KEYS = {
    "size": SIZES,
    "dropout": DROPOUTS,
    "epochs": ("training.epochs",),
    "batch": ("training.batch_tokens",),
    "rate": ("training.learning_rate",),
}


def at(recipe: dict[str, Any], path: str) -> Any:
    for key in path.split("."):
        recipe = recipe[key]
    return recipe


def changes(arm: str, fitted: dict[str, Any]) -> list[str]:
    """The overrides of an arm: `size/2`, `dropout+0.15`, `epochs*2` change what `auto` became, `fixed` is the recipe as
    shipped."""
    if arm in ("auto", "fixed"):
        return []
    name = next(key for key in KEYS if arm.startswith(key))
    by, amount = arm[len(name)], float(arm[len(name) + 1 :])
    overrides = []
    for path in KEYS[name]:
        value = at(fitted, path)
        new = {"*": value * amount, "/": value / amount, "+": value + amount, "-": value - amount}[by]
        overrides.append(f"{path}={max(round(new, 4), 0.0) if isinstance(value, float) else round(new)}")
    return overrides


def tables(name: str, rows: int, folder: Path, *, most_dev: int, seed: int) -> tuple[Path, Path]:
    """(train, dev) of a data set below SEQ2SEE_DATA, or of one of its languages (sigmorphon2020/fre)."""
    path = Path(os.environ["SEQ2SEE_DATA"], name)
    paths = [path / "train.tsv", path / "dev.tsv"]
    if not path.is_dir():
        paths = [path.with_name(f"{path.name}.{part}.tsv") for part in ("train", "dev")]
    written = []
    for source, number in zip(paths, (rows, most_dev), strict=True):
        header, *lines = source.read_text("utf-8").splitlines()
        random.Random(seed).shuffle(lines)
        target = folder / f"{name.replace('/', '-')}-{number}-{source.stem}.tsv"
        target.write_text("\n".join([header, *lines[:number]]) + "\n", "utf-8")
        written.append(target)
    return written[0], written[1]


def measure(name: str, rows: int, arm: str, fitted: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    recipe = RECIPES.get(name, "grapheme-to-phoneme")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        train, dev = tables(name, rows, folder, most_dev=options.dev_rows, seed=1)
        start = time.process_time()
        model = seq2see.train(
            recipe,
            train,
            dev=dev,
            out=folder / "run",
            overrides=[*(AUTO if arm != "fixed" else []), *changes(arm, fitted), f"training.minutes={options.minutes}"],
            seed=options.seed,
            listeners=[],
        )
        seconds = time.process_time() - start
        metrics = model.evaluate(dev).metrics
    kept = {path: at(model.recipe.to_dict(), path) for path in (*SIZES, *DROPOUTS, *KEYS["epochs"], *KEYS["batch"])}
    figures = {key: round(float(value), 4) for key, value in metrics.items() if key in ("exact", "cer", "bleu")}
    facts = {"data": name, "rows": rows, "arm": arm, "seed": options.seed, "minutes": options.minutes}
    return {**facts, **figures, "seconds": round(seconds), "recipe": model.recipe.to_dict(), "settings": kept}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", help="DATA:ROWS")
    parser.add_argument("--arms", default="auto,size/2,size*2,dropout-0.15,dropout+0.15,epochs/2,epochs*2")
    parser.add_argument("--dev-rows", type=int, default=450)
    parser.add_argument("--minutes", type=float, default=30.0, help="limit of each run, by the clock")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True, help="JSON lines; runs in it are not repeated")
    options = parser.parse_args()
    done: dict[tuple[Any, ...], dict[str, Any]] = {}
    if options.log.exists():
        for line in options.log.read_text("utf-8").splitlines():
            row = json.loads(line)
            done[row["data"], row["rows"], row["arm"], row["seed"]] = row
    arms = options.arms.split(",")
    for table in options.tables:
        name, _, number = table.partition(":")
        rows, cells = int(number), []
        for arm in arms:
            key = (name, rows, arm, options.seed)
            if key not in done:
                auto = done.get((name, rows, "auto", options.seed))
                done[key] = measure(name, rows, arm, auto["recipe"] if auto else {}, options)
                with options.log.open("a", encoding="utf-8") as log:
                    log.write(json.dumps(done[key], ensure_ascii=False) + "\n")
            figures = done[key]
            figure = f"{100 * (1 - figures['exact']):.1f} %" if "exact" in figures else f"{figures['bleu']:.1f} BLEU"
            cells.append(f"{arm} {figure} ({figures['seconds']} s)")
        print(f"{table}: whole outputs wrong, or BLEU: " + "; ".join(cells), flush=True)


if __name__ == "__main__":
    main()
