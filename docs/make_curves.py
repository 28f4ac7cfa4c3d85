"""Learning curves of finished runs, for docs/results.md: `python docs/make_curves.py runs/cmudict=exact`."""

from __future__ import annotations

import sys
from pathlib import Path

from seq2see.seeing import learning_curve

PICTURES = Path(__file__).parent / "pictures"


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    for given in sys.argv[1:]:
        folder, _, metric = given.partition("=")
        name = Path(folder).name
        learning_curve(
            Path(folder) / "metrics.jsonl",
            measure=f"dev.{metric}",
            against="epoch",
            title=f"{name}: {metric} on dev",
            path=PICTURES / f"curve-{name}.png",
        )


if __name__ == "__main__":
    main()
