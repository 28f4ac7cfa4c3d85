"""Recipes from names, files, dictionaries and model folders: what is filled in, overridden and dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from seq2see.attention import scores
from seq2see.errors import UserError
from seq2see.pipeline.bundle import RECIPE, saved_recipe
from seq2see.pipeline.weights import write_checksums
from seq2see.recipe import Recipe, load_recipe, notes, shipped, to_yaml
from seq2see.recipe.messages import RecipeError
from seq2see.recipe.rules import droppable
from tests.recipe.refusing import ONE, Refused, mentions, message_of, problems_of

TWO: dict[str, Any] = {"inputs": {"passage": {}, "question": {}}}
LABEL: dict[str, Any] = {**TWO, "output": {"kind": "label"}}
NAMES_OF_TORCH = ["keys", "items", "values", "update", "pop", "type", "to", "train", "forward", "float", "half"]

COMPLETE: dict[str, dict[str, Any]] = {
    "language model": {},
    "stream": {"data": {"stream": True}, "training": {"bptt": 64}},
    "pairs": ONE,
    "no attention": {**ONE, "attention": "none"},
    "every option": {
        "inputs": {"a": {"encoder": {"size": 16}, "tokens": "bpe"}, "b": {"share": "a", "tokens": "bpe"}},
        "attention": {"score": "deep", "layers": 3, "over": "a", "query": "current", "input_feeding": False},
        "decoder": {"start": ["a", "b"], "every_step": "b", "cell": "lstm", "layers": 2, "tied": True},
        "training": {"betas": [0.8, 0.9], "learning_rate": "1e-4"},
    },
    "label": {**LABEL, "loss": {"class_weights": {"yes": 2.0}}},
}


@pytest.mark.parametrize("raw", COMPLETE.values(), ids=COMPLETE)
def test_a_recipe_reads_back_the_same(raw: dict[str, Any], tmp_path: Path) -> None:
    recipe = load_recipe(raw)
    assert load_recipe(recipe.to_dict()) == recipe
    assert load_recipe(recipe) == recipe
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe.to_dict()), encoding="utf-8")
    assert load_recipe(path) == recipe


@pytest.mark.parametrize("raw", COMPLETE.values(), ids=COMPLETE)
def test_loading_does_not_change_the_dictionary(raw: dict[str, Any]) -> None:
    before = yaml.safe_dump(raw)
    load_recipe(raw, overrides=["decoder.size=32"])
    assert yaml.safe_dump(raw) == before


def test_a_complete_recipe_cut_short_is_recognised(tmp_path: Path) -> None:
    whole = yaml.safe_dump(load_recipe(COMPLETE["every option"]).to_dict(), sort_keys=False)
    path = tmp_path / "recipe.yaml"
    path.write_text(whole, encoding="utf-8")
    assert load_recipe(path, complete=True) == load_recipe(path)
    last = whole.index("\nevaluation:")
    for end in [*range(0, last, 41), last]:
        path.write_text(whole[:end], encoding="utf-8")
        with pytest.raises(UserError, match=r"recipe\.yaml.*(cut short: |not YAML)"):
            load_recipe(path, complete=True)
    path.write_text(whole[: last + 1], encoding="utf-8")
    assert load_recipe(path)
    with pytest.raises(UserError, match=r"cut short: .*\bevaluation\b"):
        load_recipe(path, complete=True)
    path.write_text(whole[:-1], encoding="utf-8")
    with pytest.raises(UserError, match=r"cut short: .*last line"):
        load_recipe(path, complete=True)


def test_a_dictionary_may_be_required_to_be_complete() -> None:
    recipe = load_recipe(ONE)
    assert load_recipe(recipe.to_dict(), complete=True) == load_recipe(recipe, complete=True) == recipe
    with pytest.raises(UserError, match=r"cut short: .*task, description, output, data"):
        load_recipe(ONE, complete=True)


def test_without_inputs_attention_is_off_unless_it_is_asked_for() -> None:
    assert load_recipe({}).attention.score == "none"
    assert load_recipe({"attention": "none"}).attention.score == "none"
    assert problems_of({"attention": "additive"}) == [("attention.score", "attention")]


def test_the_usual_decoder_of_an_output() -> None:
    assert load_recipe(LABEL).decoder.kind == "label"
    assert load_recipe(ONE).decoder.kind == "recurrent"


def test_every_input_is_looked_at_by_default() -> None:
    assert load_recipe(TWO).attention.over == ["passage", "question"]
    recipe = load_recipe({**TWO, "attention": {"over": "passage"}, "decoder": {"start": "question"}})
    assert (recipe.looked_at, recipe.started_by) == (["passage"], ["question"])


def test_without_attention_the_decoder_starts_from_inputs_that_nothing_else_gives_it() -> None:
    recipe = load_recipe({**ONE, "attention": "none"})
    assert recipe.started_by == ["source"]
    (note,) = notes(recipe)
    assert all(mentions(note, fact) for fact in ("attention", "summary", "source"))
    recipe = load_recipe({**TWO, "attention": "none", "decoder": {"start": "question"}})
    assert recipe.started_by == ["question", "passage"]
    recipe = load_recipe({**ONE, "attention": "none", "decoder": {"every_step": "source"}})
    assert recipe.started_by == []
    assert notes(recipe) == []
    assert notes(load_recipe(ONE)) == notes(load_recipe({})) == []


NONE = {"decoder": {"start": "none"}}
WITHOUT_START = [
    Refused({**ONE, **NONE, "attention": "none"}, {"decoder.start": "conditioned"}, "source decoder.every_step"),
    Refused(ONE, {"decoder.start": "conditioned"}, "source", overrides=["attention=none", "decoder.start=none"]),
    Refused(
        {**TWO, "attention": "none", "decoder": {"start": "none", "every_step": "question"}},
        {"decoder.start": "conditioned"},
        "passage",
    ),
    Refused(
        {**ONE, "attention": "none", "decoder": {"start_by": "copy", "size": 100}},
        {"decoder.start_by": "summary-sizes"},
        "copy 100 512",
    ),
]


@pytest.mark.parametrize("case", WITHOUT_START, ids=str)
def test_refused_starts_without_attention(case: Refused) -> None:
    case.check()


def test_an_explicit_start_of_none_is_not_filled_in() -> None:
    every = load_recipe(ONE, overrides=["attention=none", "decoder.start=none", "decoder.every_step=source"])
    assert (every.started_by, every.fed_every_step) == ([], ["source"])
    assert load_recipe({**ONE, **NONE}).started_by == []
    assert load_recipe({**ONE, **NONE}, overrides=["attention=none"]).started_by == ["source"]


def test_a_start_that_is_filled_in_may_be_copied() -> None:
    recipe = load_recipe({**ONE, "attention": "none", "decoder": {"start_by": "copy", "size": 512}})
    assert recipe.started_by == ["source"]


@pytest.mark.parametrize("score", [*scores.settings, "none"])
def test_one_word_sets_the_attention(score: str) -> None:
    sizes = {"decoder": {"size": 512}}
    assert load_recipe({**ONE, **sizes, "attention": score}).attention.score == score
    assert load_recipe({**ONE, **sizes}, overrides=[f"attention={score}"]).attention.score == score
    assert load_recipe({**ONE, **sizes}, overrides=[f"attention.score={score}"]).attention.score == score


@pytest.mark.parametrize("name", NAMES_OF_TORCH)
def test_names_that_torch_uses_are_names_for_inputs_too(name: str) -> None:
    assert load_recipe({"inputs": {name: {}}}).looked_at == [name]


OVERRIDES: list[tuple[dict[str, Any], list[str], dict[str, Any]]] = [
    (ONE, ["decoder.size=64"], {"decoder.size": 64}),
    (ONE, ["training.learning_rate=3e-4"], {"training.learning_rate": 3e-4}),
    (ONE, ["inputs.source.tokens=character"], {"inputs.source.tokens": "character"}),
    (ONE, ["inputs.source.encoder.size=32"], {"inputs.source.encoder.size": 32}),
    (ONE, ["decoder.start=[source]"], {"decoder.start": ["source"]}),
    *(
        (ONE, [f"inputs.source.column={text}"], {"inputs.source.column": text})
        for text in ("*", "t*", "*,label", "*_x", "&", "!", "%", "@", "@me", "a, b*")
    ),
    (ONE, ["decoder.size=1", "decoder.size=2"], {"decoder.size": 2}),
    (ONE, ["attention=deep", "attention.layers=4"], {"attention.score": "deep", "attention.layers": 4}),
    ({**ONE, "attention": "deep"}, ["attention.layers=4"], {"attention.score": "deep", "attention.layers": 4}),
]


@pytest.mark.parametrize(
    ("raw", "overrides", "expected"), OVERRIDES, ids=[",".join(overrides) for _, overrides, _ in OVERRIDES]
)
def test_overrides_replace_values(raw: dict[str, Any], overrides: list[str], expected: dict[str, Any]) -> None:
    recipe: Any = load_recipe(raw, overrides=overrides)
    for path, value in expected.items():
        here = recipe
        for key in path.split("."):
            here = here[key] if isinstance(here, dict) else getattr(here, key)
        assert here == value


def test_perplexity_picks_the_best_model_though_it_is_not_named() -> None:
    for raw in ({}, ONE, LABEL, {**ONE, "evaluation": {"metrics": ["wer", "a_measure_of_my_own"]}}):
        assert load_recipe({**raw, "training": {"metric": "perplexity"}}).training.metric == "perplexity"


DROPPED: list[tuple[dict[str, Any], str, list[str]]] = [
    ({**ONE, "attention": {"score": "deep", "layers": 4, "size": 9}}, "attention.score=none", ["attention.layers"]),
    ({**ONE, "attention": {"score": "deep", "layers": 4, "size": 9}}, "attention=additive", ["attention.layers"]),
    ({**ONE, "search": {"replace_unknown": True}}, "attention=none", ["search.replace_unknown"]),
    ({**ONE, "encoder": {"reset": "before"}}, "encoder.cell=lstm", ["encoder.reset"]),
    (
        {**ONE, "decoder": {"start": "source", "start_by": "copy", "size": 512}},
        "decoder.start=none",
        ["decoder.start_by"],
    ),
    ({**ONE, "training": {"betas": [0.5, 0.9]}}, "training.optimizer=sgd", ["training.betas"]),
    ({"data": {"stream": True}, "training": {"bptt": 9, "lanes": 2}}, "data.stream=false", ["training.bptt"]),
    ({**ONE, "decoder": {"readout": 9}}, "decoder.tied=true", ["decoder.readout"]),
    (
        {
            **ONE,
            "output": {"tokens": "character"},
            "decoder": {"kind": "recurrent", "cell": "lstm"},
            "search": {"beam": 4},
        },
        "output.kind=label",
        ["decoder.cell", "search.beam"],
    ),
    (
        {**ONE, "evaluation": {"metrics": ["bleu"], "baseline": "unigram"}},
        "output.kind=label",
        ["evaluation.metrics", "evaluation.baseline"],
    ),
    ({"output": {"max_length": 9}}, "data.stream=true", []),
    (
        {**ONE, "evaluation": {"metrics": ["wer"]}, "training": {"metric": "wer"}},
        "evaluation.metrics=[chrf]",
        ["training.metric"],
    ),
    ({**LABEL, "decoder": {"kind": "label"}, "loss": {"class_weights": "balanced"}}, "output.kind=text", []),
]


@pytest.mark.parametrize(("raw", "override", "lost"), DROPPED, ids=[override for _, override, _ in DROPPED])
def test_an_override_drops_what_it_makes_meaningless(raw: dict[str, Any], override: str, lost: list[str]) -> None:
    assert load_recipe(raw)
    recipe = load_recipe(raw, overrides=[override])
    assert droppable(recipe) == {}
    for path in lost:
        group, key = path.split(".")
        settings = getattr(recipe, group)
        assert key not in settings.known_keys() or getattr(settings, key) == getattr(getattr(Recipe(), group), key)
    assert load_recipe(load_recipe(raw), overrides=[override]) == recipe


OVERRIDDEN = [
    # What the user has just set is refused, not dropped.
    Refused(
        ONE,
        {"attention.size": "other-kind"},
        "attention.score none",
        overrides=["attention=none", "attention.size=9"],
    ),
    Refused(
        ONE,
        {"decoder.kind": "decoder-kind"},
        "recurrent label",
        overrides=["output.kind=label", "decoder.kind=recurrent"],
    ),
    # What was meaningless before the override is refused, too.
    Refused(
        {**ONE, "training": {"momentum": 0.5}},
        {"training.momentum": "training-settings"},
        "sgd",
        overrides=["decoder.size=64"],
    ),
    Refused(ONE, {"decoder.size": "type"}, "whole x", overrides=["decoder.size=x"]),
    Refused(ONE, {"decoder.sise": "unknown-key"}, "'size'", overrides=["decoder.sise=3"]),
    Refused(ONE, {"decoder": "type"}, "mapping label", overrides=["decoder=label"]),
    Refused(ONE, {"output.kind": "kind"}, "picture image label", overrides=["output.kind=picture"]),
    Refused(ONE, {"decoder.start": "type"}, "text list", overrides=["decoder.start.first=source"]),
]


@pytest.mark.parametrize("case", OVERRIDDEN, ids=str)
def test_refused_overrides(case: Refused) -> None:
    case.check()


@pytest.mark.parametrize("override", ["decoder.size", "=3", "decoder.size=["])
def test_an_override_that_cannot_be_read_is_named(override: str) -> None:
    assert message_of(ONE, override).startswith(f"--set {override}: ")


def test_an_override_that_a_later_one_undoes_is_refused() -> None:
    for later in ("attention=none", "attention={score: deep}"):
        message = message_of(ONE, "attention.size=4", later)
        assert message.startswith("--set attention: ")
        assert mentions(message, "attention.size")


def test_every_shipped_recipe_has_a_description() -> None:
    assert [name for name, description in shipped().items() if not description] == []


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_recipe_reads_back_the_same(name: str) -> None:
    recipe = load_recipe(name)
    assert load_recipe(recipe.to_dict(), complete=True) == recipe


@pytest.mark.parametrize("name", shipped())
def test_one_setting_switches_attention_of_a_shipped_recipe(name: str) -> None:
    assert load_recipe(name, overrides=["attention=none"]).attention.score == "none"
    recipe = load_recipe(name)
    if recipe.with_places:
        ordered = all(column.kind != "set" for column in recipe.inputs.values())
        for score in ("additive", "general", "static", "uniform", *(["location"] if ordered else [])):
            assert load_recipe(name, overrides=[f"attention={score}"]).attention.score == score
            assert load_recipe(name, overrides=["attention=none", f"attention={score}"]).attention.score == score
    else:
        assert problems_of(name, "attention=additive") == [("attention.score", "attention")]


def test_an_inputs_encoder_takes_the_other_settings_from_the_recipes() -> None:
    recipe = load_recipe(
        {
            "encoder": {"cell": "lstm", "embedding": {"dropout": 0.5}},
            "inputs": {"a": {}, "b": {"encoder": {"size": 7}}},
        },
        overrides=["encoder.layers=2", "inputs.b.encoder.embedding.size=5"],
    )
    encoder = recipe.encoder_of("b")
    embedding = encoder.embedding
    assert (encoder.cell, encoder.layers, encoder.size, embedding.size, embedding.dropout) == ("lstm", 2, 7, 5, 0.5)
    assert recipe.encoder_of("a").size != 7
    assert load_recipe(recipe.to_dict()) == recipe


def test_inputs_that_share_a_vocabulary_share_the_encoder() -> None:
    inputs: dict[str, Any] = {"a": {}, "b": {"share": "a"}, "c": {}}
    recipe = load_recipe({"inputs": inputs, "output": {"share": "c"}})
    owners = {name: recipe.vocabulary_owner(name) for name in [*recipe.inputs, "output"]}
    assert owners == {"a": "a", "b": "a", "c": "c", "output": "c"}
    assert [recipe.reader_of(name) for name in recipe.inputs] == ["a", "a", "c"]
    assert load_recipe({**ONE, "output": {"kind": "label"}}).vocabulary_owner("output") == "output"


def test_a_kind_written_out_and_one_left_to_its_default_are_the_same_kind() -> None:
    plain = {"cell": "lstm", "embedding": {"dropout": 0.5}}
    named = {"kind": "recurrent", "size": 8, "embedding": {"kind": "learned", "size": 5}}
    for common, own in ((plain, named), (named, plain)):
        encoder = load_recipe({"encoder": common, "inputs": {"x": {"encoder": own}}}).encoder_of("x")
        embedding = encoder.embedding
        assert (encoder.cell, encoder.size, embedding.size, embedding.dropout) == ("lstm", 8, 5, 0.5)


def test_an_encoder_of_another_kind_takes_no_settings_from_the_recipes() -> None:
    common, own = {"embedding": {"size": 5, "dropout": 0.5}}, {"embedding": {"kind": "one-hot"}}
    encoder = load_recipe({"encoder": common, "inputs": {"x": {"encoder": own}, "y": {}}}).encoder_of("x")
    assert (encoder.embedding.kind, encoder.embedding.dropout) == ("one-hot", 0.0)


# --- The recipe in a model's folder is trusted where it is as it was saved: rules are not checked again


def save(folder: Path, text: str) -> Path:
    (folder / RECIPE).write_text(text, encoding="utf-8")
    write_checksums(folder, [folder / RECIPE])
    return folder


@pytest.mark.parametrize("name", shipped())
def test_a_trusted_recipe_is_the_one_that_was_saved(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load_recipe(name)
    folder = save(tmp_path, to_yaml(recipe))
    monkeypatch.setattr("seq2see.recipe.load.problems", None)  # a call would fail
    assert saved_recipe(folder) == recipe


def test_an_edited_recipe_is_checked(tmp_path: Path) -> None:
    folder = save(tmp_path, to_yaml(load_recipe("translation")))
    text = (folder / RECIPE).read_text("utf-8")
    (folder / RECIPE).write_text(text.replace("min_length: 0", "min_length: 9999"), encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        saved_recipe(folder)
    assert [(problem.path, problem.rule) for problem in caught.value.problems] == [
        ("search.min_length", "search-lengths")
    ]


def test_wrong_types_are_refused_even_where_the_checksum_fits(tmp_path: Path) -> None:
    text = to_yaml(load_recipe("translation")).replace("min_length: 0", "min_length: few")
    with pytest.raises(RecipeError) as caught:
        saved_recipe(save(tmp_path, text))
    assert [problem.path for problem in caught.value.problems] == ["search.min_length"]
