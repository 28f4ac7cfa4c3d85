"""An encoder from a recipe's settings, and what is asked of one that the house did not write."""

from __future__ import annotations

from typing import Any

from seq2see.embeddings import build_embedding
from seq2see.encoders.base import Encoded, Encoder, InputInfo, encoders
from seq2see.errors import UserError
from seq2see.settings.encoders import EncoderSettings, OwnEncoderSettings


def build_encoder(settings: EncoderSettings, material: InputInfo) -> Encoder:
    """The encoder of that kind, for an input of which so much is known."""
    kind: Any = encoders[settings.kind]
    if not isinstance(settings, OwnEncoderSettings):
        built: Encoder = kind.build(settings, material)
        return built
    own = settings.own
    given: dict[str, Any] = {"symbols": material.symbols, "channels": material.channels}
    if "embedding" in own.given:
        given["embedding"] = build_embedding(settings.embedding, material.symbols, vectors=material.vectors)
    known = {name: value for name, value in given.items() if name in own.given}
    made: Encoder = kind(**known, **own.values(settings.arguments))
    for name in ("size", "summary_size"):
        if not isinstance(getattr(made, name, None), int):
            raise UserError(f"encoder '{own.name}': its constructor sets no self.{name}, a whole number")
    return made


def check_encoded(name: str, encoder: Encoder, encoded: Any, column: Any) -> None:
    """Refuse what an encoder of the user's own gives for an input where it is not what it said it would give."""
    said = f"the encoder of '{name}' ({type(encoder).__name__})"
    if not isinstance(encoded, Encoded):
        raise UserError(f"{said}: read() gives an Encoded, got {type(encoded).__name__}")
    states, mask, tokens = encoded.places.states, encoded.places.mask, encoded.places.tokens
    if states.ndim != 3 or states.shape[:2] != mask.shape or states.shape[2] != encoder.size:
        raise UserError(
            f"{said}: states are (batch, places, size) with a mask (batch, places) and size {encoder.size}, "
            f"got {tuple(states.shape)} and {tuple(mask.shape)}"
        )
    if encoded.summary.shape != (len(states), encoder.summary_size):
        wanted = (len(states), encoder.summary_size)
        raise UserError(f"{said}: the summary is (batch, summary_size) = {wanted}, got {tuple(encoded.summary.shape)}")
    if encoded.places.layout.kind != encoder.layout:
        raise UserError(f"{said}: its layout is {encoder.layout}, got places that lie as {encoded.places.layout.kind}")
    if tokens is not None and [len(row) for row in tokens] != mask.sum(1).tolist():
        raise UserError(f"{said}: tokens has a text for each real place, got other numbers of texts")
    copyable = getattr(column, "copyable", None)
    if copyable is not None and copyable.ids.shape != mask.shape:
        raise UserError(f"decoder.copy_from: {said} gives other places than the symbols of '{name}', to be copied")
