"""How long an output a model can write at all: learned positions end, and a trained model learns no more of them."""

from __future__ import annotations

from seq2see.errors import UserError
from seq2see.recipe import Recipe


def check_reach(recipe: Recipe, length: int, said: str) -> None:
    """Refuse, before anything is written, an output of so many symbols (`<eos>` counted) that positions do not reach.

    said: what asks for it, as the user knows it.
    """
    decoder = recipe.decoder
    if recipe.output.one_step or decoder.kind != "transformer" or decoder.positions != "learned":
        return
    if length > decoder.longest:
        most = decoder.longest
        raise UserError(f"{said}: the model has learned {most} positions and none behind them; allowed: at most {most}")
