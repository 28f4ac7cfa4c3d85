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
        load_recipe(BOTH, overrides=[one for given in overrides for one in given.split(" --set ")])
    return str(error.value)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("decoder.cell=lstm", "decoder.cell: has no effect here: only decoder.kind recurrent"),
        ("decoder.reset=before", "decoder.reset: has no effect here: only decoder.kind recurrent"),
        ("decoder.output=state", "decoder.output: has no effect here: only decoder.kind label"),
        ("attention.query=current", "attention.query: has no effect here: in a transformer each layer asks"),
        ("decoder.longest=9", "decoder.longest: has no effect here: positions sinusoidal have no limit"),
        ("encoder.longest=9", "encoder.longest: has no effect here: positions sinusoidal have no limit"),
        ("decoder.heads=5", "decoder.heads: 5 heads cannot share 64 numbers"),
        ("encoder.heads=7", "encoder.heads: 7 heads cannot share 64 numbers"),
        ("encoder.positions=learned", "inputs.source.max_length: no limit, and learned positions reach to"),
        ("decoder.positions=learned", "output.max_length: no limit, and learned positions reach to"),
        ("encoder.cell=gru", "encoder.cell: unknown key"),
        ("decoder.memory=0", "decoder.memory: should be greater than 0, got 0"),
        ("encoder.positions=rotary --set encoder.heads=64", "encoder.positions: rotary turns pairs of numbers"),
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


@pytest.mark.parametrize(("side", "longest", "allowed"), [("decoder", 0, 2), ("decoder", 1, 2), ("encoder", 0, 1)])
def test_learned_positions_that_reach_no_symbol_are_said_once(side: str, longest: int, allowed: int) -> None:
    said = refused(f"{side}.positions=learned", f"{side}.longest={longest}")
    assert said.endswith(f"{side}.longest: so few learned positions reach none; allowed: {allowed} and more")


def test_settings_of_a_transformer_mean_nothing_to_the_others() -> None:
    raw = {"inputs": {"source": {}}, "decoder": {"heads": 2}}
    with pytest.raises(UserError, match=r"decoder\.heads: has no effect here: only decoder\.kind transformer"):
        load_recipe(raw)
    with pytest.raises(UserError, match=r"decoder\.positions: has no effect here: only decoder\.kind transformer"):
        load_recipe({**raw, "output": {"kind": "label"}, "decoder": {"positions": "none"}})


def test_it_is_one_word_away() -> None:
    """What an override makes meaningless goes with it."""
    made = load_recipe("translation", overrides=["encoder.kind=transformer", "decoder.kind=transformer"])
    assert (made.encoder.kind, made.decoder.kind) == ("transformer", "transformer")
    assert "cell" not in type(made.decoder).model_fields
    assert made.encoder.size == 256
    back = load_recipe("translation-transformer", overrides=["decoder.kind=recurrent"])
    assert "heads" not in type(back.decoder).model_fields


STREAM: dict[str, Any] = {"output": {}, "data": {"stream": True}, "decoder": {"kind": "transformer"}}


def test_a_stream_has_no_beginning_to_count_from() -> None:
    made = load_recipe(STREAM)
    assert (made.decoder.positions, made.decoder.memory) == ("rotary", 256)
    assert load_recipe(made.to_dict(), complete=True) == made
    assert load_recipe(STREAM, overrides=["decoder.memory=40", "decoder.positions=none"]).decoder.memory == 40
    for positions in ("sinusoidal", "learned"):
        with pytest.raises(UserError) as raised:
            load_recipe(STREAM, overrides=[f"decoder.positions={positions}"])
        said = f"decoder.positions: {positions} ones are counted from a beginning, and a stream goes on without end"
        assert f"{said}; allowed: rotary, none" in str(raised.value)
        assert "\n" not in str(raised.value)
    rows = load_recipe({"output": {}, "decoder": {"kind": "transformer"}})
    assert (rows.attention.score, rows.decoder.positions, rows.decoder.memory) == ("none", "sinusoidal", None)
    back = load_recipe(made.to_dict(), overrides=["decoder.kind=recurrent"])
    assert back.decoder == load_recipe({**STREAM, "decoder": {}}).decoder


