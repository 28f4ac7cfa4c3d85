"""Options of greedy search, beam search and sampling, checked together."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import NDArray

from seq2see.errors import UserError, nearest

Real = int | float
Weights = Mapping[int, Mapping[str, Sequence[Real] | NDArray[Any]]]
"""{step: {input name: one weight per real place}}"""

COLDEST, HOTTEST = 0.001, 1000
"""The range of the temperature: beyond it the likeliest symbol is drawn, or any, and soon numbers overflow."""
STRONGEST = {"length_penalty": 10, "coverage_penalty": 1000, "consensus": 100, "language_model": 10}
"""The largest values: beyond them a score is all length, coverage or language model, and all outputs count alike."""
LANGUAGE_MODEL = ("language_model", "language_model_weight", "language_model_internal", "language_model_use")
"""The options of a language model beside the searched one."""


NONE = "none"


@dataclass(frozen=True)
class SearchOptions:
    """Greedy search by default; beam search with `beam` above 1, sampling of `n_best` outputs with `sample`.

    length_penalty: score = log_probability / length ** length_penalty, the length counting `<eos>`;
    coverage_penalty: beta in score + beta * sum_j log(min(sum_t a_tj, 1)): outputs that overlook places rank lower;
    patience: an input's beam ends once beam * patience outputs have finished (math.inf: see `beam.finished`);
    avoid_unknown: `<unk>` is not generated; ctc: the share of the CTC prefix score (see `ctc_prefix.py`);
    consensus: above 0, the beam's outputs are ranked by how similar they are to each other (see `run.by_agreement`);
    language_model: path of one that the pipeline loads; language_model_weight, language_model_internal: w and u in
    score = (log P(y | x) + w log P_LM(y) - u log P_ILM(y)) / length ** length_penalty (see `language_model.py`);
    language_model_use: fusion at every step, or rescoring of the outputs that were found (rescore);
    max_length: at most so many tokens, `<eos>` counted; min_length: at least so many before `<eos>`;
    temperature, top_k, top_p: shape what is drawn (in this order), never the probabilities that are reported;
    prefix: ids every output begins with, or a list of them per input; ending in `<eos>` it is the whole output;
    avoid_prefixes: prefixes (lists of ids) that no output begins with, or a list of them per input;
    oracle: attention weights for some steps (from 0), for every hypothesis, or such a mapping per input;
    seed: together with an input's row number and a sample's number it fixes the sample;
    runners_up: how many of the likeliest symbols are reported at each step;
    tree: report all continuations that a beam considered, and what became of each (see `tree.py`).
    """

    beam: int = 1
    n_best: int = 1
    length_penalty: Real = 1.0
    coverage_penalty: Real = 0.0
    patience: Real = 1.0
    max_length: int = 100
    min_length: int = 0
    avoid_unknown: bool = False
    ctc: Real = 0.0
    consensus: Real = 0.0
    language_model: str | None = None
    language_model_weight: Real = 0.3
    language_model_internal: Real = 0.0
    language_model_use: str = "fusion"
    sample: bool = False
    temperature: Real = 1.0
    top_k: int = 0
    top_p: Real = 1.0
    prefix: Sequence[int] | Sequence[Sequence[int]] = ()
    avoid_prefixes: Sequence[Sequence[int]] | Sequence[Sequence[Sequence[int]]] = ()
    oracle: Weights | Sequence[Weights] | None = None
    seed: int = 0
    runners_up: int = 5
    tree: bool = False

    def __post_init__(self) -> None:
        checked = (*self._lengths(), *self._beams(), *self._samples(), *self._language_models())
        problems = [problem for problem in checked if problem]
        if problems:
            raise UserError("; ".join(problems))

    @property
    def agreeing(self) -> bool:
        """Whether outputs are ranked by their agreement, which needs a beam."""
        return self.consensus > 0 and self.beam > 1

    @property
    def ranking(self) -> str:
        """What a score is and how outputs are ordered, in words.

        >>> SearchOptions(length_penalty=0.6).ranking
        'score = log-probability / length ** 0.6, the highest first'
        """
        total = "log-probability"
        if self.language_model is not None:
            total += f" + {self.language_model_weight:g} * language model"
            internal = self.language_model_internal
            total = f"({total}{f' - {internal:g} * internal language model' if internal else ''})"
        power = "" if self.length_penalty == 1 else f" ** {self.length_penalty:g}"
        length = "" if self.length_penalty == 0 else f" / length{power}"
        coverage = f" + {self.coverage_penalty:g} * coverage" if self.coverage_penalty else ""
        if self.agreeing:
            order = f"in the order of consensus (search.consensus {self.consensus:g}): scores need not fall"
        else:
            order = "the highest first"
        return f"score = {total}{length}{coverage}, {order}"

    @property
    def rescoring(self) -> bool:
        """Whether outputs are found without the language model, and ranked with it afterwards."""
        return self.language_model is not None and self.language_model_use == "rescore"

    @property
    def kept(self) -> int:
        """How many outputs of an input are kept until its search ends."""
        return self.beam if self.agreeing else self.n_best

    @property
    def avoided_by_input(self) -> bool:
        """Whether avoid_prefixes are a list for each input, not one list for all of them."""
        return not any(isinstance(token, int) for prefix in self.avoid_prefixes for token in prefix)

    def _lengths(self) -> list[str]:
        return [
            _at_least(1, max_length=self.max_length),
            _at_least(0, min_length=self.min_length),
            _at_least(0, runners_up=self.runners_up),
            _between(0, STRONGEST["length_penalty"], length_penalty=self.length_penalty),
            _between(0, STRONGEST["coverage_penalty"], coverage_penalty=self.coverage_penalty),
            _between(0, STRONGEST["consensus"], consensus=self.consensus),
            "" if 0 <= self.ctc <= 1 else f"ctc is a share from 0 to 1, got {self.ctc}",
            f"min_length {self.min_length} is more than max_length {self.max_length}"
            if self.min_length > self.max_length
            else "",
        ]

    def _beams(self) -> list[str]:
        wide = not self.sample and self.n_best > self.beam >= 1
        return [
            _at_least(1, beam=self.beam),
            _at_least(1, n_best=self.n_best),
            _at_least(1, patience=self.patience, finite=False),
            f"n_best {self.n_best} needs a beam at least as wide, got beam {self.beam}" if wide else "",
            f"sample draws n_best outputs and has no beam; leave beam at 1, got {self.beam}"
            if self.sample and self.beam > 1
            else "",
            f"tree needs a beam wider than 1{' and no sample' if self.sample else ''}, got beam {self.beam}"
            if self.tree and self.beam == 1
            else "",
            f"patience {self.patience} needs a beam wider than 1" if self.patience > 1 and self.beam == 1 else "",
        ]

    def _language_models(self) -> list[str]:
        weight, internal, most = self.language_model_weight, self.language_model_internal, STRONGEST["language_model"]
        uses = ("fusion", "rescore")
        return [
            "" if 0 < weight <= most else f"language_model_weight must be above 0 and at most {most}, got {weight}",
            _between(0, most, language_model_internal=internal),
            ""
            if self.language_model_use in uses
            else f"language_model_use: '{self.language_model_use}'; allowed: {', '.join(uses)}",
        ]

    def _samples(self) -> list[str]:
        shaped = {"temperature": (self.temperature, 1.0), "top_k": (self.top_k, 0), "top_p": (self.top_p, 1.0)}
        unused = [f"{name} {value}" for name, (value, usual) in shaped.items() if value != usual and not self.sample]
        return [
            f"{', '.join(unused)} shape{'s' if len(unused) == 1 else ''} what is drawn: set sample" if unused else "",
            _between(COLDEST, HOTTEST, temperature=self.temperature),
            "" if 0 < self.top_p <= 1 else f"top_p must be above 0 and at most 1, got {self.top_p}",
            _at_least(0, top_k=self.top_k),
            _at_least(0, seed=self.seed),
        ]


def merged_options(
    settings: Mapping[str, Any], overrides: Mapping[str, Any], *, inputs: bool, every: bool = False
) -> SearchOptions:
    """A model's own search settings with overrides (None: the model's own).

    With n_best but no beam, the beam is as wide as n_best. A model without inputs (a language model) samples.
    every: without n_best all outputs of the beam are returned, as `predict` does. A language model "none" means
    that there is none, whatever the model's settings say.
    """
    known = [option.name for option in fields(SearchOptions)]
    for name in overrides:
        if name not in known:
            raise UserError(f"unknown option '{name}'{nearest(name, known)}; allowed: {', '.join(known)}")
    chosen = {name: value for name, value in overrides.items() if value is not None}
    if "language_model" in chosen:
        chosen["language_model"] = os.fspath(chosen["language_model"])
    if chosen.get("language_model", settings.get("language_model")) in (None, NONE):
        useless = [name for name in LANGUAGE_MODEL[1:] if name in chosen]
        if useless:
            raise UserError(f"{', '.join(useless)}: no effect without a language_model")
        chosen.pop("language_model", None)
        settings = {name: value for name, value in settings.items() if name not in LANGUAGE_MODEL}
    if every and "n_best" not in chosen and not chosen.get("sample") and inputs:
        chosen["n_best"] = max(chosen["beam"], 1) if "beam" in chosen else settings["beam"]
    if not inputs and "beam" not in chosen:
        chosen.setdefault("sample", True)
    own = {name: value for name, value in settings.items() if name != "replace_unknown"} | chosen
    if "beam" not in chosen:
        own["beam"] = 1 if own.get("sample") else max(own["beam"], int(chosen.get("n_best", 1)))
    return SearchOptions(**own)


BATCH_TOKENS = 4000
BATCH_ROWS = 256


def plan_batches(lengths: Sequence[int], *, factor: int) -> Iterator[list[int]]:
    """The numbers of rows of these lengths in batches, longest first; factor: hypotheses of each row."""
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    start = 0
    while start < len(order):
        longest = lengths[order[start]]
        size = max(1, min(BATCH_ROWS, BATCH_TOKENS // max(longest, 1) // max(factor // 2, 1)))
        yield order[start : start + size]
        start += size


def _between(least: Real, most: Real, **named: Real) -> str:
    ((name, value),) = named.items()
    return "" if least <= value <= most else f"{name} must be a number from {least} to {most:,}, got {value}"


def _at_least(least: int, *, finite: bool = True, **named: Real) -> str:
    ((name, value),) = named.items()
    if value >= least and (not finite or math.isfinite(value)):
        return ""
    return f"{name} must be {'a number of ' if finite else ''}at least {least}, got {value}"
