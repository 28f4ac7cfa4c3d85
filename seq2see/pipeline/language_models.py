"""Language models beside a searched model: loading them, checking that they fit its output, and rescoring."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seq2see.data.vocabulary import EOS, SOS, UNK
from seq2see.errors import Notice, UserError, counted
from seq2see.files import shortened
from seq2see.modalities.text import TOKENS, TextField
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.packing import is_packed
from seq2see.search import Hypothesis, ModelStepper, SearchOptions
from seq2see.search.answers import AnswerWriter
from seq2see.search.arpa import NgramModel
from seq2see.search.language_model import KNOWN, OutputLanguageModel
from seq2see.search.run import rescored

KEY = "search.language_model"


class TrainedLanguageModel:
    """A language model that seq2see has trained; see `LanguageModel`.

    In a model of a contiguous text lines end in a newline, which therefore begins and ends an output.
    """

    def __init__(self, bundle: Bundle):
        self._bundle, self.unknown = bundle, UNK
        newline = bundle.fields.output.vocabulary.ids.get("\n") if bundle.recipe.data.stream else None
        self.start, self.end = (SOS, EOS) if newline is None else (newline, newline)

    @property
    def field(self) -> TextField:
        return self._bundle.fields.text_output

    def id_of(self, symbol: str) -> int:
        """By its spelling, or by that which the language model's own settings make of it (its case)."""
        ids = self.field.vocabulary.ids
        return ids[symbol] if symbol in ids else ids.get(self.field.normalise(symbol), UNK)

    def split(self, text: str) -> list[str]:
        return self.field.whole(text)

    def steps(self, rows: int) -> ModelStepper:
        self._bundle.packed.refresh()
        return ModelStepper([(self._bundle.network, {})], rows, packed=[self._bundle.packed])


@dataclass
class SearchLanguageModel:
    """A language model for the outputs of one field.

    by_symbols: its units are the output's symbols; why_not: the reason where they are not, so that it can rescore whole
    texts alone.
    """

    own: OutputLanguageModel
    output: TextField
    why_not: str

    @property
    def by_symbols(self) -> bool:
        return not self.why_not

    @classmethod
    def load(cls, path: str, output: TextField, *, device: str) -> SearchLanguageModel:
        """path: the folder of a trained language model, also packed, or a file of n-grams in ARPA format."""
        try:
            if not Path(path).exists():
                raise UserError(f"{path}: no such folder or file")
            if not Path(path).is_dir() and not is_packed(path):
                own = OutputLanguageModel(NgramModel.load(Path(path)), output.vocabulary)
                return cls(own, output, _too_few(own))
            bundle = Bundle.load(path, device=device)
            if bundle.recipe.inputs or bundle.recipe.output.one_step:
                raise UserError(f"{path}: not a language model: it was trained to answer inputs")
            model = TrainedLanguageModel(bundle)
            own = OutputLanguageModel(model, output.vocabulary)
            return cls(own, output, _other_units(model.field, output) or _too_few(own))
        except UserError as error:
            allowed = "the folder of a language model, a file in ARPA format, or none"
            raise UserError(f"{KEY}: {error}; allowed: {allowed}") from None

    def check_use(self, options: SearchOptions, path: str) -> None:
        """Refuse fusion where the units differ."""
        if not (self.by_symbols or options.rescoring):
            raise UserError(f"{KEY}: {path}: {self.why_not}; allowed with other units: {KEY}_use rescore, not fusion")

    def rescore(
        self, found: Sequence[Sequence[Hypothesis]], writer: AnswerWriter, options: SearchOptions, *, replaced: bool
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each input, ranked with log P of their texts. replaced: unknown symbols are, by those of
        the input."""
        flat = [hypothesis for each in found for hypothesis in each]
        outputs = [writer.symbols(hypothesis, replace_unknown=replaced) for hypothesis in flat]
        if not self.by_symbols:
            outputs = [self.own.model.split(self.output.join(symbols)) for symbols in outputs]
        scores = iter(self.own.score_symbols(outputs))
        weight = float(options.language_model_weight)
        return [rescored(each, [weight * next(scores) for _ in each], options) for each in found]


def _other_units(own: TextField, output: TextField) -> str:
    """How the symbols of two fields differ in kind; empty where they do not."""
    kinds = own.settings.tokens, output.settings.tokens
    if kinds[0] != kinds[1]:
        return f"it is over {TOKENS[kinds[0]]}, and the output is written in {TOKENS[kinds[1]]}"
    if own.learning and set(own.vocabulary.ids) != set(output.vocabulary.ids):
        return "its pieces of words are others than the output's"
    return ""


def _too_few(own: OutputLanguageModel) -> str:
    """Why a language model cannot be over an output's symbols; empty where it can."""
    if own.known < KNOWN:
        return f"it knows {own.known:.0%} of the output's symbols, as often as they occur; needed: {KNOWN:.0%}"
    return ""


def language_model_of(bundle: Bundle, options: SearchOptions) -> SearchLanguageModel | None:
    """The language model of a search, loaded once for each model that uses it."""
    path = options.language_model
    if path is None:
        return None
    output = bundle.fields.output
    if not isinstance(output, TextField):
        raise UserError(f"{KEY}: {path}: only a text has a language model")
    model: SearchLanguageModel | None = bundle.language_models.get(path)
    if model is None:
        model = bundle.language_models[path] = SearchLanguageModel.load(path, output, device=str(bundle.device))
        _say_unknown(model, path)
    model.check_use(options, path)
    return model


def _say_unknown(model: SearchLanguageModel, path: str) -> None:
    missing = model.own.missing
    if model.by_symbols and missing:
        shown = ", ".join(shortened(symbol, 20) for symbol in missing[:5])
        of_them = f"{shown}{' ...' if len(missing) > 5 else ''}"
        text = f"{path}: {counted(len(missing), 'symbol')} of the output not known to it, scored as <unk>: {of_them}"
        warnings.warn(Notice(text), stacklevel=4)
