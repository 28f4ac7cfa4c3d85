"""Settings for tests that try many kinds with the same values."""

from __future__ import annotations

from typing import Any

from seq2see.attention.build import AttentionSettings


def attention_of(**values: Any) -> AttentionSettings:
    """Settings of attention with those of the values that its score, scope and choice have."""
    chosen, _ = AttentionSettings.choose(values)
    return chosen.model_validate({key: value for key, value in values.items() if key in chosen.known_keys()})
