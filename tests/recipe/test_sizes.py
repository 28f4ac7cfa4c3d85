"""Sizes a recipe promises are those its parts have."""

from __future__ import annotations

import pytest

from seq2see.encoders import encoders
from seq2see.encoders.recurrent import RecurrentEncoderSettings


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("layers", [1, 2])
def test_an_encoder_is_as_large_as_its_settings_say(bidirectional: bool, layers: int) -> None:
    settings = RecurrentEncoderSettings(size=3, layers=layers, bidirectional=bidirectional)
    built = encoders[settings.kind](settings, symbols=5)
    assert (built.size, built.summary_size) == (settings.places_size, settings.summary_size)
