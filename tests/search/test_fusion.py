"""Language models in search: against all outputs, one by one; in batches, ensembles and beside constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from seq2see.data.vocabulary import Vocabulary
from seq2see.errors import UserError
from seq2see.memory import Copyable, Memory
from seq2see.model import EncoderDecoder
from seq2see.search import Hypothesis, SearchOptions, search
from seq2see.search.arpa import NgramModel
from seq2see.search.language_model import Fusion, OutputLanguageModel, log_probabilities
from seq2see.search.models import ModelStepper
from seq2see.search.run import rescored
from seq2see.search.stepper import CopyVocabulary
from tests.search.helpers import EOS, INPUTS, SOS, build, every_output, padded, stepped

SYMBOLS = 7
VOCABULARY = Vocabulary(["a", "b", "c"])
LONGEST = 3
WEIGHTS = {"language_model_weight": 0.7, "language_model_internal": 0.4}
ARPA = """\\data\\
ngram 1=5
ngram 2=4

\\1-grams:
-1.5\t<unk>
-99\t<s>\t-0.2
-0.4\t</s>
-2.0\tb\t-0.3
-0.5\tc\t-0.1

\\2-grams:
-0.2\t<s> c
-0.1\tc b
-1.5\tc </s>
-0.3\tb </s>

