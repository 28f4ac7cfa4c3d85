"""An exported model says in the runtime what the model says in torch, and shows the same looks."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2see.errors import UserError
from tests.runtime.conftest import NAMES, inputs_of, original

Exported = Callable[[str], Path]
SEARCHES: dict[str, dict[str, Any]] = {
    "own": {},
    "greedy": {"beam": 1},
    "n-best": {"beam": 4, "n_best": 3},
    "length": {"beam": 3, "length_penalty": 0, "min_length": 2, "max_length": 7},
    "coverage": {"beam": 3, "coverage_penalty": 0.5},
    "sample": {"sample": True, "seed": 5, "n_best": 2, "temperature": 0.8},
}


def loaded(folder: Path) -> Any:
    from seq2see_runtime import load

    return load(folder, threads=1)


def check_same(ours: Any, theirs: Any) -> None:
    assert theirs.answer == ours.answer
    assert theirs.log_probability == pytest.approx(ours.log_probability, abs=1e-4)
    assert [other.text for other in theirs.alternatives] == [other.text for other in ours.alternatives]
    assert [token.text for token in theirs.tokens] == [token.text for token in ours.tokens]
    chances = [[token.probability, *(share for _, share in token.runners_up)] for token in ours.tokens]
    found = [[token.probability, *(share for _, share in token.runners_up)] for token in theirs.tokens]
    np.testing.assert_allclose(found, chances, atol=1e-4)
    assert theirs.looks.maps.keys() == ours.looks.maps.keys()
    for name, weights in ours.looks.maps.items():
        np.testing.assert_allclose(theirs.looks.maps[name], weights, atol=1e-5)
    assert theirs.looks.inputs == ours.looks.inputs
    assert theirs.looks.layouts == ours.looks.layouts
    assert theirs.looks.outputs == ours.looks.outputs


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_the_models(name: str, exported: Exported) -> None:
    inputs = inputs_of(name)
    for ours, theirs in zip(original(name).predict(inputs), loaded(exported(name)).predict(inputs), strict=True):
        check_same(ours, theirs)


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_finds_the_same(search: str, exported: Exported) -> None:
    inputs, options = inputs_of("transliteration"), SEARCHES[search]
    ours = original("transliteration").predict(inputs, **options)
    theirs = loaded(exported("transliteration")).predict(inputs, **options)
    for own, other in zip(ours, theirs, strict=True):
        check_same(own, other)


def test_a_prediction_does_not_depend_on_its_batch(exported: Exported) -> None:
    model, inputs = loaded(exported("transliteration")), inputs_of("transliteration")
    together = model.predict([*inputs, "a", "abcdefgh"])
    for value, one in zip(inputs, together, strict=False):
        check_same(model.predict(value), one)


def test_a_given_output_has_the_models_probability(exported: Exported) -> None:
    name = "transliteration"
    inputs = inputs_of(name)[:2]
    output = original(name).predict(inputs[0]).text
    pairs = [(value, output) for value in inputs]
    ours = original(name).score([{"latin": value, "native": text} for value, text in pairs])
    theirs = loaded(exported(name)).score(pairs)
    assert sum(each.log_probability for each in theirs) == pytest.approx(ours.log_probability, abs=1e-4)
    for own, other in zip(ours.each, theirs, strict=True):
        assert [value for _, value in other.tokens] == pytest.approx(own.log_probs, abs=1e-4)


def test_a_label_is_scored(exported: Exported) -> None:
    model = loaded(exported("entailment"))
    row = inputs_of("entailment")[0]
    scores = [
        scored.log_probability for scored in model.score([(row, label) for label in model.writer.vocabulary.symbols])
    ]
    assert np.exp(scores).sum() == pytest.approx(1, abs=1e-4)
    with pytest.raises(UserError, match="unknown label"):
        model.score([(row, "no such label")])


def test_a_target_is_followed_and_a_prefix_continued(exported: Exported) -> None:
    model, own, value = (
        loaded(exported("transliteration")),
        original("transliteration"),
        inputs_of("transliteration")[0],
    )
    output = own.predict(value).text
    check_same(own.predict(value, prefix=output[:1]), model.predict(value, prefix=output[:1]))
    followed = model.predict(value, target=output)
    np.testing.assert_allclose(followed.looks.weights, own.look(value, target=output).looks.weights, atol=1e-5)


def test_graphs_do_not_name_files_of_the_machine_that_wrote_them(exported: Exported) -> None:
    for graph in exported("transliteration").glob("*.onnx"):
        assert b"seq2see/export/onnx.py" not in graph.read_bytes()


def test_int8_is_smaller_and_close(exported: Exported, tmp_path: Path) -> None:
    """Weights of 8 bits: the graph of a step shrinks, and scores of given outputs change a little and not more."""
    from seq2see.export.onnx import export

    model = original("transliteration")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notes = export(model.bundle, tmp_path / "int8", int8=True)
    assert any(note.startswith("int8") for note in notes)
    step = (tmp_path / "int8" / "step.onnx").read_bytes()
    assert b"MatMulInteger" in step
    assert b"MatMulInteger" not in (exported("transliteration") / "step.onnx").read_bytes()
    pairs = [(value, model.predict(value).text) for value in inputs_of("transliteration")]
    ours = [each.log_probability for each in loaded(exported("transliteration")).score(pairs)]
    theirs = [each.log_probability for each in loaded(tmp_path / "int8").score(pairs)]
    assert theirs == pytest.approx(ours, abs=0.3)
    assert theirs != pytest.approx(ours, abs=1e-6)


def test_an_empty_input_gives_a_blank_answer(exported: Exported) -> None:
    blank, full = loaded(exported("transliteration")).predict(["  ", "kamal"])
    assert blank.text == ""
    assert blank.reason
    assert full.text


@pytest.mark.parametrize(
    ("value", "options", "match"),
    [
        ({"wrong": "x"}, {}, "wrong"),
        (5, {}, "a text expected"),
        ("kamal", {"beams": 3}, "beam"),
        ("kamal", {"oracle": {0: [1.0]}}, "oracle"),
        ("kamal", {"beam": 0}, "beam"),
    ],
)
def test_what_is_wrong_is_named(value: Any, options: dict[str, Any], match: str, exported: Exported) -> None:
    with pytest.raises(UserError, match=match):
        loaded(exported("transliteration")).predict(value, **options)


@pytest.mark.parametrize("damage", ["graph", "missing", "format", "keys", "json", "types", "beam"])
def test_a_damaged_folder_is_refused(damage: str, exported: Exported, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(exported("transliteration"), folder)
    metadata = folder / "runtime.json"
    if damage == "graph":
        content = bytearray((folder / "step.onnx").read_bytes())
        content[len(content) // 2] ^= 1
        (folder / "step.onnx").write_bytes(content)
    elif damage == "missing":
        (folder / "encoder.onnx").unlink()
    elif damage == "json":
        metadata.write_text("{", encoding="utf-8")
    else:
        known = json.loads(metadata.read_text(encoding="utf-8"))
        changes: dict[str, Any] = {
            "format": known | {"format": 99},
            "keys": {"format": 1},
            "types": known | {"looked_at": 5},
            "beam": known | {"search": known["search"] | {"beam": 10**9}},
        }
        known = changes[damage]
        metadata.write_text(json.dumps(known), encoding="utf-8")
    named = {"graph": "step.onnx", "missing": "encoder.onnx"}.get(damage, "runtime.json")
    with pytest.raises(UserError, match=named):
        loaded(folder)


def test_a_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    with pytest.raises(UserError, match="seq2see export"):
        loaded(tmp_path)


def test_the_runtime_searches_without_language_models(exported: Exported) -> None:
    model = loaded(exported("transliteration"))
    assert not [key for key in model.known["search"] if key.startswith("language_model")]
    with pytest.raises(UserError, match="language_model"):
        model.predict("ab", language_model="lm.arpa")
