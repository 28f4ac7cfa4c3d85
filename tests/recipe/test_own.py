"""Encoders and decoders of the user's own in recipes: known by name, their constructors' arguments checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from seq2see.decoders import decoders
from seq2see.decoders.base import OwnAnswerSettings, OwnDecoderSettings
from seq2see.encoders.base import KEYS, KNOWN, OwnEncoderSettings, OwnReaderSettings
from seq2see.errors import UserError
from seq2see.recipe import Recipe, load_recipe
from seq2see.settings.columns import ENCODERS
from seq2see.settings.plugins import constructor_values, settings_from_constructor

ONE = {"inputs": {"source": {}}}
OR_PLUGIN = "or one that --plugin brings"

pytestmark = pytest.mark.usefixtures("_brought")


class Waves:
    def __init__(
        self,
        embedding: Any,
        size: int,
        how: Literal["sine", "saw"] = "sine",
        share: Annotated[float, Field(gt=0)] = 0.5,
        bent=True,
        copy: int | None = None,
        *rest: Any,
        **more: Any,
    ): ...


class Bare:
    def __init__(self, symbols: int): ...


class Steps:
    def __init__(self, settings: Any, attention: Any, conditions: Any, *, pace: float = 1.0): ...


class Bell:
    def __init__(self, settings: Any, attention: Any, conditions: Any): ...


@pytest.fixture
def _brought() -> Iterator[None]:
    known = dict(ENCODERS), dict(decoders.settings)
    read, names = settings_from_constructor, ("settings", "attention", "conditions")
    ENCODERS["waves"] = read("waves", Waves, OwnReaderSettings, known=KNOWN, keys=KEYS)
    ENCODERS["bare"] = read("bare", Bare, OwnEncoderSettings, known=KNOWN, keys=KEYS, reads=("text", "texts"))
    decoders.settings["steps"] = read("steps", Steps, OwnDecoderSettings, known=names)
    decoders.settings["bell"] = read("bell", Bell, OwnAnswerSettings, known=names)
    yield
    for registry, before in zip((ENCODERS, decoders.settings), known, strict=True):
        registry.clear()
        registry.update(before)


def waves(**settings: Any) -> dict[str, Any]:
    return {**ONE, "encoder": {"kind": "waves", "size": 8, **settings}}


def refused(raw: dict[str, Any], *overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        load_recipe(raw, overrides=overrides)
    return str(caught.value)


def test_a_constructor_is_read_as_settings() -> None:
    own = ENCODERS["waves"]
    assert own.known_keys() == ["kind", "embedding", "size", "options"]
    assert [name for name, field in own.model_fields.items() if field.is_required()] == ["size"]
    settings = own.model_validate({"size": "8", "options": {"share": "1e-3"}})
    assert constructor_values(settings, keys=KEYS) == {"size": 8, "share": 0.001}


def test_a_recipe_with_parts_of_ones_own_says_them_and_comes_back() -> None:
    recipe = load_recipe({**waves(options={"how": "saw"}), "decoder": {"kind": "steps", "options": {"pace": 2}}})
    assert recipe.encoder_of("source").kind == "waves"
    assert recipe.to_dict()["encoder"]["options"] == {"how": "saw"}
    assert load_recipe(recipe.to_dict(), complete=True) == recipe


def test_a_name_that_no_plugin_brought_is_refused_with_all_that_are_known() -> None:
    said = refused({**ONE, "encoder": {"kind": "wave", "size": 3, "options": {"how": "saw"}}})
    assert "encoder.kind: 'wave' is not allowed (did you mean 'waves'?)" in said
    assert said.endswith(f"waves, bare, {OR_PLUGIN}")
    said = refused({**ONE, "decoder": {"kind": "step"}})
    assert "decoder.kind: 'step' is not allowed (did you mean 'steps'?)" in said
    assert said.endswith(f"allowed: label, reconstruction, recurrent, transformer, steps, bell, {OR_PLUGIN}")


@pytest.mark.parametrize("kind", ["--plugin", ["waves"], {"waves": 1}, 3, None])
def test_a_kind_that_is_no_name_is_refused(kind: Any) -> None:
    assert "encoder.kind" in refused({**ONE, "encoder": {"kind": kind}})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": {"hou": "saw"}}, "encoder.options.hou: unknown key (did you mean 'how'?); "),
        ({"options": {"hou": "saw"}}, "(did you mean 'how'?); allowed: bent, copy, how, share"),
        ({"options": {"how": "square"}}, "encoder.options.how: 'square' is not allowed; allowed: sine, saw"),
        ({"options": {"share": 0}}, "encoder.options.share: should be greater than 0, got 0"),
        ({"options": {"share": "much"}}, "encoder.options.share: should be a number above 0, got 'much'"),
        ({"options": {"bent": 7}}, "encoder.options.bent: should be true or false, got 7"),
        ({"options": {"copy": 0.5}}, "encoder.options.copy: should be a whole number, got 0.5"),
        ({"options": {"how": ["saw"]}}, "encoder.options.how: ["),
        ({"size": None}, "encoder.size: should be whole number"),
        ({"size": 0}, "encoder.size: should be"),
        ({"layers": 2}, "encoder.layers: unknown key"),
        ({"sizes": 2}, "encoder.sizes: unknown key (did you mean 'size'?); allowed: kind, embedding, size, options"),
        ({"embedding": {"sise": 2}}, "encoder.embedding.sise: unknown key (did you mean 'size'?)"),
    ],
)
def test_settings_are_checked_by_name_and_type(settings: dict[str, Any], message: str) -> None:
    assert message in refused(waves(**settings))


def test_an_input_may_have_an_encoder_of_ones_own() -> None:
    raw = {"inputs": {"source": {"encoder": {"kind": "waves", "size": 8, "options": {"bent": 3}}}}}
    assert "inputs.source.encoder.options.bent: should be true or false, got 3" in refused(raw)


def test_an_encoder_without_an_embedding_has_no_settings_of_one() -> None:
    said = refused({**ONE, "encoder": {"kind": "bare", "embedding": {"size": 3}}})
    assert "encoder.embedding: unknown key" in said


def test_an_encoder_reads_the_inputs_it_says() -> None:
    texts = {"inputs": {"source": {"kind": "texts"}}}
    assert load_recipe({**texts, "encoder": {"kind": "bare"}}).encoder.kind == "bare"
    said = refused({**texts, "encoder": {"kind": "waves", "size": 8}})
    assert "encoder.kind: waves does not read 'source', an input of kind texts; allowed: hierarchical, bare" in said


def test_options_of_decoders_are_checked_too() -> None:
    steps = {**ONE, "decoder": {"kind": "steps"}}
    assert "decoder.options.pace: should be a number, got 'fast'" in refused(steps, "decoder.options.pace=fast")
    assert "decoder.options.pac: unknown key (did you mean 'pace'?)" in refused(steps, "decoder.options.pac=1")
    assert "decoder.options.pace: has no effect here: only" in refused(ONE, "decoder.options.pace=1")


def test_a_decoder_of_one_step_gives_labels_and_no_other_does() -> None:
    label = {**ONE, "output": {"kind": "label"}}
    assert load_recipe({**label, "decoder": {"kind": "bell"}}).decoder.kind == "bell"
    said = refused({**label, "decoder": {"kind": "steps"}})
    assert (
        f"decoder.kind: steps cannot write an output of kind label; allowed: label, transformer, bell, {OR_PLUGIN}"
        in said
    )
    said = refused({**ONE, "decoder": {"kind": "bell"}})
    assert f"allowed: recurrent, transformer, steps, {OR_PLUGIN}" in said
    assert "decoder.embedding: has no effect here" in refused(
        {**label, "decoder": {"kind": "bell", "embedding": {"size": 3}}}
    )


@pytest.mark.parametrize(
    "override",
    [
        "decoder.heads=2",
        "decoder.cell=lstm",
        "decoder.output=state",
        "attention.input_feeding=false",
        "decoder.start_by=copy",
        "attention.score=dot",
        "attention.heads=3",
        "attention.over=source.parts",
        "search.replace_unknown=true",
        "loss.coverage=0.1",
        "loss.consistency=1",
        "decoder.tied=true",
    ],
)
def test_what_only_the_built_parts_know_is_left_to_them(override: str) -> None:
    raw = {**waves(), "decoder": {"kind": "steps", "start": "source", "size": 8}}
    assert isinstance(load_recipe(raw, overrides=[override]), Recipe)


def test_another_kind_leaves_behind_what_only_the_old_one_had() -> None:
    raw = {**ONE, "encoder": {"size": 9, "layers": 2, "bidirectional": False, "cell": "lstm"}}
    recipe = load_recipe(raw, overrides=["encoder.kind=waves", "encoder.options.bent=false"])
    assert (recipe.encoder.kind, recipe.encoder.size) == ("waves", 9)
    back = load_recipe(recipe.to_dict(), overrides=["encoder.kind=recurrent"])
    assert (back.encoder.kind, back.encoder.size) == ("recurrent", 9)
    bare = load_recipe(recipe.to_dict(), overrides=["encoder.kind=bare"])
    assert dict(bare.encoder) == {"kind": "bare"}
    paced = load_recipe(ONE, overrides=["decoder.kind=steps", "decoder.options.pace=2"])
    assert load_recipe(paced.to_dict(), overrides=["decoder.kind=recurrent"]).decoder.kind == "recurrent"


def test_an_argument_no_recipe_can_write_is_refused_when_the_class_is_read() -> None:
    class Strange:
        def __init__(self, table: dict[str, int]): ...

    with pytest.raises(TypeError, match=r"'strange': its argument table is of type dict\[str, int\], which no recipe"):
        settings_from_constructor("strange", Strange, OwnEncoderSettings)
