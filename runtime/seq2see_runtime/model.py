"""An exported model: its graphs in onnxruntime, searched by the same code as the model it was made of."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy import ndarray

from seq2see.data.vocabulary import EOS, copy_ids, target_ids
from seq2see.errors import UserError, nearest
from seq2see.files import MEBIBYTE, read_json, shortened
from seq2see.looks import Layout, Prediction
from seq2see.search.answers import AnswerWriter
from seq2see.search.ctc_prefix import CtcPrefixScorer
from seq2see.search.hypotheses import EncoderLook, Hypothesis, JointPlaces
from seq2see.search.options import LANGUAGE_MODEL, SearchOptions, merged_options, plan_batches
from seq2see.search.run import rank_labels, run_search
from seq2see.search.stepper import LEAST, CopyVocabulary
from seq2see.search.top import Likeliest, likeliest
from seq2see.threads import cores
from seq2see_runtime import media
from seq2see_runtime.readers import READERS, WRITERS, Column, TextReader, of_kind, padded
from seq2see_runtime.shortlist import LAYER, OutputLayer, among

ALL_READERS = {**READERS, **media.READERS}

MOST_THREADS = 4
"""Threads that are used unless more are asked for."""
TINY = sys.float_info.min
FORMATS = (1, 2)
"""Of exported folders; 2 has a shortlist."""
ENCODER, STEP, METADATA, CHECKSUMS = "encoder.onnx", "step.onnx", "runtime.json", "checksums.json"
KEYS: dict[str, type] = {
    "inputs": dict,
    "required": list,
    "output": dict,
    "answer": str,
    "one_step": bool,
    "numeric": bool,
    "search": dict,
    "looked_at": list,
    "layouts": dict,
    "maps": dict,
}
"""What runtime.json must have, and of which type."""
LIMITS = {"beam": 10_000, "max_length": 1_000_000}
Row = Mapping[str, str]


def load(folder: str | Path, *, threads: int = 0) -> Model:
    """Read a folder that `seq2see export --to onnx` wrote; threads: 0 for as many as there are cores, at most 4."""
    try:
        return Model(Path(folder), threads=threads)
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise UserError(f"{folder}: damaged: what is known of the model does not fit it ({error!r})") from None


@dataclass
class Scored:
    """log P of a given output: of all of it, and of each symbol, `<eos>` included."""

    input: Any
    output: str
    log_probability: float
    tokens: list[tuple[str, float]]

    def to_dict(self) -> dict[str, Any]:
        tokens = [{"text": text, "log_probability": value} for text, value in self.tokens]
        return {"input": self.input, "output": self.output, "log_probability": self.log_probability, "tokens": tokens}


class Model:
    """An exported model. It has no state that a prediction changes, so threads may share it."""

    def __init__(self, folder: Path, *, threads: int = 0):
        self.folder, self.known = folder, _metadata(folder)
        known = self.known
        _check_files(folder)
        self.inputs = list(known["inputs"])
        columns = {**known["inputs"], "output": known["output"]}
        self.columns = {name: str(column.get("column") or name) for name, column in columns.items()}
        self.readers = {name: of_kind(ALL_READERS, folder, name, column) for name, column in known["inputs"].items()}
        self.writer = of_kind(WRITERS, folder, "output", known["output"])
        self.encoder = _session(folder / ENCODER, threads)
        self.step = None if known["one_step"] else _session(folder / STEP, threads)
        self.layer: OutputLayer | None = None
        if known.get("shortlist"):
            sizes = {name: len(each.vocabulary) for name, each in self.readers.items() if isinstance(each, TextReader)}
            int8 = bool(known.get("int8"))
            self.layer = OutputLayer(folder, sizes, len(self.writer.vocabulary), int8=int8)
        asked = set(LAYER).intersection(() if self.step is None else self.step.inputs)
        if asked != set(() if self.layer is None else self.layer.arrays):
            raise UserError(f"{folder}: damaged: {STEP} and {METADATA} do not agree on a shortlist")
        hard, heads = bool(known.get("hard")), int(known.get("heads", 1))
        reason = "" if known["looked_at"] else str(known.get("why_no_looks", ""))
        self.answers = AnswerWriter(
            self.writer.vocabulary, self.writer.text_of, known["looked_at"], heads=heads, hard=hard, reason=reason
        )

    # ------------------------------------------------------------ prediction

    def predict(self, values: Any = None, *, replace_unknown: bool | None = None, **options: Any) -> Any:
        """The prediction of one input, or of a list of them: text, or {name: value} where the model reads several.

        options: those of `SearchOptions`; prefix: a text; target: an output to follow instead of searching for one;
        maps: looks of every head and layer.
        """
        several = isinstance(values, list | tuple)
        rows = [self.row(value) for value in (values if several else [values])]
        predictions = self.predict_rows(rows, replace_unknown=replace_unknown, **options)
        return predictions if several else predictions[0]

    def predict_rows(
        self,
        rows: Sequence[Row],
        *,
        replace_unknown: bool | None = None,
        maps: bool = False,
        first_row: int = 0,
        shortlist: bool | None = None,
        **options: Any,
    ) -> list[Prediction]:
        """One prediction per row, in their order; first_row: the number of the first in its table, which with the seed
        fixes what is sampled; shortlist: False considers every symbol, though the model has a shortlist."""
        if self.known["numeric"]:
            raise UserError(f"{self.folder}: the runtime gives texts and labels; this model gives numbers")
        if options.get("oracle") is not None:
            raise UserError("oracle: an exported model cannot be made to look elsewhere; seq2see itself can")
        if shortlist is not None and self.layer is None:
            raise UserError("shortlist: this model was exported without one")
        target, prefix = options.pop("target", None), options.pop("prefix", None)
        if target is not None and prefix is not None:
            raise UserError("prefix: a target is a whole output already")
        chosen = self._options(options)
        replaced = bool(self.known["search"].get("replace_unknown")) if replace_unknown is None else replace_unknown
        predictions: list[Prediction | None] = [None] * len(rows)
        full = []
        for number, row in enumerate(rows):
            reason = self.missing(row)
            if reason:
                predictions[number] = Prediction.blank(self._display(row), self.known["answer"], reason)
            else:
                full.append(number)
        lengths = [sum(len(row[name]) for name in self.inputs) + 1 for row in rows]
        factor = max(chosen.beam, chosen.n_best)
        for batch in plan_batches([lengths[number] for number in full], factor=factor):
            numbers = [full[place] for place in batch]
            columns = self.read([rows[number] for number in numbers])
            own = self._forced(chosen, columns, [rows[number] for number in numbers], prefix=prefix, target=target)
            places = [first_row + number for number in numbers]
            for number, best in zip(
                numbers, self._search(columns, places, own, maps=maps, shortlist=shortlist is not False), strict=True
            ):
                predictions[number] = self._prediction(rows[number], best, replace_unknown=replaced)
        return [prediction for prediction in predictions if prediction is not None]

    def score(self, rows: Sequence[tuple[Any, str]]) -> list[Scored]:
        """log P of given outputs, pairs of an input and its output."""
        if self.known.get("stream"):
            raise UserError("this model reads a text as a stream, which seq2see itself scores; here it can be sampled")
        scored = []
        for value, output in rows:
            row = self.row(value)
            if self.known["one_step"]:
                scored.append(self._score_label(row, output))
                continue
            prediction = self.predict_rows([row], target=output, replace_unknown=False)[0]
            if prediction.reason:
                raise UserError(f"{prediction.reason}: nothing to score")
            tokens = [(token.text, math.log(max(token.probability, TINY))) for token in prediction.tokens]
            scored.append(Scored(prediction.input, output, prediction.log_probability, tokens))
        return scored

    def _score_label(self, row: Row, label: str) -> Scored:
        labels = self.writer.vocabulary.symbols
        if label not in labels:
            raise UserError(f"unknown label '{label}'{nearest(label, labels)}; allowed: {', '.join(labels)}")
        prediction = self.predict_rows([row], n_best=len(labels))[0]
        if prediction.reason:
            raise UserError(f"{prediction.reason}: nothing to score")
        ranked = {prediction.label: prediction.log_probability}
        ranked |= {other.text: other.log_probability for other in prediction.alternatives}
        return Scored(prediction.input, label, ranked[label], [(label, ranked[label])])

    # ------------------------------------------------------------ rows

    def row(self, value: Any) -> dict[str, str]:
        """The values of one input by name; a text where the model reads one, nothing where it reads none."""
        if isinstance(value, Mapping):
            unknown = [str(name) for name in value if name not in self.inputs]
            missing = [name for name in self.inputs if name not in value]
            if unknown or missing:
                what = f"unknown input '{unknown[0]}'" if unknown else f"input '{missing[0]}' is missing"
                raise UserError(f"{what}; allowed: {', '.join(self.inputs) or 'none, this model reads no input'}")
            found = dict(value)
        elif value is None and not self.inputs:
            found = {}
        elif len(self.inputs) == 1:
            found = {self.inputs[0]: value}
        else:
            wanted = f"{{name: value}} of {', '.join(self.inputs)}" if self.inputs else "no input"
            raise UserError(f"this model reads {wanted}, got {value!r}")
        return {name: self._text(name, value) for name, value in found.items()}

    def _text(self, name: str, value: Any) -> str:
        """A value as a table has it; sentences and elements may come as a list of texts."""
        if isinstance(value, str):
            return value
        joined = getattr(self.readers[name], "joined", None)
        if joined is not None and isinstance(value, list) and all(isinstance(item, str) for item in value):
            return str(joined(value))
        wanted = "a text" if joined is None else "a text, or a list of texts,"
        raise UserError(f"input '{name}': {wanted} expected, got {type(value).__name__}")

    @property
    def files(self) -> list[str]:
        """The inputs that are paths of files."""
        return [name for name, reader in self.readers.items() if isinstance(reader, media.FileReader)]

    def read(self, rows: Sequence[Row]) -> dict[str, Column]:
        """The columns of a batch, with what can be copied from one of them."""
        columns = {name: reader.read([row[name] for row in rows]) for name, reader in self.readers.items()}
        copied = self.known.get("copied")
        if copied:
            column = columns[copied["input"]]
            ids = [self._copyable(symbols)[0] for symbols in column.symbols]
            arrays, _ = padded(ids)
            mask = column.arrays["mask"]
            wide = int(np.prod(mask.shape[1:]))
            arrays = np.pad(arrays, ((0, 0), (0, max(wide - arrays.shape[1], 0))))
            columns[copied["input"]] = replace(column, arrays=column.arrays | {"copyable/ids": arrays})
        return columns

    def _copyable(self, symbols: Sequence[str]) -> tuple[list[int], list[str]]:
        assert isinstance(self.writer, TextReader)
        return copy_ids(map(self.writer.normalise, symbols), self.writer.vocabulary)

    def words(self, columns: Mapping[str, Column]) -> list[list[str]] | None:
        """The words of each input that can be copied and are not in the vocabulary; None where none can."""
        copied = self.known.get("copied")
        return None if not copied else [self._copyable(symbols)[1] for symbols in columns[copied["input"]].symbols]

    def missing(self, row: Row) -> str:
        """Why a row cannot be predicted; empty where it can."""
        empty = [name for name in self.known["required"] if not row[name].strip()]
        if not empty:
            return ""
        return "the input is empty" if len(self.inputs) == 1 else f"empty input: {', '.join(empty)}"

    def _display(self, row: Row) -> Any:
        return next(iter(row.values())) if len(row) == 1 else dict(row) or None

    # ------------------------------------------------------------ search

    def _options(self, options: Mapping[str, Any]) -> SearchOptions:
        if self.known["one_step"]:
            useless = [name for name, value in options.items() if value is not None and name != "n_best"]
            if useless:
                raise UserError(f"{', '.join(useless)}: a label is not searched for; n_best tells the likeliest ones")
            return SearchOptions(sample=True, n_best=options.get("n_best") or 1, max_length=1)
        known = [name for name in SearchOptions.__dataclass_fields__ if name not in LANGUAGE_MODEL]
        if any(options.get(name) is not None for name in LANGUAGE_MODEL):
            raise UserError("language_model: an exported model is searched without one; seq2see itself can do it")
        unknown = [name for name in options if name not in known]
        if unknown:
            raise UserError(f"unknown option '{unknown[0]}'{nearest(unknown[0], known)}; allowed: {', '.join(known)}")
        chosen = merged_options(self.known["search"], options, inputs=bool(self.inputs), every=True)
        if options.get("seed") is not None and not chosen.sample:
            raise UserError("seed: nothing is drawn; set sample")
        self._check_length(chosen.max_length, "max_length")
        return chosen

    def _check_length(self, length: int, what: str) -> None:
        most = self.known.get("most_steps")
        if most is not None and length > most:
            raise UserError(f"{what}: {length} symbols; the model has learned {most} positions, and none beyond")

    def _forced(
        self,
        options: SearchOptions,
        columns: Mapping[str, Column],
        rows: Sequence[Row],
        *,
        prefix: str | None,
        target: str | None,
    ) -> SearchOptions:
        """The options with the ids that outputs begin with, or are."""
        if prefix is None and target is None:
            return options
        if self.known["one_step"]:
            raise UserError(f"{'prefix' if target is None else 'target'}: a label has no beginning to be given")
        words = self.words(columns) or [[] for _ in rows]
        text = prefix if target is None else target
        assert text is not None
        symbols = self.writer.whole(text)
        ids = [target_ids(symbols, self.writer.vocabulary, own) for own in words]
        if target is None:
            return replace(options, prefix=ids)
        whole = [[*row, EOS] for row in ids]
        self._check_length(max(map(len, whole)), "target")
        return SearchOptions(prefix=whole, max_length=max(map(len, whole)), runners_up=options.runners_up)

    def _search(
        self,
        columns: Mapping[str, Column],
        numbers: Sequence[int],
        options: SearchOptions,
        *,
        maps: bool,
        shortlist: bool,
    ) -> list[list[Hypothesis]]:
        stepper = GraphStepper(self, columns, len(numbers), ctc=float(options.ctc), maps=maps, shortlist=shortlist)
        if self.known["one_step"]:
            return rank_labels(stepper, len(numbers), options)
        return run_search(stepper, list(numbers), options)

    def _prediction(self, row: Row, hypotheses: Sequence[Hypothesis], *, replace_unknown: bool) -> Prediction:
        ranked = [self.answers.alternative(each, replace_unknown=replace_unknown) for each in hypotheses]
        best, field = ranked[0], "label" if self.known["one_step"] else "text"
        made = Prediction(self._display(row))
        setattr(made, field, best.text)
        made.tokens, made.log_probability, made.score = best.tokens, best.log_probability, best.score
        made.looks, made.alternatives, made.given = best.looks or made.looks, ranked[1:], self.known.get("given", "")
        return made


class GraphStepper:
    """The hypotheses of a batch in the graphs of a model: see `seq2see.search.stepper.Stepper`."""

    def __init__(
        self, model: Model, columns: Mapping[str, Column], rows: int, *, ctc: float, maps: bool, shortlist: bool
    ):
        self._model, self._share, self._maps = model, ctc, maps
        feed = {f"{name}/{part}": array for name, column in columns.items() for part, array in column.arrays.items()}
        found = model.encoder.run(feed or {"rows": np.zeros(rows, dtype=np.int64)})
        self._answer = found.pop("answer", None)
        self._first = {name: array for name, array in found.items() if name.startswith("state/")}
        self._known = {name: array for name, array in found.items() if not name.startswith(("state/", "map/", "ctc/"))}
        self._weights = {name: array for name, array in found.items() if name.startswith("weights/")}
        self._frames = (found.get("ctc/log_probs"), found.get("ctc/mask"))
        self._state: dict[str, ndarray] = {}
        self._ctc: CtcPrefixScorer | None = None
        self._inputs = np.arange(rows)
        self._position = 0
        self._short: dict[str, ndarray] | None = None
        if model.layer is not None and shortlist and not ctc:
            self._symbols, self._needed = model.layer.symbols(columns, rows)
            self._short = model.layer.rows(self._symbols)
        self.places = {name: self._places(name, columns) for name in model.known["layouts"]}
        self.inner = self._encoder_looks(found, columns, rows)
        words = model.words(columns) or [[] for _ in range(rows)]
        vocabulary = len(model.writer.vocabulary)
        self.writable = CopyVocabulary(vocabulary, vocabulary + np.array([len(own) for own in words]), words)
        if ctc and self._frames[0] is None:
            raise UserError(f"ctc {ctc:g}: this model was trained without loss.ctc; allowed: 0")

    def _places(self, name: str, columns: Mapping[str, Column]) -> JointPlaces:
        own, layer, _ = name.rpartition(".layer-")
        own = own if layer else name
        mask, parent = self._known[f"looks/{name}/mask"], self._known.get(f"looks/{name}/parent")
        made = _layout(self._model.known["layouts"][name])
        tokens = _region_names(own, columns, made) if made.kind == "frames-grid" else _place_names(own, columns, mask)
        return JointPlaces(mask, np.ones(len(mask), dtype=bool), made, tokens, lower=bool(layer), parent=parent)

    def _encoder_looks(
        self, found: Mapping[str, ndarray], columns: Mapping[str, Column], rows: int
    ) -> list[dict[str, EncoderLook]]:
        """The encoders' own attention, such as words within sentences."""
        looks: list[dict[str, EncoderLook]] = [{} for _ in range(rows)]
        for name, layout in self._model.known["maps"].items():
            weights, asking, over = (found[f"map/{name}/{part}"] for part in ("weights", "rows", "places"))
            inputs = _place_names(name, columns, over) or _place_names(name.rpartition(".")[2], columns, over)
            queries = _place_names(name.rpartition(".")[0], columns, asking)
            parent = found.get(f"map/{name}/parent")
            places = JointPlaces(over, np.ones(rows, dtype=bool), _layout(layout), parent=parent)
            for row in range(rows):
                real = weights[row][..., asking[row], :][..., over[row]].astype(np.float32)
                looks[row][name] = EncoderLook(
                    real, places.layout_of(row), inputs[row] if inputs else [], queries[row] if queries else []
                )
        return looks

    def begin(self, width: int) -> None:
        """Start with `width` empty hypotheses for each input."""
        self._state = {name: np.repeat(array[:, None], width, axis=1) for name, array in self._first.items()}
        self._width, self._position = width, 0
        log_probs, mask = self._frames
        if self._share and log_probs is not None and mask is not None:
            self._ctc = CtcPrefixScorer.begin(log_probs, mask, width=width)

    def step(
        self, tokens: ndarray | None, forced: Mapping[str, ndarray] | None = None
    ) -> tuple[ndarray, dict[str, ndarray]]:
        """Extend every hypothesis by its token."""
        if tokens is None:
            assert self._answer is not None
            log_probs, weights = _checked(self._answer), self._weights
        else:
            layer = self._model.layer
            log_probs, weights = self._run(tokens, {} if layer is None else layer.rows(None))
        log_probs = self._with_ctc(self._padded(log_probs), tokens)
        np.maximum(log_probs, LEAST, out=log_probs)
        return self.writable.cut(log_probs, self._inputs), self._looks(weights)

    def step_top(
        self, tokens: ndarray, number: int, forced: Mapping[str, ndarray] | None = None
    ) -> tuple[Likeliest, dict[str, ndarray]]:
        """The same, of the likeliest symbols alone; of the shortlist where there is one."""
        if self._short is None or self._needed.sum(1).min() < number:
            log_probs, looks = self.step(tokens, forced)
            return likeliest(log_probs, number), looks
        log_probs, weights = self._run(tokens, self._short)
        kept, mass = among(log_probs, self._needed[self._inputs])
        best = likeliest(kept, number)
        values = np.maximum(best.log_probs - mass[:, None], LEAST)
        return Likeliest(self._symbols[best.ids], values), self._looks(weights)

    def _run(self, tokens: ndarray, layer: Mapping[str, ndarray]) -> tuple[ndarray, dict[str, ndarray]]:
        """The step's graph: log-probabilities (rows, symbols) and looks; layer: rows of its output layer."""
        assert self._model.step is not None
        feed = {**self._known, **self._state, **layer}
        feed["token"] = tokens.reshape(-1, self._width)
        feed["position"] = np.array(self._position)
        found = self._model.step.run(feed)
        log_probs = _checked(found.pop("log_probs"))
        weights = {name.removeprefix("next/"): array for name, array in found.items() if "/weights/" in name}
        self._state = {name.removeprefix("next/"): array for name, array in found.items() if "/state/" in name}
        self._position += 1
        return log_probs, weights

    def _looks(self, weights: Mapping[str, ndarray]) -> dict[str, ndarray]:
        named = {name.removeprefix("weights/"): array for name, array in weights.items()}
        if self._maps:
            return named
        return {
            name: array if array.ndim == 2 else array.mean(1)
            for name, array in named.items()
            if not self.places[name].lower
        }

    def _padded(self, log_probs: ndarray) -> ndarray:
        """With minus infinity at words of inputs that have left the batch."""
        missing = self.writable.symbols - log_probs.shape[1]
        return log_probs if missing <= 0 else np.pad(log_probs, ((0, 0), (0, missing)), constant_values=-np.inf)

    def _with_ctc(self, log_probs: ndarray, tokens: ndarray | None) -> ndarray:
        """Times the distribution of the CTC prefix scorer, each to the power of its share."""
        if self._ctc is None or tokens is None:
            return log_probs
        self._ctc = self._ctc.read(tokens)
        scores = np.maximum(self._ctc.log_probs(), LEAST)
        joint = (1 - self._share) * np.maximum(log_probs, LEAST) + self._share * scores
        joint -= joint.max(-1, keepdims=True)
        return np.asarray(joint - np.log(np.exp(joint).sum(-1, keepdims=True)), dtype=np.float32)

    def select(self, rows: ndarray, inputs: ndarray) -> None:
        """Continue with these hypotheses of these inputs."""
        if self._ctc is not None:
            self._ctc = self._ctc.select(rows)
        if len(rows) != self._width * len(self._inputs) or (rows != np.arange(len(rows))).any():
            shape = (len(inputs), self._width)
            self._state = {
                name: array.reshape(-1, *array.shape[2:])[rows].reshape(*shape, *array.shape[2:])
                for name, array in self._state.items()
            }
        if len(inputs) < len(self._inputs):
            self._known = {name: array[inputs] for name, array in self._known.items()}
            self._ctc = None if self._ctc is None else self._ctc.compact(inputs)
            self._inputs = self._inputs[inputs]


