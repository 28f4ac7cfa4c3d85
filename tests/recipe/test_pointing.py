"""Copying and alignments are refused where they cannot work, each with its key, its value and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from seq2see.recipe.load import notes

COPIED: dict[str, Any] = {"decoder": {"copy_from": "source"}}
NESTED: dict[str, Any] = {"encoder": {"kind": "hierarchical"}, **COPIED}
COPYING: dict[str, Any] = {"inputs": {"source": {}}, **COPIED}
LINKED: dict[str, Any] = {"inputs": {"source": {}}, "loss": {"alignment": {"column": "links"}}}
LABEL: dict[str, Any] = {"output": {"kind": "label"}}
TWO: dict[str, Any] = {"inputs": {"source": {}, "hint": {}}, "decoder": {"start": "hint", "copy_from": "hint"}}


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ({**COPYING, "attention": "none"}, "decoder.copy_from: has no effect here: without attention no place"),
        ({**COPYING, **LABEL}, "decoder.copy_from: has no effect here: only decoder.kind recurrent, transformer"),
        (
            {"inputs": {"source": {"kind": "texts"}}, "attention": {"over": "source"}, **NESTED},
            "decoder.copy_from: has no effect here: its words are not looked at .attention.over=source.words",
        ),
        ({**COPYING, "decoder": {"copy_from": "sauce"}}, r"there is no input 'sauce' \(did you mean 'source'\?\)"),
        ({**TWO, "attention": {"over": "source"}}, "'hint' is no text that is looked at; allowed: source, none"),
        ({**COPYING, "output": {"tokens": "character"}}, "tokens are word in source and character in the output"),
        (
            {**COPYING, "inputs": {"source": {"tokens": "bpe"}}, "output": {"tokens": "bpe"}},
            "only where they are shared; set output.share=source",
        ),
        ({**LINKED, "attention": "none"}, "loss.alignment.column: has no effect here: without attention"),
        ({**LINKED, **LABEL}, "loss.alignment.column: has no effect here: a label"),
        ({"loss": {"alignment": {"weight": 2.0}}}, "loss.alignment.weight: has no effect here: .*column is not given"),
        ({**LINKED, "output": {"tokens": "bpe"}}, "loss.alignment.column: links count words"),
        ({**LINKED, "output": {"column": "links"}}, "loss.alignment.column: 'links' is the column of output"),
        (
            {**LINKED, "attention": {"normaliser": "sparsemax"}},
            "loss.alignment.weight: normaliser sparsemax gives most",
        ),
        ({**LINKED, "attention": {"scope": "local-monotonic"}}, "loss.alignment.weight: scope local-monotonic gives"),
        ({**LINKED, "attention": {"scope": "local-predicted"}}, "outside its window exactly zero, .*; allowed: 0, or"),
        (
            {**LINKED, "attention": {"score": "uniform"}},
            "loss.alignment.weight: 1, and uniform weights are not learned",
        ),
        ({**COPYING, "evaluation": {"metrics": ["aer"]}}, "evaluation.metrics: 'aer' cannot be taken"),
    ],
)
def test_what_cannot_work_is_refused(recipe: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_recipe(recipe)


def test_switching_attention_off_is_one_word() -> None:
    """What pointed at places falls back with them."""
    made = load_recipe({**COPYING, "loss": LINKED["loss"]}, overrides=["attention=none"])
    assert (made.copied_from, made.loss.alignment.column) == (None, None)


def test_what_can_work_is_taken() -> None:
    assert load_recipe(COPYING).copied_from == "source"
    assert load_recipe(COPYING, overrides=["decoder.copy_from=none"]).copied_from is None
    assert load_recipe({**LINKED, "evaluation": {"metrics": ["aer"]}}).evaluation.metrics == ["aer"]
    sparse = {**LINKED, "attention": {"normaliser": "sparsemax"}}
    assert load_recipe(sparse, overrides=["loss.alignment.weight=0"]).loss.alignment.weight == 0


@pytest.mark.parametrize("looks", [{"normaliser": "entmax15"}, {"scope": "local-monotonic"}])
def test_copying_from_where_nothing_is_given_is_told(looks: dict[str, Any]) -> None:
    (said,) = notes(load_recipe({**COPYING, "attention": looks}))
    assert "exactly zero: a word that only copying can write, at such a place of source" in said
    assert not notes(load_recipe(COPYING))
    assert not notes(load_recipe({"inputs": {"source": {}}, "attention": looks}))
