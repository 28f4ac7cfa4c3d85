"""Contiguous text in lanes and chunks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from seq2see.modalities.text import TextField
from seq2see.pipeline.dataset import Stream
from seq2see.pipeline.fields import Fields
from seq2see.recipe.schema import Recipe
from seq2see.settings.columns import TextSettings
from tests.data.helpers import error_of

LINES = ["To be, or not to be:", "", "  that is  the question."]


def stream(symbols: int) -> Stream:
    return Stream(np.arange(10, 10 + symbols, dtype=np.int32))


def test_lanes_go_on_where_they_ended_and_targets_are_the_next_inputs() -> None:
    chunks = list(stream(23).chunks(bptt=4, lanes=2))
    assert [chunk.inputs.shape[1] for chunk in chunks] == [4, 4, 3]
    inputs, targets = (torch.cat([chunk[side] for chunk in chunks], 1) for side in (0, 1))
    assert targets.tolist() == [list(range(10, 21)), list(range(21, 32))]
    assert inputs[:, 1:].tolist() == targets[:, :-1].tolist()
    assert inputs[:, 0].tolist() == [2, 2], "each lane begins with <sos>"
    assert inputs.dtype == torch.int64


def test_resuming_at_a_chunk_gives_the_rest() -> None:
    whole = list(stream(100).chunks(bptt=7, lanes=3))
    assert len(whole) == stream(100).steps(bptt=7, lanes=3)
    for start in range(len(whole) + 1):
        rest = list(stream(100).chunks(bptt=7, lanes=3, start=start))
        assert len(rest) == len(whole) - start
        for one, other in zip(whole[start:], rest, strict=True):
            assert torch.equal(one.inputs, other.inputs)
            assert torch.equal(one.targets, other.targets)


def test_more_lanes_than_symbols_and_no_text_at_all() -> None:
    assert next(stream(3).chunks(bptt=5, lanes=8)).targets.shape == (3, 1)
    assert "the text is empty" in error_of(lambda: stream(0))


@pytest.mark.parametrize("tokens", ["character", "word", "symbol", "bpe"])
def test_newlines_are_symbols_whatever_the_tokens(tokens: str, tmp_path: Path) -> None:
    recipe = Recipe.model_validate({"output": {"kind": "text", "tokens": tokens}, "data": {"stream": True}})
    fields = Fields.build(recipe, lambda: ({"output": line} for line in LINES))
    field = fields.output
    assert isinstance(field, TextField)
    built = Stream.build(field, LINES)
    assert field.vocabulary.decode(built.ids).count("\n") == 3
    assert 1 not in built.ids, "everything was counted"
    text = field.decode(built.ids)
    expected = "\n".join(LINES) + "\n"
    if tokens != "character":
        expected = "\n".join(" ".join(line.split()) for line in LINES) + "\n"
    assert text == expected
    assert np.array_equal(Stream.build(field, LINES, path=tmp_path / "text").ids, built.ids)
    fields.save(tmp_path)
    again = Fields.load(tmp_path, recipe).output
    assert isinstance(again, TextField)
    assert np.array_equal(Stream.build(again, LINES).ids, built.ids)


def test_rows_of_text_have_no_newline_symbol() -> None:
    field = TextField(TextSettings(tokens="character"))
    field.build(["ab"])
    assert "\n" not in field.vocabulary
