"""`--plugin`: encoders and decoders of the user's own, by name, in every command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seq2see.cli.app import import_plugins
from seq2see.decoders import decoders
from seq2see.encoders import encoders
from seq2see.recipe import load_recipe
from seq2see.settings.columns import ENCODERS
from seq2see.training.checkpoints import Sources
from seq2see.training.comparing import fingerprint, source_digest
from tests.cli.own_parts import DECODER, ENCODER, JUDGE, SLOWER
from tests.commands import Run

Call = Callable[..., Run]

LEARN = ["--updates", "80", "--set", "training.report_every=80"]
LEARN += ["--set", "attention.scope=local-monotonic", "--set", "attention.window=1"]
"""Copying in order: a window that goes along is all that is needed to know where to look."""


def exact(call: Call, folder: str, pairs: Path, *more: str) -> float:
    run = call("evaluate", folder, "--data", pairs, "--json", *more)
    assert run.code == 0, run.err
    return float(json.loads(run.out)["metrics"]["exact"])


def test_an_encoder_and_a_decoder_of_ones_own_learn_and_are_used_from_their_folder(
    call: Call, here: Path, spelling: Path, pairs: Path
) -> None:
    (here / "parts.py").write_text(ENCODER.format(name="window") + DECODER.format(name="reader"))
    plugin = ["--plugin", "parts"]
    kinds = ["--set", "encoder.kind=window", "--set", "decoder.kind=reader", "--set", "encoder.options.reach=0"]
    options = ["--set", "decoder.options.longest=12", "--set", "encoder.size=20"]
    train = ["train", spelling, "--data", pairs, *kinds, *options, *LEARN, *plugin]

    assert call(*train, "--updates", "1", "--out", "raw").code == 0
    trained = call(*train, "--out", "run")
    assert trained.code == 0, trained.err
    assert exact(call, "raw", pairs, *plugin) < 0.1
    assert exact(call, "run", pairs, *plugin) > 0.9
    assert call("predict", "run", "abcd", *plugin).out.strip() == "A B C D"
    assert call("predict", "run", "abcd", "--beam", "3", *plugin).out.strip() == "A B C D"

    shown = call("show", "run", *plugin).out
    assert "h_j = tanh(W [e(x_{j-r}); ..; e(x_{j+r})] + b); places h_j of 20 numbers" in shown
    assert "s_t = tanh(W [e(y_{t-1}); p_t] + b): no memory but the last symbol" in shown
    assert "P                    12 x 16" in shown
    assert call("look", "run", "abcd", "--out", "look.json", *plugin).code == 0
    look = json.loads((here / "look.json").read_text("utf-8"))
    assert [max(range(4), key=row.__getitem__) for row in look["weights"][:4]] == [0, 1, 2, 3]
    explained = call("explain", "run", "abcd", "--step", "1", *plugin)
    assert explained.code == 0, explained.err
    assert call("score", "run", "--data", pairs, *plugin).code == 0
    assert call("faithful", "run", "--data", pairs, "--rows", "3", *plugin).code == 0


def test_a_folder_names_the_parts_and_never_brings_them(call: Call, here: Path, spelling: Path, pairs: Path) -> None:
    (here / "far.py").write_text(ENCODER.format(name="far") + SLOWER.format(name="slower"))
    kinds = ["--set", "encoder.kind=far", "--set", "decoder.kind=slower", "--set", "decoder.options.pace=0.5"]
    trained = call("train", spelling, "--data", pairs, *kinds, "--updates", "2", "--out", "run", "--plugin", "far")
    assert trained.code == 0, trained.err
    assert "look run INPUT --out look.png --plugin far" in trained.err
    for known in (ENCODERS, decoders.settings):
        for name in [name for name, settings in known.items() if settings.own]:
            del known[name]
    lost = call("predict", "run", "abcd")
    assert lost.code == 2
    assert "encoder.kind: 'far' is not allowed; allowed: " in lost.err
    assert "or one that --plugin brings" in lost.err


def test_variants_are_compared(call: Call, here: Path, spelling: Path, pairs: Path) -> None:
    (here / "compared.py").write_text(ENCODER.format(name="near") + SLOWER.format(name="slow"))
    command = ["compare", spelling, "--data", pairs, "--vary", "encoder.kind=recurrent,near", "--vary"]
    command += ["decoder.kind=recurrent,slow", "--updates", "2", "--out", "all", "--plugin", "compared"]
    first = call(*command)
    assert first.code == 0, first.err
    lines = (here / "all/results.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 4
    assert call(*command).code == 0
    assert (here / "all/results.jsonl").read_text("utf-8").splitlines() == lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENCODER.format(name="recurrent"), "two classes want the encoder name 'recurrent'"),
        (DECODER.format(name="label"), "two classes want the decoder name 'label'"),
        (
            "from seq2see.encoders import encoders\n@encoders.register('thing')\nclass Thing: ...\n",
            "TypeError: encoder 'thing': Thing is no subclass of seq2see.encoders.Encoder",
        ),
        (
            "from seq2see.decoders import decoders\n@decoders.register('thing')\nclass Thing: ...\n",
            "TypeError: decoder 'thing': Thing is no subclass of seq2see.decoders.Decoder",
        ),
        (
            ENCODER.format(name="typed").replace("reach: int = 1", "reach: list[int] = (1,)"),
            "its argument reach is of type list[int], which no recipe can write",
        ),
        (
            SLOWER.format(name="untaught").replace("teach = Decoder.teach", ""),
            "Slower writes its own step, and training would go by the teach of RecurrentDecoder",
        ),
    ],
)
def test_a_class_that_cannot_serve_is_refused_at_once(
    call: Call, here: Path, spelling: Path, text: str, message: str
) -> None:
    (here / "refused.py").write_text(text)
    run = call("show", spelling, "--plugin", "refused")
    assert run.code == 2
    assert message in run.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("self.size = self.summary_size", "self.sizes", "encoder 'bad': its constructor sets no self.size, a whole"),
        ("self.size = self.summary_size = size", "self.size, self.summary_size = size, 1", "the summary is (batch, "),
        (
            "self.size = self.summary_size = size",
            "self.size = self.summary_size = 1",
            "with a mask (batch, places) and",
        ),
        ("return Encoded(", "return (", "the encoder of 'source' (Window): read() gives an Encoded, got tuple"),
        ("tokens=column.symbols", "tokens=[['a']] * len(states)", "tokens has a text for each real place"),
        (
            "embedded = ",
            "embedded = column.missing or ",
            "--plugin bad: failed: AttributeError: 'Sequences' object has no attribute 'missing' (bad.py, line 19)",
        ),
    ],
)
def test_an_encoder_that_does_not_give_what_it_said_is_the_users_to_mend(
    call: Call, here: Path, spelling: Path, pairs: Path, old: str, new: str, message: str
) -> None:
    text = ENCODER.format(name="bad")
    assert old in text
    (here / "bad.py").write_text(text.replace(old, new))
    command = ["train", spelling, "--data", pairs, "--set", "encoder.kind=bad", "--updates", "1", "--out", "run"]
    run = call(*command, "--plugin", "bad")
    assert run.code == 2, run.err
    assert message in run.err


def test_a_decoder_that_does_not_look_cannot_serve_attention(
    call: Call, here: Path, spelling: Path, pairs: Path
) -> None:
    (here / "blind.py").write_text(DECODER.format(name="blind").replace(", seen.looks)", ")"))
    command = ["train", spelling, "--data", pairs, "--set", "decoder.kind=blind", "--updates", "1", "--out", "run"]
    run = call(*command, "--plugin", "blind")
    assert run.code == 2
    assert "the decoder (Reader) gives looks at nothing, and the recipe asks for source" in run.err


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("attention.score=dot", "attention.score dot needs a query and places of one size, got 16 and 24"),
        ("attention.heads=5", "heads"),
        ("attention.over=source.parts", "attention.over: there is no input 'source.parts'"),
    ],
)
def test_sizes_that_do_not_meet_are_said_when_the_model_is_built(
    call: Call, here: Path, spelling: Path, override: str, message: str
) -> None:
    (here / "sized.py").write_text(ENCODER.format(name="sized"))
    change = ["--set", "encoder.kind=sized", "--set", "encoder.size=24", "--set", override]
    run = call("show", spelling, *change, "--plugin", "sized")
    assert run.code == 2
    assert message in run.err


def test_a_part_that_was_changed_is_another_one(here: Path, spelling: Path, pairs: Path) -> None:
    """Its file, and those of the user's own classes that it inherits from; not those of parts that are not used."""
    (here / "base_part.py").write_text(ENCODER.format(name="base"))
    child = "from base_part import Window\nfrom seq2see.encoders import encoders\n"
    (here / "child_part.py").write_text(child + "@encoders.register('child')\nclass Child(Window): ...\n")
    (here / "slow_part.py").write_text(SLOWER.format(name="slowly"))
    import_plugins(["child_part", "slow_part"])

    def marks() -> list[str]:
        used = (["encoder.kind=child"], ["decoder.kind=slowly"], [])
        return [fingerprint(load_recipe(spelling, overrides=one), Sources(str(pairs))) for one in used]

    before = marks()
    for name, changed in (("base_part", 0), ("child_part", 0), ("slow_part", 1)):
        path = here / f"{name}.py"
        path.write_text(path.read_text() + "# changed\n")
        after = marks()
        assert [i for i in range(3) if after[i] != before[i]] == [changed]
        before = after


