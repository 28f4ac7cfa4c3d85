"""Two processes that share every batch, beside one process: the speed of a shipped recipe, and how far the weights are
from each other.

Each way trains the same updates of `seq2see train RECIPE` on the same rows; the speed is that of the updates alone, by
the `update_seconds` of the last checkpoint. The ways run in turns, and the best round of each counts.

    python benchmarks/distributed.py --recipe grapheme-to-phoneme --data cmudict.tsv
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

WAYS = {"1 process, 1 thread": (1, 1), "1 process, 2 threads": (1, 2), "2 processes, 1 thread each": (2, 1)}
PLAIN = ("encoder.dropout=0", "encoder.embedding.dropout=0", "decoder.dropout=0", "decoder.embedding.dropout=0")
"""Without dropout the ways learn the same, and their weights can be compared."""


def train(recipe: str, data: str, folder: Path, *, processes: int, threads: int, updates: int, batch: int) -> None:
    launch = (
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)] if processes > 1 else []
    )
    settings = [*PLAIN, "training.film=0", "training.dev_rows=20", f"training.report_every={updates}"]
    settings += [f"training.batch_tokens={batch}", "training.checkpoint_seconds=0", "training.patience=0"]
    command = [sys.executable, *launch, "-m", "seq2see", "train", recipe, "--data", data, "--out", str(folder)]
    command += ["--updates", str(updates), "--overwrite", *(word for key in settings for word in ("--set", key))]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)


def main() -> None:
    from seq2see.training.checkpoints import Checkpoint, latest_checkpoint

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="grapheme-to-phoneme")
    parser.add_argument("--data", required=True)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--batch", type=int, nargs="+", default=[1500, 12000], help="training.batch_tokens")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    print("batch_tokens  way                         updates/s  beside the first  largest difference of a weight")
    for batch in args.batch:
        best: dict[str, float] = {}
        last: dict[str, Checkpoint] = {}
        with tempfile.TemporaryDirectory() as base:
            for _ in range(args.rounds):
                for way, (processes, threads) in WAYS.items():
                    folder = Path(base) / way.replace(" ", "-")
                    how = {"processes": processes, "threads": threads, "updates": args.updates, "batch": batch}
                    train(args.recipe, args.data, folder, **how)
                    checkpoint = latest_checkpoint(folder / "checkpoints")
                    assert checkpoint is not None
                    last[way] = checkpoint
                    best[way] = max(best.get(way, 0.0), checkpoint.state.updates / checkpoint.state.update_seconds)
        first = next(iter(WAYS))
        for way in WAYS:
            one, other = last[first].weights, last[way].weights
            apart = max(float((one[name].double() - other[name].double()).abs().max()) for name in one)
            print(f"{batch:<12}  {way:<26}  {best[way]:9.1f}  {best[way] / best[first]:16.2f}  {apart:.1e}")


if __name__ == "__main__":
    main()
