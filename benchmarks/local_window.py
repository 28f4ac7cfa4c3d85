"""Local attention costs its window: a decoding loop forwards and backwards over 5,000 places beside 500.

What is measured is the loop. Excluded is what happens once per input and grows with it whatever looks at it: the
encoder, the keys, and on the way back writing down the gradient of keys and values, which is as large as they are. The
last two are given beside it. Times are processor seconds. Memory is what the loop keeps for its way back: bytes of the
tensors that autograd saves, each storage once, keys and values themselves excluded.
"""

from __future__ import annotations

from collections.abc import Callable

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
tokens = torch.randint(0, SYMBOLS, (ROWS, STEPS))


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


def loop(made: RecurrentDecoder, ready: Ready, *, whole: bool) -> Callable[[], None]:
    """The steps and their way back to the weights and windows; `whole`: on to the gradient of keys and values."""
    weights = list(made.parameters())

    def run() -> None:
        look = ready.looks["source"] = _fresh(ready.looks["source"])
        loss = made.teach(ready, made.begin(ready), tokens).features.square().sum()
        inner = look if look.folded is None else look.folded
        sources = [look.keys, look.values] if whole else [inner.key_gather.anchor, inner.value_gather.anchor]
        torch.autograd.grad(loss, [*weights, *sources], allow_unused=True)

    return run


def _fresh(look: Prepared) -> Prepared:
    return Prepared.of(look.keys, look.values, look.places)


def kept(made: RecurrentDecoder, ready: Ready) -> int:
    """Bytes saved for the way back."""
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


print(f"{STEPS} steps of {ROWS} rows, size {SIZE}, forwards and backwards; {FEW:,} and {MANY:,} places")
for name, attention in SCOPES.items():
    made, local = decoder(attention), name != "global"
    few, many = prepared(made, FEW), prepared(made, MANY)
    ways = {"few": loop(made, few, whole=not local), "many": loop(made, many, whole=not local)}
    ways |= {"few, whole": loop(made, few, whole=True), "many, whole": loop(made, many, whole=True)} if local else {}
    seconds = least(ways, rounds=5 if local else 2)
    ready = least({"few": preparing(made, FEW), "many": preparing(made, MANY)}, rounds=2)
    print(f"{name}:")
    print("  time  ", beside(1e3 * seconds["few"], 1e3 * seconds["many"], unit="ms", limit=local))
    print("  memory", beside(kept(made, few) / 2**20, kept(made, many) / 2**20, unit="MB", limit=local))
    if local:
        print("  time with the gradient of keys and values", end=" ")
        print(beside(1e3 * seconds["few, whole"], 1e3 * seconds["many, whole"], unit="ms"))
    print("  the keys themselves", beside(1e3 * ready["few"], 1e3 * ready["many"], unit="ms"))
