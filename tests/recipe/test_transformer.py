"""What a recipe may say of a Transformer, and what it is told when that has no meaning."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.errors import UserError
from seq2see.recipe import load_recipe

BOTH: dict[str, Any] = {
    "inputs": {"source": {}},
    "encoder": {"kind": "transformer", "size": 64},
    "decoder": {"kind": "transformer", "size": 64},
}


def refused(*overrides: str) -> str:
    with pytest.raises(UserError) as error:
        load_recipe(BOTH, overrides=overrides)
    return str(error.value)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("decoder.cell=lstm", "decoder.cell: has no effect here: a transformer has no cell"),
        ("decoder.reset=before", "decoder.reset: has no effect here: a transformer has no cell"),
        ("decoder.output=state", "decoder.output: has no effect here: the output layer of a transformer sees s_t"),
        ("attention.query=current", "attention.query: has no effect here: in a transformer each layer asks"),
        ("decoder.longest=9", "decoder.longest: has no effect here: positions sinusoidal have no limit"),
        ("encoder.longest=9", "encoder.longest: has no effect here: positions sinusoidal have no limit"),
        ("decoder.heads=5", "decoder.heads: 5 heads cannot share 64 numbers"),
        ("encoder.heads=7", "encoder.heads: 7 heads cannot share 64 numbers"),
        ("encoder.positions=learned", "inputs.source.max_length: no limit, and learned positions have one"),
        ("decoder.positions=learned", "output.max_length: no limit, and learned positions have one"),
        ("encoder.cell=gru", "encoder.cell: unknown key"),
    ],
)
def test_what_has_no_meaning_is_refused(override: str, said: str) -> None:
    assert said in refused(override)


def test_learned_positions_reach_as_far_as_the_texts() -> None:
    learned = ["encoder.positions=learned", "decoder.positions=learned", "decoder.longest=50", "search.max_length=50"]
    lengths = ["inputs.source.max_length=512", "output.max_length=49"]
    assert load_recipe(BOTH, overrides=[*learned, *lengths]).decoder.longest == 50
    assert "output.max_length: 50, and learned" in refused(*learned, lengths[0], "output.max_length=50")
    said = refused(*learned[:3], *lengths, "search.max_length=51")
    assert "search.max_length: 51 is more than decoder.longest 50" in said


def test_settings_of_a_transformer_mean_nothing_to_the_others() -> None:
    raw = {"inputs": {"source": {}}, "decoder": {"heads": 2}}
    with pytest.raises(UserError, match=r"decoder\.heads: has no effect here: only a transformer"):
        load_recipe(raw)
    with pytest.raises(UserError, match=r"decoder\.positions: has no effect here: a label decoder"):
        load_recipe({**raw, "output": {"kind": "label"}, "decoder": {"positions": "none"}})


def test_it_is_one_word_away() -> None:
    """What an override makes meaningless goes with it."""
    made = load_recipe("translation", overrides=["encoder.kind=transformer", "decoder.kind=transformer"])
    assert (made.encoder.kind, made.decoder.kind, made.decoder.cell) == ("transformer", "transformer", "gru")
    assert made.encoder.size == 256
    back = load_recipe("translation-transformer", overrides=["decoder.kind=recurrent"])
    assert back.decoder.heads == 4


def test_a_stream_has_no_beginning_to_look_back_at() -> None:
    with pytest.raises(UserError, match=r"data\.stream: a transformer looks back at all it has read"):
        load_recipe({"output": {}, "data": {"stream": True}, "decoder": {"kind": "transformer"}})
    assert load_recipe({"output": {}, "decoder": {"kind": "transformer"}}).attention.score == "none"


def test_without_attention_the_decoder_starts_from_the_summary() -> None:
    assert load_recipe(BOTH, overrides=["attention=none"]).decoder.start == ["source"]
