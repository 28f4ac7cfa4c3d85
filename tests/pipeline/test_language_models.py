"""Language models beside a model: they decide what it cannot, whatever they are trained by and written in."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import seq2see
from seq2see.api import Model
from seq2see.errors import Notice, UserError
from seq2see.pipeline.language_models import SearchLanguageModel
from tests.commands import Commands
from tests.pipeline.conftest import PAIRS, SMALL

WORDS = [a + b + c for a in "abcd" for b in "aeio" for c in "xy"]
TINY = ["decoder.size=24", "decoder.embedding.size=8", "training.learning_rate=0.02", "training.report_every=500"]


def ends(word: str) -> list[str]:
    """Two outputs of a word, of which nothing tells which is right; the first is the more frequent one."""
    return [f"{word} o", f"{word} o", f"{word} o", f"{word} u", f"{word} u"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("language-models")


@pytest.fixture(scope="module")
def torn(folder: Path) -> Model:
    """A model that has learned o and u as endings, and prefers o."""
    table = folder / "torn.tsv"
    rows = [f"{word}\t{output}\n" for word in WORDS for output in ends(word)]
    table.write_text("source\toutput\n" + "".join(rows), encoding="utf-8")
    overrides = [*SMALL, "search.beam=4", "training.film=0"]
    return seq2see.train(PAIRS, table, out=folder / "torn", overrides=overrides, updates=110, listeners=[])


def arpa(symbols: Counter[str]) -> str:
    """Unigrams by their counts."""
    total = symbols.total()
    lines = [f"{math.log10(count / total):.6f}\t{symbol}" for symbol, count in symbols.items()]
    return "\n".join(["\\data\\", f"ngram 1={len(lines)}", "", "\\1-grams:", *lines, "", "\\end\\", ""])


@pytest.fixture(scope="module")
def characters(folder: Path) -> Path:
    """N-grams of characters that know u and hardly any o; packed."""
    counts = Counter("".join(WORDS)) + Counter({"u": 100, "<space>": 32, "</s>": 32, "<unk>": 1})
    counts["o"] = 1
    path = folder / "characters.arpa.gz"
    path.write_bytes(gzip.compress(arpa(counts).encode()))
    return path


@pytest.fixture(scope="module")
def words(folder: Path) -> Path:
    """The same of words."""
    path = folder / "words.arpa"
    path.write_text(arpa(Counter(WORDS) + Counter({"u": 100, "</s>": 32, "<unk>": 1})), encoding="utf-8")
    return path


def trained(folder: Path, name: str, *overrides: str) -> Path:
    table = folder / f"{name}.txt"
    table.write_text("".join(f"{word} u\n" for word in WORDS) * 3, encoding="utf-8")
    recipe = {"inputs": {}, "output": {"tokens": "character"}, "decoder": {"output": "state"}}
    seq2see.train(recipe, table, out=folder / name, overrides=[*TINY, *overrides], updates=60, listeners=[])
    return folder / name


@pytest.fixture(scope="module")
def lines(folder: Path) -> Path:
    """A language model of lines."""
    return trained(folder, "lines")


@pytest.fixture(scope="module")
def stream(folder: Path) -> Path:
    """A language model of a contiguous text, as the shipped recipe makes it."""
    return trained(folder, "stream", "data.stream=true", "training.bptt=20", "training.lanes=4")


ASKED = ["aax", "dey", "bix"]


def test_the_task_is_torn(torn: Model) -> None:
    for word, found in zip(ASKED, torn.predict(ASKED), strict=True):
        assert found.text == f"{word} o"
        assert f"{word} u" in {other.text for other in found.alternatives}


@pytest.mark.parametrize("kind", ["characters", "lines", "stream"])
@pytest.mark.parametrize(
    "options", [{}, {"beam": 1}, {"language_model_use": "rescore"}], ids=["beam", "greedy", "rescore"]
)
def test_a_language_model_decides(
    kind: str, options: dict[str, Any], torn: Model, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(kind)
    plain = torn.predict(ASKED)
    found = torn.predict(ASKED, language_model=path, language_model_weight=0.6, **options)
    for word, before, each in zip(ASKED, plain, found, strict=True):
        assert each.text == f"{word} u"
        same = {other.text: other for other in before.alternatives}[each.text]
        assert each.log_probability == pytest.approx(same.log_probability, abs=1e-3), "it stays that of the model"
        scores = [each.score, *(other.score for other in each.alternatives)]
        assert each.score < same.score
        assert scores == sorted(scores, reverse=True)


def test_rescoring_reads_texts_in_units_of_its_own(torn: Model, words: Path) -> None:
    with pytest.raises(UserError, match=r"search\.language_model: .*words\.arpa"):
        torn.predict("aax", language_model=words)
    options = {"language_model": words, "language_model_use": "rescore", "language_model_weight": 1.0}
    best, plain = torn.predict("aax", **options), torn.predict("aax")
    assert best.text == "aax u"
    before = {other.text: other for other in plain.alternatives}["aax u"]
    total = len(WORDS) + 133
    language = math.log(1 / total) + math.log(100 / total) + math.log(32 / total)
    assert best.score == pytest.approx(before.score + language / len(before.tokens), abs=1e-4)
    assert torn.predict("aax", n_best=1, **options).text == "aax u", "the whole beam is rescored"


def test_log_p_of_texts_is_that_of_score(torn: Model, lines: Path, stream: Path) -> None:
    output, texts = torn.bundle.fields.text_output, ["aax u", "x", "dey o"]
    own = SearchLanguageModel.load(str(lines), output, device="cpu").own
    scored = seq2see.load(lines).score([{"output": text} for text in texts]).each
    with torch.inference_mode():
        found = own.score_symbols([own.model.split(text) for text in texts])
    assert found == pytest.approx([row.log_probability for row in scored], abs=1e-3)
    newline = SearchLanguageModel.load(str(stream), output, device="cpu").own.model
    assert newline.start == newline.end == seq2see.load(stream).bundle.fields.output.vocabulary.ids["\n"]


def test_the_recipe_names_it_and_options_replace_it(torn: Model, characters: Path, folder: Path) -> None:
    path, moved = folder / "here.arpa.gz", folder / "elsewhere.arpa.gz"
    path.write_bytes(characters.read_bytes())
    search = {"beam": 4, "language_model": str(path), "language_model_weight": 0.6}
    settings = torn.recipe.search.model_copy(update=search)
    torn.bundle.recipe, before = torn.recipe.model_copy(update={"search": settings}), torn.recipe
    torn.save(folder / "with")
    torn.bundle.recipe = before
    model = seq2see.load(folder / "with")
    assert model.predict("aax").text == "aax u"
    assert model.predict("aax", language_model="none").text == "aax o"
    followed, plain = model.look("aax", target="aax o"), torn.predict("aax")
    assert followed.score == pytest.approx(plain.score, abs=1e-3), "what is given is not ranked"
    path.rename(moved)
    absent = seq2see.load(folder / "with")  # what needs no search works on
    assert len(absent.encode(["aax"])) == 1
    with pytest.raises(UserError, match=r"search\.language_model: .*here\.arpa\.gz"):
        absent.predict("aax")
    assert absent.predict("aax", language_model=moved).text == "aax u"


def test_symbols_that_it_does_not_know_are_said_and_scored_as_unknown(torn: Model, folder: Path) -> None:
    path = folder / "without-o.arpa"
    counts = Counter("".join(WORDS)) + Counter({"u": 1, "<space>": 32, "</s>": 32, "<unk>": 1})
    del counts["o"]
    path.write_text(arpa(counts), encoding="utf-8")
    with pytest.warns(Notice, match="'o'"):
        found = torn.predict("aax", beam=1, language_model=path, language_model_weight=0.01)
    assert found.text == "aax o"
    total = sum(counts.values())
    language = sum(math.log(counts[symbol] / total) for symbol in ["a", "a", "x", "<space>", "<unk>", "</s>"])
    assert found.score == pytest.approx((found.log_probability + 0.01 * language) / 6, abs=1e-4)


def test_an_ensemble_and_a_metric_with_a_language_model(torn: Model, characters: Path) -> None:
    both = Model([torn.bundle, torn.bundle])
    options = {"language_model": characters, "language_model_weight": 0.6, "language_model_internal": 0.1}
    assert both.predict("aax", **options).score == pytest.approx(torn.predict("aax", **options).score, abs=1e-4)
    rows = [{"source": word, "output": f"{word} u"} for word in ASKED]
    assert torn.evaluate(rows).metrics["exact"] == 0
    assert torn.evaluate(rows, **options).metrics["exact"] == 1


def test_what_has_no_meaning_is_refused(
    torn: Model, labels: Model, characters: Path, lines: Path, folder: Path
) -> None:
    refused = {
        "language_model_weight": (torn, {"language_model_weight": 0.5}),
        "search.language_model_use": (torn, {"language_model": lines, "language_model_use": "rescore", "beam": 1}),
        "search.language_model_internal": (
            torn,
            {"language_model": lines, "language_model_use": "rescore", "language_model_internal": 0.5},
        ),
        "search.language_model": (seq2see.load(lines), {"language_model": characters}),
        "language_model": (labels, {"language_model": characters}),
        "not a language model": (torn, {"language_model": folder / "torn"}),
        "no such folder or file": (torn, {"language_model": folder / "absent"}),
    }
    for message, (model, options) in refused.items():
        rows = [{"one": "a x", "two": "a y"}] if model is labels else [{}] if not model.recipe.inputs else ["aax"]
        with pytest.raises(UserError, match=re.escape(message)):
            model.predict(rows, **options)


def test_bpe_and_other_units_are_told_apart(torn: Model, folder: Path) -> None:
    lines = trained(folder, "words-lm", "output.tokens=word")
    with pytest.raises(UserError, match=r"search\.language_model: .*words.*characters.*rescore"):
        torn.predict("aax", language_model=lines)
    found = torn.predict("aax", language_model=lines, language_model_use="rescore", language_model_weight=1.0)
    assert found.text == "aax u"


def test_the_command_line(
    torn: Model, characters: Path, words: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = Commands(capsys)
    torn.save(folder / "saved")
    given = [folder / "saved", "--language-model"]
    assert call("predict", given[0], "aax").lines == ["aax o"]
    assert call("predict", *given, characters, "--lm-weight", 0.6, "aax").lines == ["aax u"]
    run = call("predict", *given, words, "--lm-use", "rescore", "--lm-weight", 1, "aax", "--n-best", 2)
    assert [line.split("\t")[1] for line in run.lines] == ["aax u", "aax o"]
    table = folder / "asked.tsv"
    table.write_text("source\toutput\naax\taax u\n", encoding="utf-8")
    run = call("evaluate", *given, characters, "--lm-weight", 0.6, "--data", table, "--json")
    assert json.loads(run.out)["metrics"]["exact"] == 1
    run = call("predict", *given, folder / "absent.arpa", "aax")
    assert (run.code, "search.language_model" in run.err) == (2, True)