def test_a_decoder_of_ones_own_gives_labels(call: Call, here: Path, verdicts: Path) -> None:
    (here / "judging.py").write_text(JUDGE.format(name="careful"))
    inputs = {"first": {"tokens": "character"}, "second": {"tokens": "character"}}
    settings = {"inputs": inputs, "output": {"kind": "label", "column": "verdict"}, "attention": "none"}
    (here / "judge.yaml").write_text(json.dumps({**settings, "decoder": {"kind": "careful", "size": 16}}))
    plugin = ["--plugin", "judging"]
    trained = call("train", "judge.yaml", "--data", verdicts, "--updates", "2", "--out", "run", *plugin)
    assert trained.code == 0, trained.err
    rows = call("predict", "run", "--file", verdicts, *plugin)
    assert rows.code == 0, rows.err
    assert set(rows.lines) <= {"alike", "different"}
    assert "careful, a decoder of the user's own" in call("show", "run", *plugin).out


def test_our_own_parts_need_no_plugin() -> None:
    assert sorted(encoders) == sorted(ENCODERS)
    assert sorted(decoders) == sorted(decoders.settings)
    assert not any(settings.own for settings in (*ENCODERS.values(), *decoders.settings.values()))


def test_a_part_that_was_written_in_a_notebook_can_be_compared(here: Path, spelling: Path, pairs: Path) -> None:
    """It has no source file; a changed one is another one all the same."""

    def mark(name: str, factor: float) -> tuple[str, bytes]:
        cell = (
            f"from seq2see.attention import Score, register\n@register('{name}')\nclass Typed(Score):\n"
            f"    'e_j = a q k_j'\n    def energies(self, query, keys): return {factor} * (query @ keys.mT)\n"
        )
        typed: dict[str, Any] = {"__name__": "typed_in_a_cell"}
        exec(compile(cell, "<cell>", "exec"), typed)
        recipe = load_recipe(spelling, overrides=[f"attention.score={name}"])
        return fingerprint(recipe, Sources(str(pairs))), source_digest(typed["Typed"])

    (_, first), (_, again), (_, changed) = mark("typed", 1.5), mark("typed-again", 1.5), mark("typed-changed", 2.5)
    assert first == again != changed