def test_what_was_resolved_follows_a_change_like_what_was_not_said() -> None:
    plain, stream = load_recipe("language-model"), ["data.stream=true"]
    for given in ("language-model", plain, plain.to_dict()):
        made = load_recipe(given, overrides=["decoder.kind=transformer"])
        assert (made.decoder.positions, made.decoder.memory) == ("rotary", 256)
    for given in (made, made.to_dict()):
        back = load_recipe(given, overrides=["data.stream=false"])
        assert (back.decoder.positions, back.decoder.memory) == ("sinusoidal", None)
        assert load_recipe(given, overrides=["decoder.kind=recurrent"]).decoder.kind == "recurrent"
    again = load_recipe(load_recipe(made, overrides=["data.stream=false"]), overrides=stream)
    assert again.decoder == made.decoder


def test_what_was_said_stays_whatever_is_resolved() -> None:
    said = load_recipe(STREAM, overrides=["decoder.memory=40", "decoder.positions=none", "decoder.heads=2"]).to_dict()
    rows = load_recipe(said, overrides=["data.stream=false"]).decoder
    assert (rows.memory, rows.positions, rows.heads) == (40, "none", 2)
    near = load_recipe(load_recipe(STREAM), overrides=["data.stream=false", "decoder.memory=256"]).decoder
    assert (near.memory, near.positions) == (256, "sinusoidal")
    asked = ["decoder.kind=transformer", "decoder.positions=sinusoidal"]
    with pytest.raises(UserError, match=r"decoder\.positions: sinusoidal ones are counted from a beginning"):
        load_recipe(load_recipe("language-model"), overrides=asked)
    with pytest.raises(UserError, match=r"decoder\.positions: learned ones are counted from a beginning"):
        load_recipe({**STREAM, "data": {}, "decoder": {**STREAM["decoder"], "positions": "learned"}},
                    overrides=["data.stream=true"])  # fmt: skip


def test_a_memory_keeps_what_the_decoder_is_told() -> None:
    said = refused("attention=none", "decoder.memory=9")
    assert "decoder.memory: 9 symbols back, and the summary of source joins <sos> alone" in said
    assert "allowed: attention, decoder.every_step, or none given (null)" in said
    assert "\n" not in said
    for change in ("decoder.start=source", "attention=none --set decoder.every_step=source"):
        changes = [*change.split(" --set "), "decoder.memory=9"]
        assert load_recipe(BOTH, overrides=changes).decoder.memory == 9
    assert load_recipe(BOTH, overrides=["attention=none", "decoder.memory=null"]).decoder.start == ["source"]


LABEL: dict[str, Any] = {"inputs": {"source": {}}, "output": {"kind": "label"}, "decoder": {"kind": "transformer"}}


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("decoder.heads=2", "decoder.heads: has no effect here: a label is decoded in one step"),
        ("decoder.memory=9", "decoder.memory: has no effect here: a label is decoded in one step"),
        ("decoder.positions=rotary", "decoder.positions: has no effect here: a label is decoded in one step"),
        ("decoder.embedding.size=9", "decoder.embedding: has no effect here: a label is decoded in one step"),
        ("decoder.every_step=source", "decoder.every_step: has no effect here: there is one step"),
        ("decoder.cell=lstm", "decoder.cell: has no effect here: only decoder.kind recurrent"),
        ("decoder.output=state", "decoder.output: has no effect here: only decoder.kind label"),
        ("attention.query=current", "attention.query: has no effect here: a label is decoded in one step"),
    ],
)
def test_a_label_is_given_by_layers_that_have_nothing_before_them(override: str, said: str) -> None:
    assert load_recipe(LABEL, overrides=["decoder.layers=2", "decoder.feedforward=64"]).decoder.kind == "transformer"
    with pytest.raises(UserError) as raised:
        load_recipe(LABEL, overrides=[override])
    assert said in str(raised.value)


def test_numbers_are_not_given_by_a_transformer() -> None:
    with pytest.raises(UserError, match=r"decoder\.kind: transformer cannot write an output of kind vector"):
        load_recipe("autoencoder", overrides=["decoder.kind=transformer"])


def test_without_attention_the_decoder_starts_from_the_summary() -> None:
    assert load_recipe(BOTH, overrides=["attention=none"]).decoder.start == ["source"]
