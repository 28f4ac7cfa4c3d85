"""What differs from its default: the parts that every search for settings without effect is made of."""

from __future__ import annotations

from seq2see.settings.base import CellSettings, EmbeddingSettings, Settings


def changed(settings: Settings, path: str, keys: list[str], reason: str) -> dict[str, str]:
    """Keys that differ from their default, each with the reason why that does nothing; none without a reason."""
    if not reason:
        return {}
    fields = type(settings).model_fields
    return {
        f"{path}.{key}": reason
        for key in keys
        if key in fields and getattr(settings, key) != fields[key].get_default(call_default_factory=True)
    }


def idle_cell(path: str, settings: CellSettings) -> dict[str, str]:
    found: dict[str, str] = {}
    if settings.cell == "lstm":
        found |= changed(settings, path, ["activation", "reset"], "an lstm has no such choice")
    if settings.cell == "rnn":
        found |= changed(settings, path, ["reset"], "a plain recurrent cell has no reset gate")
    return found


def idle_embedding(path: str, settings: EmbeddingSettings) -> dict[str, str]:
    keys = {"learned": ["path", "tuned"], "one-hot": ["size", "path", "tuned"], "pretrained": []}[settings.kind]
    return changed(settings, path, keys, f"a {settings.kind} embedding has no such setting")
