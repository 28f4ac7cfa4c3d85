"""The recipe's own `encoder` where no input is read by it: what of it does nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seq2see.settings.base import Settings
from seq2see.settings.encoders import EncoderSettings, RecurrentEncoderSettings


def unused_encoder(settings: EncoderSettings, own: Mapping[str, EncoderSettings]) -> dict[str, str]:
    """{path: reason} of its settings that differ from their defaults; own: the inputs' own encoders, by their paths.

    Those of the same kind have taken from it what they do not say themselves (`resolve.inherited`): what one of them
    has too did something.
    """
    others = list(own.values())
    reason = f"every input has an encoder of its own ({', '.join(own)})" if own else "there are no inputs"
    alike = [one for one in others if type(one) is type(settings) and one.kind == settings.kind]
    if not alike and settings.kind != RecurrentEncoderSettings().kind:
        return {"encoder": f"{reason}, so that nothing is read by a {settings.kind} one"}
    return dict.fromkeys(_differing("encoder", settings, alike), reason)


def _differing(path: str, settings: Settings, others: Sequence[Settings]) -> list[str]:
    found = []
    for key, info in type(settings).model_fields.items():
        value, theirs = getattr(settings, key), [getattr(one, key) for one in others]
        if isinstance(value, Settings):
            alike = [one for one in theirs if isinstance(one, type(value))]
            found += _differing(f"{path}.{key}", value, alike)
        elif value != info.get_default(call_default_factory=True) and value not in theirs:
            found.append(f"{path}.{key}")
    return found