def _checked(log_probs: ndarray) -> ndarray:
    """The same; refused where they are not numbers: a softmax that fails fails in every symbol."""
    if np.isnan(log_probs[:, 0]).any():
        raise UserError("the model's probabilities are not numbers: its weights are damaged, or training diverged")
    return log_probs


def _layout(known: Mapping[str, Any]) -> Layout:
    return Layout(known["kind"], tuple(known["shape"]), bool(known["leftward"]))


def _region_names(name: str, columns: Mapping[str, Column], layout: Layout) -> list[list[str]]:
    """The names of the regions of frames: frame, row and column, from 1."""
    _, rows, across = layout.shape
    cells = [f"{row},{column}" for row in range(1, rows + 1) for column in range(1, across + 1)]
    frames = columns[name.partition(".")[0]].names[""]
    return [[f"{frame} {cell}" for frame in row for cell in cells] for row in frames]


def _place_names(name: str, columns: Mapping[str, Column], mask: ndarray) -> list[list[str]] | None:
    """The names of the real places of each row; an encoder that joins frames names a place after its first one."""
    own, _, part = name.partition(".")
    column = columns.get(own)
    names = None if column is None else column.names.get(f".{part}" if part else "")
    if names is None:
        return None
    counts = [max(int(count), 1) for count in mask.sum(1)]
    return [row[:: max(-(-len(row) // count), 1)] for row, count in zip(names, counts, strict=True)]


# ---------------------------------------------------------------- files


class Graph:
    """A graph in onnxruntime."""

    def __init__(self, session: onnxruntime.InferenceSession):
        self._session = session
        self.inputs = [each.name for each in session.get_inputs()]
        self._outputs = [each.name for each in session.get_outputs()]

    def run(self, feed: Mapping[str, ndarray]) -> dict[str, ndarray]:
        """All outputs by name; inputs that the graph has no use for are left out."""
        given = {name: feed[name] for name in self.inputs}
        try:
            outputs = self._session.run(None, given)
        except Exception as error:  # noqa: BLE001 - the library raises nothing more precise
            reason = str(error).splitlines()[0]
            raise UserError(f"the model cannot compute this input (it may be too long): {reason}") from None
        return dict(zip(self._outputs, outputs, strict=True))


def _session(path: Path, threads: int) -> Graph:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads or min(cores(), MOST_THREADS)
    # Threads that still spin after a run would take their core from the search, and from the other graph.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        return Graph(onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]))
    except Exception as error:  # noqa: BLE001 - the library raises nothing more precise
        raise UserError(f"{path}: not a graph that onnxruntime can run: {str(error).splitlines()[0]}") from None


def _metadata(folder: Path) -> dict[str, Any]:
    """runtime.json, checked as far as everything else relies on it."""
    path = folder / METADATA
    if not path.is_file():
        made = "`seq2see export MODEL --to onnx --out FOLDER` makes one"
        raise UserError(f"{folder}: no exported model, {METADATA} is missing; {made}")
    known = read_json(path, most=16 * MEBIBYTE, what="what is known of an exported model")
    if not isinstance(known, dict) or known.get("format") not in FORMATS:
        found = known.get("format") if isinstance(known, dict) else type(known).__name__
        raise UserError(f"{path}: format {found!r}; this runtime reads formats {' and '.join(map(str, FORMATS))}")
    for key, kind in KEYS.items():
        if not isinstance(known.get(key), kind):
            raise UserError(f"{path}: damaged: '{key}' should be {kind.__name__}, got {shortened(known.get(key))}")
    if not all(isinstance(column, dict) for column in (*known["inputs"].values(), known["output"])):
        raise UserError(f"{path}: damaged: 'inputs' and 'output' should hold the settings of columns")
    for key, most in LIMITS.items():
        value = known["search"].get(key)
        if type(value) is not int or not 0 <= value <= most:
            raise UserError(f"{path}: damaged: search.{key} {shortened(value)}; allowed: 0 to {most:,}")
    return known


def _check_files(folder: Path) -> None:
    """Compare every file with its checksum."""
    path = folder / CHECKSUMS
    stored = read_json(path, most=MEBIBYTE, what="a list of checksums") if path.is_file() else {}
    files = stored.get("files") if isinstance(stored, dict) else None
    if not isinstance(files, dict):
        raise UserError(f"{path}: damaged or missing: a list of checksums expected")
    there = [path.name for pattern in ("*.onnx", "*.npy") for path in folder.glob(pattern)]
    unlisted = [name for name in (METADATA, ENCODER, *there) if name not in files]
    if unlisted:
        raise UserError(f"{path}: damaged: no checksum of {', '.join(unlisted)}")
    for name, digest in files.items():
        file = folder / Path(str(name)).name
        if not file.is_file():
            raise UserError(f"{file}: missing")
        with file.open("rb") as opened:
            if hashlib.file_digest(opened, "sha256").hexdigest() != digest:
                raise UserError(f"{file}: changed since it was exported: its checksum does not fit")
