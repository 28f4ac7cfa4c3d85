"""What a decoding loop costs, forwards and backwards: linear in the output's length and in places, and with local
attention its window alone: 5,000 places beside 500. `--picture FILE` measures more lengths and draws them.

What is measured is the loop. Excluded is what happens once per input and grows with it whatever looks at it: the
encoder, the keys, and on the way back writing down the gradient of keys and values, which is as large as they are. The
last two are given beside it. Times are processor seconds. Memory is what the loop keeps for its way back: bytes of the
tensors that autograd saves, each storage once, keys and values themselves excluded.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from _timing import least
from torch import Tensor

from seq2see.attention import Prepared
from seq2see.attention.build import AttentionSettings
from seq2see.decoders import Conditions, Ready, RecurrentDecoder
from seq2see.decoders.base import DecoderSettings
from seq2see.embeddings import build_embedding
from seq2see.memory import Memory, Places, View

ROWS, SIZE, STEPS, SYMBOLS = 8, 256, 50, 50
FEW, MANY = 500, 5000
LIMIT = 1.2
SCOPES: dict[str, dict[str, object]] = {
    "local-monotonic": {"scope": "local-monotonic", "window": 5},
    "local-predicted": {"scope": "local-predicted", "window": 5},
    "local-predicted, 4 heads": {"scope": "local-predicted", "window": 5, "heads": 4, "score": "scaled-dot"},
    "local-monotonic, hard": {"scope": "local-monotonic", "window": 5, "choice": "hard"},
    "local-predicted, coverage": {"scope": "local-predicted", "window": 5, "score": "coverage"},
    "local-predicted, coverage, 4 heads": {"scope": "local-predicted", "window": 5, "score": "coverage", "heads": 4},
    "global": {},
}
PLACES, LENGTHS = (250, 500, 1000, 2000, 3500, 5000), (25, 50, 100, 200, 400)
DRAWN = {"global": "global", "local-monotonic": "local, window at t", "local-predicted": "local, window predicted"}


def random_tokens(steps: int = STEPS) -> Tensor:
    return torch.randint(0, SYMBOLS, (ROWS, steps))


def decoder(attention: dict[str, object]) -> RecurrentDecoder:
    torch.manual_seed(1)
    settings = DecoderSettings(size=SIZE)
    conditions = Conditions(build_embedding(settings.embedding, SYMBOLS), looks={"source": View(SIZE)})
    return RecurrentDecoder(settings, AttentionSettings.model_validate(attention), conditions)


def prepared(made: RecurrentDecoder, places: int) -> Ready:
    """Keys and values as leaves: what made them is not part of the loop."""
    states = torch.randn(ROWS, places, SIZE)
    memory = Memory({"source": Places(states, torch.ones(ROWS, places, dtype=torch.bool))})
    ready = made.prepare(memory)
    whole = ready.looks["source"]
    keys, values = (part.detach().requires_grad_() for part in (whole.keys, whole.values))
    ready.looks["source"] = Prepared.of(keys, values, whole.places)
    return ready


def loop(made: RecurrentDecoder, ready: Ready, *, whole: bool, steps: int = STEPS) -> Callable[[], None]:
    """The steps and their way back to the weights and windows; `whole`: on to the gradient of keys and values."""
    weights, tokens = list(made.parameters()), random_tokens(steps)

    def run() -> None:
        look = ready.looks["source"] = _fresh(ready.looks["source"])
        loss = made.teach(ready, made.begin(ready), tokens).features.square().sum()
        inner = look if look.folded is None else look.folded
        sources = [look.keys, look.values] if whole else [inner.key_gather.anchor, inner.value_gather.anchor]
        torch.autograd.grad(loss, [*weights, *sources], allow_unused=True)

    return run


def _fresh(look: Prepared) -> Prepared:
    return Prepared.of(look.keys, look.values, look.places)


def kept(made: RecurrentDecoder, ready: Ready, *, steps: int = STEPS) -> int:
    """Bytes saved for the way back."""
    tokens = random_tokens(steps)
    storages: dict[int, int] = {}
    look = ready.looks["source"]
    given = {part.untyped_storage().data_ptr() for part in (look.keys, look.values, look.mask, *made.parameters())}

    def save(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in given:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        step = made.teach(ready, made.begin(ready), tokens)
        total = sum(storages.values())
        del step
    return total


def preparing(made: RecurrentDecoder, places: int) -> Callable[[], None]:
    memory = Memory({"source": Places(torch.randn(ROWS, places, SIZE), torch.ones(ROWS, places, dtype=torch.bool))})

    def run() -> None:
        made.prepare(memory)

    return run


def beside(few: float, many: float, *, unit: str, limit: bool = False) -> str:
    return f"{few:8.1f} {unit} {many:8.1f} {unit}: {many / few:5.2f} x" + (f" (limit: {LIMIT})" if limit else "")


def compare() -> None:
    """5,000 places beside 500, for all scopes."""
    print(f"{STEPS} steps of {ROWS} rows, size {SIZE}, forwards and backwards; {FEW:,} and {MANY:,} places")
    for name, attention in SCOPES.items():
        made, local = decoder(attention), name != "global"
        few, many = prepared(made, FEW), prepared(made, MANY)
        ways = {"few": loop(made, few, whole=not local), "many": loop(made, many, whole=not local)}
        ways |= (
            {"few, whole": loop(made, few, whole=True), "many, whole": loop(made, many, whole=True)} if local else {}
        )
        seconds = least(ways, rounds=5 if local else 2)
        ready = least({"few": preparing(made, FEW), "many": preparing(made, MANY)}, rounds=2)
        print(f"{name}:")
        print("  time  ", beside(1e3 * seconds["few"], 1e3 * seconds["many"], unit="ms", limit=local))
        print("  memory", beside(kept(made, few) / 2**20, kept(made, many) / 2**20, unit="MB", limit=local))
        if local:
            print("  time with the gradient of keys and values", end=" ")
            print(beside(1e3 * seconds["few, whole"], 1e3 * seconds["many, whole"], unit="ms"))
        print("  the keys themselves", beside(1e3 * ready["few"], 1e3 * ready["many"], unit="ms"))


# ---------------------------------------------------------------- The picture

Curve = tuple[list[float], list[float]]
"""Milliseconds and megabytes, of a step (against places) or of all steps (against their number)."""


def by_places(scope: str) -> Curve:
    made, local = decoder(SCOPES[scope]), scope != "global"
    ready = {places: prepared(made, places) for places in PLACES}
    ways = {str(places): loop(made, ready[places], whole=not local, steps=20) for places in PLACES}
    seconds = least(ways, rounds=3)
    return (
        [1e3 * seconds[str(places)] / 20 for places in PLACES],
        [kept(made, ready[places], steps=20) / 20 / 2**20 for places in PLACES],
    )


def by_length(scope: str) -> Curve:
    made, local = decoder(SCOPES[scope]), scope != "global"
    ready = prepared(made, FEW)
    ways = {str(steps): loop(made, ready, whole=not local, steps=steps) for steps in LENGTHS}
    seconds = least(ways, rounds=3)
    return [1e3 * seconds[str(steps)] for steps in LENGTHS], [kept(made, ready, steps=n) / 2**20 for n in LENGTHS]


def exponent(numbers: Sequence[float], costs: Sequence[float]) -> float:
    """k in cost = c n ** k, by least squares over logarithms: 1 is linear, 0 flat."""
    return round(float(np.polyfit(np.log(numbers), np.log(costs), 1)[0]), 2)


def draw(path: Path) -> None:
    """Time and memory against places and against the output's length, with their exponents."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plans = {
        ("places of the input", "per step"): (PLACES, {scope: by_places(scope) for scope in DRAWN}),
        (f"symbols of the output ({FEW} places)", "in all"): (LENGTHS, {scope: by_length(scope) for scope in DRAWN}),
    }
    colours = dict(zip(DRAWN, ("#c1440e", "#1f6f8b", "#3a9d5d"), strict=True))
    styles = dict(zip(DRAWN, ("o-", "s-", "D--"), strict=True))
    figure, axes = pyplot.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for row, ((across, what), (numbers, curves)) in zip(axes, plans.items(), strict=True):
        for axis, part, unit in zip(row, (0, 1), ("milliseconds", "megabytes kept"), strict=True):
            for scope, curve in curves.items():
                power = exponent(numbers, curve[part])
                label = f"{DRAWN[scope]}: $n^{{{power + 0.0:.2f}}}$"
                axis.plot(numbers, curve[part], styles[scope], ms=6, lw=1.8, color=colours[scope], label=label)
                print(f"{across}, {unit} {what}, {scope}: exponent {power:.2f}", *(f"{x:.3g}" for x in curve[part]))
            axis.set(xlabel=across, ylabel=f"{unit} {what}", xlim=(0, None), ylim=(0, None))
            axis.xaxis.set_major_formatter("{x:,.0f}")
            axis.spines[["top", "right"]].set_visible(False)
            axis.grid(alpha=0.25)
            axis.legend(frameon=False, fontsize=9)
    figure.suptitle(f"A decoding loop, forwards and backwards: cost ~ $n^k$ ({ROWS} rows, size {SIZE}, one thread)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="draw costs against places and lengths instead")
    options = parser.parse_args()
    if options.picture is None:
        compare()
    else:
        draw(options.picture)