\\end\\
"""
"""A language model that likes c, and b after c; it does not know a."""


@pytest.fixture(scope="module")
def ngrams(tmp_path_factory: pytest.TempPathFactory) -> OutputLanguageModel:
    path = tmp_path_factory.mktemp("arpa") / "toy.arpa"
    path.write_text(ARPA, encoding="utf-8")
    return OutputLanguageModel(NgramModel.load(path), VOCABULARY)


def internal(model: EncoderDecoder, row: list[int], ids: list[int]) -> float:
    """log P of the ids by the decoder alone: what it attends to, starts from and is fed are zeros."""
    with torch.no_grad():
        memory = model.encode(padded([row]), 1)
        for places in memory.places.values():
            places.states = 0 * places.states
        memory = Memory(memory.places, {name: 0 * summary for name, summary in memory.summaries.items()})
        ready = model.decoder.prepare(memory)
        state, total = model.begin(ready), 0.0
        for token, wanted in zip([SOS, *ids[:-1]], ids, strict=True):
            step = model.step(ready, state, torch.tensor([token]))
            state, total = step.state, total + float(model.log_probs(step, ready)[0, wanted])
    return total


def by_enumeration(
    model: EncoderDecoder, row: list[int], own: OutputLanguageModel, options: SearchOptions
) -> list[tuple[float, list[int], float]]:
    """(score, ids, log P(y | x)) of every output, best first."""
    outputs = list(every_output(SYMBOLS, LONGEST))
    by_model = [float(stepped(model, row, ids)[0][range(len(ids)), ids].sum()) for ids in outputs]
    by_language = log_probabilities(own.model, [own.ids[ids[:-1]].tolist() for ids in outputs])
    scored = []
    for ids, first, second in zip(outputs, by_model, by_language, strict=True):
        total = first + float(options.language_model_weight) * second
        if options.language_model_internal:
            total -= float(options.language_model_internal) * internal(model, row, ids)
        scored.append((total / len(ids) ** float(options.length_penalty), ids, first))
    return sorted(scored, reverse=True)


MODELS: dict[str, dict[str, Any]] = {
    "attention": {"score": "additive"},
    "start alone": {"score": "none", "start": "source"},
    "every step": {"score": "dot", "every_step": "source", "start": "source"},
    "location": {"score": "coverage"},
}


@pytest.mark.parametrize(("kind", "internal_weight"), [("attention", 0.0), *((kind, 0.4) for kind in MODELS)])
def test_a_wide_beam_finds_the_best_of_all_outputs(
    kind: str, internal_weight: float, ngrams: OutputLanguageModel
) -> None:
    model = build(symbols=SYMBOLS, **MODELS[kind])
    wide = {"beam": 32, "n_best": 3, "max_length": LONGEST, "patience": 1000, "length_penalty": 0.8}
    weights = {"language_model_weight": 0.7, "language_model_internal": internal_weight}
    options = SearchOptions(**wide, **weights)  # type: ignore[arg-type]
    row = INPUTS[0]
    found = search([(model, padded([row]))], [0], options, language_model=ngrams)[0]
    best = by_enumeration(model, row, ngrams, options)[:3]
    assert [each.ids for each in found] == [ids for _, ids, _ in best]
    assert [each.score for each in found] == pytest.approx([score for score, _, _ in best], abs=1e-4)
    assert [each.log_probability for each in found] == pytest.approx([own for _, _, own in best], abs=1e-4)
    assert [sum(each.log_probs) for each in found] == pytest.approx([own for _, _, own in best], abs=1e-4)
    plain = search([(model, padded([row]))], [0], SearchOptions(**wide))[0]  # type: ignore[arg-type]
    assert [each.score for each in plain] != [each.score for each in found]


def found_by(model: EncoderDecoder, rows: list[list[int]], own: OutputLanguageModel, **options: Any) -> list[Any]:
    chosen = SearchOptions(**{"max_length": 6, **WEIGHTS, **options})
    return search([(model, padded(rows))], list(range(len(rows))), chosen, language_model=own)


@pytest.mark.parametrize(
    "options",
    [{}, {"beam": 3, "n_best": 3}, {"sample": True, "n_best": 2}, {"beam": 2, "ctc": 0.4}],
    ids=["greedy", "beam", "sample", "ctc"],
)
def test_an_output_does_not_depend_on_its_batch(options: dict[str, Any], ngrams: OutputLanguageModel) -> None:
    model = build(symbols=SYMBOLS, ctc=1.0)
    together = found_by(model, INPUTS, ngrams, **options)
    for number, row in enumerate(INPUTS):
        chosen = SearchOptions(**{"max_length": 6, **WEIGHTS, **options})
        alone = search([(model, padded([row]))], [number], chosen, language_model=ngrams)[0]
        assert [each.ids for each in alone] == [each.ids for each in together[number]]
        assert [each.score for each in alone] == pytest.approx([each.score for each in together[number]], abs=1e-4)
    plain = search([(model, padded(INPUTS))], range(len(INPUTS)), SearchOptions(max_length=6, **options))
    assert [each[0].ids for each in plain] != [each[0].ids for each in together], "the language model has no say"


def test_greedy_search_takes_the_best_sum_at_every_step(ngrams: OutputLanguageModel) -> None:
    model = build(symbols=SYMBOLS)
    (found,) = found_by(model, [INPUTS[0]], ngrams, language_model_internal=0.0)[0]
    for step in range(len(found.ids)):
        before = found.ids[:step]
        log_probs = stepped(model, INPUTS[0], [*before, EOS])[0][step].numpy()
        language = [ngrams.model.start, *ngrams.ids[before].tolist()][-1]
        scores = log_probs + 0.7 * ngrams.model.after((language,))[ngrams.ids]  # type: ignore[attr-defined]
        scores[[0, SOS]] = -np.inf
        assert found.ids[step] == int(scores.argmax())
        assert found.log_probs[step] == pytest.approx(float(log_probs[found.ids[step]]), abs=1e-5)


def test_a_forced_prefix_is_scored_too(ngrams: OutputLanguageModel) -> None:
    model = build(symbols=SYMBOLS)
    for beam in (1, 3):
        found = found_by(model, INPUTS[:2], ngrams, prefix=[4, EOS], beam=beam, language_model_internal=0.0)
        for each in found:
            assert each[0].ids == [4, EOS]
            assert each[0].added == pytest.approx(0.7 * log_probabilities(ngrams.model, [[int(ngrams.ids[4])]])[0])


def test_the_internal_language_model_of_an_ensemble_is_the_mean_of_its_models(ngrams: OutputLanguageModel) -> None:
    models = [build(symbols=SYMBOLS, seed=seed) for seed in (0, 1)]
    options = SearchOptions(prefix=[4, 5, EOS], language_model_weight=0.5, language_model_internal=0.5)
    found = search([(model, padded(INPUTS[:1])) for model in models], [0], options, language_model=ngrams)[0][0]
    (language,) = log_probabilities(ngrams.model, [ngrams.ids[found.ids[:-1]].tolist()])
    with torch.inference_mode():
        stepper = ModelStepper([(model, padded(INPUTS[:1])) for model in models], 1).internal()
        stepper.begin(1)
        total = 0.0
        for token, wanted in zip([SOS, *found.ids[:-1]], found.ids, strict=True):
            total += float(stepper.step(np.array([token]))[0][0, wanted])
    assert found.added == pytest.approx(0.5 * language - 0.5 * total, abs=1e-4)
    apart = [internal(model, INPUTS[0], found.ids[:1]) for model in models]
    stepper.begin(1)
    with torch.inference_mode():
        first = float(stepper.step(np.array([SOS]))[0][0, found.ids[0]])
    assert first == pytest.approx(float(np.log(np.exp(apart).mean())), abs=1e-5)


def test_copied_words_are_known_by_their_spelling(ngrams: OutputLanguageModel) -> None:
    words = CopyVocabulary(SYMBOLS - 1, np.array([8, 6]), [["c", "x"], []])
    own = OutputLanguageModel(ngrams.model, Vocabulary(["a", "b"]))
    over = own.over_output(words)
    over.begin(2)
    first = over.step(np.full(4, SOS))[0]
    likes = ngrams.model.after((ngrams.model.start,))  # type: ignore[attr-defined]
    unknown = likes[ngrams.model.unknown]
    assert first[0].tolist() == [*likes[own.ids].tolist(), likes[ngrams.model.id_of("c")], unknown]
    assert first[2, 6:].tolist() == [unknown, unknown]
    second = over.step(np.array([6, 7, 5, 5]))[0]
    assert second[0, 5] == ngrams.model.after((ngrams.model.id_of("c"),))[ngrams.model.id_of("b")]  # type: ignore[attr-defined]
    over.select(np.array([2, 3]), np.array([1]))
    assert over.step(np.array([4, 4]))[0].shape == (2, 8)


def test_a_model_that_copies_has_no_internal_language_model() -> None:
    model = build(symbols=SYMBOLS, copy_from="source")
    inputs = padded(INPUTS[:1])
    inputs["source"].copyable = Copyable(inputs["source"].ids)
    with pytest.raises(UserError, match="language_model_internal"):
        ModelStepper([(model, inputs)], 1).internal()


def test_unknown_symbols_and_how_many_are_known(ngrams: OutputLanguageModel) -> None:
    own = OutputLanguageModel(ngrams.model, Vocabulary(["b", "c", "z"], counts={"b": 6, "c": 2, "z": 8}))
    assert own.known == pytest.approx(0.5)
    assert own.missing == ["z"]
    assert own.ids[-1] == ngrams.model.unknown


def test_no_language_model_adds_nothing() -> None:
    assert not Fusion()


def test_rescored_hypotheses_are_ranked_by_the_sum() -> None:
    def hypothesis(ids: list[int], log_probability: float) -> Hypothesis:
        return Hypothesis(ids=ids, log_probs=[], log_probability=log_probability, score=log_probability, finished=True)

    options = SearchOptions(beam=2, n_best=1, length_penalty=1)
    first, second = hypothesis([4, EOS], -2.0), hypothesis([5, 5, 5, EOS], -3.0)
    (best,) = rescored([first, second], [-2.0, -0.6], options)
    assert (best.ids, best.log_probability, best.score) == ([5, 5, 5, EOS], -3.0, pytest.approx(-3.6 / 4))
    agreeing = rescored([first, second], [-2.0, -0.6], SearchOptions(beam=2, n_best=2, consensus=1.0))
    assert [each.ids for each in agreeing] == [[5, 5, 5, EOS], [4, EOS]]


def test_options_that_cannot_be() -> None:
    with pytest.raises(UserError, match="language_model"):
        search([(build(), padded(INPUTS))], range(len(INPUTS)), SearchOptions(language_model="lm"))
    for wrong in ({"language_model_weight": 0.0}, {"language_model_internal": -1.0}, {"language_model_use": "both"}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            SearchOptions(language_model="lm", **wrong)  # type: ignore[arg-type]
