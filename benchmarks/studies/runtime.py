"""seq2see-runtime beside the model it was exported from: speed, first answer, memory, size.

    python benchmarks/studies/runtime.py MODEL --data LINES [--references LINES] [--shortlist TABLE]

In one run: the model exported in single precision, in 8 bits, and in 8 bits with a shortlist, decodes the same rows in
turns with torch; what that costs in BLEU on all rows; then the runtime is installed alone into a new environment, where
a first answer is timed from a cold start.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from pathlib import Path
from typing import Any

import sacrebleu

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
sys.path.insert(0, str(RUNTIME))
SETTINGS = {
    "greedy, batch 64": (64, 1),
    "beam 5, batch 64": (64, 5),
    "greedy, batch 1": (1, 1),
    "beam 5, batch 1": (1, 5),
}
COLD = """
import sys
import seq2see_runtime
text = seq2see_runtime.load(sys.argv[1]).predict(sys.argv[2]).answer
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024)
"""


def decode(model: str, folders: dict[str, Path], lines: list[str], options: argparse.Namespace) -> None:
    """Sentences per second of each engine, medians of rounds in turns, and how often outputs are the model's."""
    import torch
    from seq2see_runtime import load

    import seq2see
    from seq2see.search import options as search_options

    torch.set_num_threads(options.threads)
    engines: dict[str, Any] = {"torch": seq2see.load(model)}
    engines |= {name: load(folder, threads=options.threads) for name, folder in folders.items()}
    over = " | ".join(f"{name} over torch" for name in folders)
    print(f"| rows per second | {' | '.join(engines)} | {over} | equal outputs |")
    print("|---" * (2 * len(engines) + 1) + "|")
    for title, (batch, beam) in SETTINGS.items():
        search_options.BATCH_ROWS, search_options.BATCH_TOKENS = batch, 1_000_000
        rows = lines[: options.rows if batch > 1 else options.single]
        speeds: dict[str, list[float]] = {name: [] for name in engines}
        outputs: dict[str, list[str]] = {}
        for number in range(options.rounds + 1):  # the first one warms up
            for name, engine in engines.items():
                began = time.perf_counter()
                outputs[name] = [each.text for each in engine.predict(rows, beam=beam, n_best=1)]
                if number:
                    speeds[name].append(len(rows) / (time.perf_counter() - began))
        median = {name: statistics.median(each) for name, each in speeds.items()}
        ratios = [
            f"{median[name] / median['torch']:.2f} x ({min(single):.2f}-{max(single):.2f})"
            for name in folders
            if (single := [mine / theirs for mine, theirs in zip(speeds[name], speeds["torch"], strict=True)])
        ]
        equal = ", ".join(
            f"{sum(mine == theirs for mine, theirs in zip(outputs[name], outputs['torch'], strict=True))}/{len(rows)}"
            for name in folders
        )
        cells = [f"{median[name]:.1f}" for name in engines]
        print(f"| {title} | {' | '.join([*cells, *ratios, equal])} |", flush=True)
    if options.references is not None:
        search_options.BATCH_ROWS = 64
        references = options.references.read_text(encoding="utf-8").splitlines()
        for beam in (1, 5):
            for name, engine in engines.items():
                texts = [each.text for each in engine.predict(lines, beam=beam, n_best=1)]
                bleu = sacrebleu.corpus_bleu(texts, [references], tokenize="none", force=True).score
                print(f"BLEU of {len(lines)} rows, beam {beam}, {name}: {bleu:.2f}", flush=True)


def install(folder: Path) -> tuple[Path, float]:
    """(the python of a new environment with the runtime alone, megabytes of what was installed)."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")],
        cwd=RUNTIME,
        check=True,
        capture_output=True,
    )
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    before = size_of(folder / "env")
    (wheel,) = (folder / "dist").glob("*.whl")
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True, capture_output=True)
    return python, size_of(folder / "env") - before


def size_of(folder: Path) -> float:
    """Megabytes, modules that Python compiled included."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def first_answers(python: Path, folders: dict[str, Path], line: str, rounds: int) -> None:
    """Seconds from the start of Python to the first answer, and peak resident memory."""
    for name, folder in folders.items():
        seconds, memory = [], 0.0
        for _ in range(rounds):
            began = time.perf_counter()
            done = subprocess.run([python, "-c", COLD, str(folder), line], check=True, capture_output=True, text=True)
            seconds.append(time.perf_counter() - began)
            memory = float(done.stdout)
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        print(f"{name}: first answer after {statistics.median(seconds):.2f} s ({spread}), {memory:.0f} MB resident")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a trained model that reads one text")
    parser.add_argument("--data", type=Path, required=True, help="text file of inputs, one in each line")
    parser.add_argument("--references", type=Path, help="the right outputs, split into words as the model's are")
    parser.add_argument("--shortlist", help="the training table")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=192)
    parser.add_argument("--single", type=int, default=24, help="rows that are decoded one by one")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = options.data.read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        import seq2see
        from seq2see.export.onnx import export

        model = seq2see.load(options.model)
        names = ["runtime", "int8", *([] if options.shortlist is None else ["int8, shortlist"])]
        folders = {name: folder / name for name in names}
        for name, out in folders.items():
            pairs = model.rows_of(options.shortlist) if "shortlist" in name else None
            export(model.bundle, out, int8="int8" in name, pairs=pairs)
            print(f"{name}: {size_of(out):.1f} MB")
        decode(options.model, folders, lines, options)
        python, installed = install(folder)
        print(f"installed: {installed:.0f} MB")
        first_answers(python, folders, lines[0], options.rounds)


if __name__ == "__main__":
    main()
