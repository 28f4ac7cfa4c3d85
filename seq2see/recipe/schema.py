"""The five answers as typed settings: what may stand in a recipe, and what holds where it is silent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from seq2see.attention import scores
from seq2see.attention.build import AttentionSettings
from seq2see.data.formats import DataSettings
from seq2see.decoders.base import DecoderSettings
from seq2see.encoders.recurrent import RecurrentEncoderSettings
from seq2see.evaluation import (
    BASELINES,
    METRICS,
    baselines_for,
    default_baseline,
    default_metrics,
    metrics_for,
    registered_name,
)
from seq2see.modalities.text import TextOutput
from seq2see.settings.base import Amount, Count, Fitted, NameOf, Positive, Seed, Settings, Share, Temperature, Weight
from seq2see.settings.columns import EncoderSettings, InputColumn, OutputColumn, TextSettings, View

# ---------------------------------------------------------------- loss, training, use


class AlignmentSettings(Settings):
    """Supervised attention: where a decoder should look, as far as the table tells."""

    column: str | None = Field(
        None,
        description="column that says where each part of the output is in the first input looked at. A text: links "
        "`0-0 1-2 1?3` (symbol of the input, symbol of the output, from 0; ?: possible, not sure). A sound or video: "
        'times `[["yes", 0.2, 0.5], ..]` (word, start, end). Not given: none',
    )
    weight: Amount = Field(
        1.0,
        description="of -sum_j a_true_tj log a_tj, a_true being even over a symbol's sure links; of times: of -log "
        "sum_j a_tj over the places within a symbol's time; 0: only measured",
    )
    rate: Annotated[float, Field(gt=0, le=1_000_000)] = Field(
        1.0, description="times: units in a second, 1000 for milliseconds, 25 for frames of such a video"
    )
    optional: bool = Field(
        False,
        description="a table without the column is accepted, and so is attention that cannot be trained (score "
        "uniform)",
    )


class DistillationSettings(Settings):
    """Distillation: trained models, which stay as they are, teach this one."""

    teachers: list[str] = Field(
        [],
        description="folders of the teachers, with the same inputs and output symbols; the student learns the "
        "mean of their probabilities; none: no distillation",
    )
    weight: Annotated[float, Field(ge=0, le=1)] = Field(
        0.5,
        description="w of (1 - w) (-log P of the output) + w T ** 2 KL(teachers || model) for each symbol or "
        "label; 1: only the teachers",
    )
    temperature: Temperature = Field(
        1.0, description="T: both distributions are taken to the power 1 / T; above 1, unlikely symbols count more"
    )


class RewardSettings(Settings):
    """Sequence-level training: outputs are drawn from the model, and those that a metric likes become likelier."""

    metric: Literal["none", "cider", "bleu", "edit"] = Field(
        "none",
        description="the reward of an output, measured against all outputs of the same input: CIDEr-D, BLEU of "
        "a single row, or 1 - edits / symbols; none: no rewards",
    )
    last: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5,
        description="share of the run, at its end, that maximises the reward; 1: all of it, for use with --from",
    )
    samples: Annotated[int, Field(ge=2, le=64)] = Field(
        5, description="outputs drawn for each row; each is compared with the mean of the others"
    )

    @property
    def always(self) -> bool:
        """Whether a run does nothing but reward outputs."""
        return self.metric != "none" and self.last == 1


class LossSettings(Settings):
    """What is minimised: -sum log P of the outputs."""

    label_smoothing: Share = Field(0.0, description="share of the target spread over all symbols")
    class_weights: Literal["none", "balanced"] | dict[str, Weight] = Field(
        "none", description="label outputs: balanced by frequency, or a weight for each class"
    )
    doubly_stochastic: Amount = Field(
        0.0, description="weight of sum_j (T / M - sum_t a_tj) ** 2: each place is looked at about as much as any other"
    )
    entropy: Amount = Field(0.0, description="weight of the entropy of each look: sharper looks")
    coverage: Amount = Field(
        0.0, description="weight of sum_j min(a_tj, sum_{i<t} a_ij): do not look again where you looked before"
    )
    consistency: Amount = Field(
        0.0,
        description="every row is read twice in a batch, with two dropouts: weight of the difference between "
        "the two P (R-Drop)",
    )
    ctc: Amount = Field(
        0.0,
        description="weight of the CTC loss: -log of the probability that the encoder's places in order "
        "(columns of a grid) spell the output, with blanks in between; uses its own output layer",
    )
    ctc_first: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0,
        description="share of the run, from its start, in which the loss is that of CTC alone: the decoder is not run, "
        "so updates are faster, and starts once the places are worth looking at",
    )
    ctc_alignment: Amount = Field(
        0.0,
        description="weight of -log of the attention at the places where CTC's likeliest path has the symbol, "
        "which teaches the decoder to look there",
    )
    alignment: AlignmentSettings = AlignmentSettings()
    distillation: DistillationSettings = DistillationSettings()
    reward: RewardSettings = RewardSettings()
    exploration: Amount = Field(
        0.01,
        description="choice hard, by score-function: weight of the entropy, which keeps draws from settling too early",
    )
    baseline_decay: Share = Field(
        0.9,
        description="choice hard, by score-function: decay of the moving average that is the baseline of the rewards",
    )


class NoiseSettings(Settings):
    """Noise on the symbols of texts that are read while training, drawn anew for every batch; outputs stay clean."""

    mask: Share = Field(0.0, description="share of the symbols that become <unk>")
    drop: Share = Field(0.0, description="share of the symbols that are left out")
    swap: Share = Field(0.0, description="share of the symbols that change places with the next one")

    @property
    def any(self) -> bool:
        return bool(self.mask or self.drop or self.swap)


class TrainingSettings(Settings):
    """How it is minimised."""

    optimizer: Literal["adam", "adamw", "sgd"] = Field("adam", description="the rule of an update")
    learning_rate: Annotated[float, Field(gt=0), Fitted("rate")] = Field(
        1e-3, description="the largest one of the schedule"
    )
    betas: tuple[Share, Share] = Field((0.9, 0.999), description="adam, adamw: decay of the two moving averages")
    weight_decay: Annotated[float, Field(ge=0)] = Field(0.0, description="how much weights shrink at each update")
    momentum: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="sgd: momentum, the share of the last update that is kept"
    )
    clip: Annotated[float, Field(ge=0)] = Field(1.0, description="maximum norm of the gradient; 0: no clipping")
    schedule: Literal["constant", "linear", "cosine", "inverse-sqrt", "plateau"] = Field(
        "cosine", description="of the learning rate, over the run's epochs, updates or minutes"
    )
    warmup: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.02, description="share of the run in which the rate rises from 0"
    )
    floor: Annotated[float, Field(ge=0, le=1)] = Field(0.02, description="share of the rate at the end of the schedule")
    batch_tokens: Annotated[Positive, Fitted("batch")] = Field(
        1500, description="symbols in a batch, padding included, inputs and output added up"
    )
    batch_rows: Positive = Field(256, description="... but at most this many rows")
    epochs: Annotated[Count, Fitted("epochs")] = Field(20, description="passes over the data; 0: no limit")
    updates: Count = Field(0, description="steps of the optimizer; 0: no limit")
    minutes: Annotated[float, Field(ge=0)] = Field(
        0.0, description="of training, which also set the schedule; 0: no limit"
    )
    patience: Count = Field(
        0,
        description="stop after this many reports without improvement of the metric or the perplexity on dev "
        "(or epochs, if there are fewer reports), or begin with rewards if they are still to come (loss.reward); "
        "0: never",
    )
    metric: str | None = Field(None, description="dev metric that picks the best model; not given: the task's first")
    report_every: Annotated[Count, Fitted("reports")] = Field(
        0,
        description="updates between reports; 0: once per epoch, or once in several where a report would take more "
        "than a twentieth of the time (judged by the numbers of rows), and at least every 2,000 updates",
    )
    checkpoint_every: Positive = Field(1000, description="updates between checkpoints")
    checkpoint_seconds: Annotated[float, Field(ge=0)] = Field(
        60.0,
        description="maximum time between checkpoints (longer if writing one takes over 2 % of it); 0: no limit",
    )
    average: Positive = Field(1, description="the weights of this many best checkpoints are averaged at the end")
    ema: Annotated[float, Field(ge=0, lt=1), Fitted("ema")] = Field(
        0.0,
        description="decay of an exponential moving average of the weights, such as 0.99, which reports measure and "
        "the model keeps; 0: the weights themselves",
    )
    scheduled_sampling: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description="share of the model's own tokens at the end of training, growing from 0"
    )
    noise: NoiseSettings = NoiseSettings()
    bptt: Positive = Field(128, description="streams: symbols between two updates")
    lanes: Positive = Field(32, description="streams: contiguous pieces read side by side")
    dev_rows: Count = Field(1000, description="rows decoded for each report's metrics; 0: all")
    samples: Count = Field(3, description="outputs shown with each report; 0: none, and no rows are kept as examples")
    film: Annotated[int, Field(ge=0, le=12)] = Field(
        3, description="dev examples whose attention is filmed while the model learns (film.jsonl); 0: no film"
    )
    seed: Seed = Field(1, description="same seed, same result")
    device: str = Field("cpu", description="cpu, cuda, cuda:1, mps ...")
    tensorboard: bool = Field(False, description="also write curves for TensorBoard (extra `tensorboard`)")
    precision: Literal["float32", "bfloat16", "auto"] = Field(
        "float32",
        description="of the large products in training; auto: bfloat16 if the processor is faster with it",
    )
    threads: Annotated[int, Field(ge=0, le=1024)] = Field(
        0, description="of the processor; 0: OMP_NUM_THREADS, or as many as there are cores, at most 8"
    )
    deterministic: bool = Field(
        False,
        description="one thread and only deterministic algorithms, so that the number of cores does not matter: "
        "slower if there are several",
    )
    wait_minutes: Annotated[float, Field(gt=0)] = Field(
        30.0, description="several processes (torchrun): how long one waits for the others before the run ends"
    )


class SearchSettings(Settings):
    """How an output is looked for, unless the command line says otherwise."""

    beam: Annotated[int, Field(gt=0, le=1_000)] = Field(1, description="hypotheses kept at each step; 1: greedy")
    length_penalty: Annotated[float, Field(ge=0, le=10)] = Field(
        1.0, description="score = log-probability / length ** penalty"
    )
    max_length: Annotated[int, Field(gt=0, le=100_000)] = Field(100, description="symbols of the longest output")
    min_length: Annotated[int, Field(ge=0, le=100_000)] = Field(0, description="symbols of the shortest output")
    avoid_unknown: bool = Field(False, description="never write <unk>, however likely it is")
    replace_unknown: bool = Field(False, description="<unk> is replaced by the input symbol with the largest weight")
    ctc: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description="share of the CTC prefix score (loss.ctc) in the score; 0: only the decoder"
    )
    consensus: Annotated[float, Field(ge=0, le=100)] = Field(
        0.0,
        description="above 0: of the beam's outputs, the one most similar to the others (phrases of up to 4 "
        "symbols), each weighted by P ** (1 / consensus); 0: the one with the highest score",
    )
    language_model: str | None = Field(
        None,
        description="folder of a trained language model, or file of n-grams in ARPA format (also .gz), that helps "
        "to rank outputs; not given, or none: no language model",
    )
    language_model_weight: Annotated[float, Field(gt=0, le=10)] = Field(
        0.3, description="w in log P(y | x) + w log P_LM(y) - u log P_ILM(y)"
    )
    language_model_internal: Annotated[float, Field(ge=0, le=10)] = Field(
        0.0,
        description="u, the weight of the decoder's internal language model, which is subtracted: the same decoder "
        "over a memory of zeros; 0: not subtracted",
    )
    language_model_use: Literal["fusion", "rescore"] = Field(
        "fusion",
        description="at every step of the search, which needs a language model over the output's own symbols (fusion), "
        "or on the outputs that the beam has found, as texts (rescore)",
    )


class EvaluationSettings(Settings):
    """What a model is measured by."""

    metrics: list[str] = Field([], description="by name, the first one leads; not given: what fits the output")
    baseline: Annotated[str, NameOf(BASELINES, ("none",))] | None = Field(
        None, description="the trivial model printed next to the metrics"
    )
    further_baselines: list[Annotated[str, NameOf(BASELINES)]] = Field(
        [],
        description="further trivial models, measured by `evaluate`; nearest keeps up to 5,000 rows of training in the "
        "model's folder, or none with training.samples 0",
    )


class Recipe(Settings):
    """A complete recipe: data, encoder, attention, decoder, loss, training, search and evaluation."""

    task: str = Field("own", description="a name for the task")
    description: str = Field("", description="one line that says what the input and the output are")
    inputs: dict[str, InputColumn] = Field({}, description="inputs by name; none: a language model")
    output: OutputColumn = TextOutput()
    data: DataSettings = DataSettings()
    encoder: EncoderSettings = RecurrentEncoderSettings()
    attention: AttentionSettings = AttentionSettings()
    decoder: DecoderSettings = DecoderSettings()
    loss: LossSettings = LossSettings()
    training: TrainingSettings = TrainingSettings()
    search: SearchSettings = SearchSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    fitted: dict[str, str] = Field(
        {},
        description="written by a run: the settings that were `auto`, each with the value it got and the table's size",
    )

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def vocabulary_owner(self, name: str) -> str:
        """The name whose vocabulary this input (or `output`) uses: its own, or the one it shares.

        One step is enough: a recipe in which the shared one shares in its turn is refused.
        """
        settings = self.output if name == "output" else self.inputs[name]
        shared = getattr(settings, "share", None)
        return shared if shared in self.inputs else name

    def sized_by_data(self, name: str) -> bool:
        """Whether only data tell how many symbols, labels or numbers this input (or `output`) has."""
        settings = self.output if name == "output" else self.inputs[name]
        return settings.sized_by_data

    @property
    def generated_labels(self) -> str | None:
        """What generated labels describe; None where outputs come from a column."""
        return self.output.generated

    @property
    def needed(self) -> list[str]:
        """The inputs that must not be empty: rows in which one is empty are skipped."""
        return [name for name, column in self.inputs.items() if not getattr(column, "may_be_empty", False)]

    @property
    def videos(self) -> list[str]:
        """The inputs that can be read backwards."""
        return [name for name, column in self.inputs.items() if column.reversible]

    def reader_of(self, name: str) -> str:
        """The input whose encoder reads this one: inputs that share a vocabulary share the encoder too."""
        return self.vocabulary_owner(name)

    def encoder_of(self, name: str) -> EncoderSettings:
        """The encoder settings of an input: its own, or the recipe's."""
        own = self.inputs[self.reader_of(name)].encoder
        return own if own is not None else self.encoder

    def encoder_path(self, name: str) -> str:
        """The key under which the encoder settings of an input stand."""
        reader = self.reader_of(name)
        return "encoder" if self.inputs[reader].encoder is None else f"inputs.{reader}.encoder"

    @property
    def unread(self) -> list[str]:
        """Inputs whose encoder reads another kind of input, without those that another one's encoder reads."""
        own = [name for name in self.inputs if self.reader_of(name) == name]
        return [name for name in own if not self.encoder_of(name).can_read(self.inputs[name])]

    @property
    def read_by(self) -> dict[str, list[str]]:
        """{path: the inputs that are read by the encoder whose settings stand there}"""
        names_by_path: dict[str, list[str]] = {}
        for name in self.inputs:
            if self.reader_of(name) in self.inputs:
                names_by_path.setdefault(self.encoder_path(name), []).append(name)
        return names_by_path

    @property
    def encoders(self) -> dict[str, EncoderSettings]:
        """{path: settings} of the encoders that read some input, and of those that inputs have of their own."""
        columns = [(f"inputs.{name}.encoder", column.encoder) for name, column in self.inputs.items()]
        own = {path: encoder for path, encoder in columns if encoder is not None}
        common = any(self.encoder_path(name) == "encoder" for name in self.inputs)
        return own | ({"encoder": self.encoder} if common else {})

    def with_encoder(self, path: str, settings: EncoderSettings) -> Recipe:
        """The recipe with those settings at `encoder`, or at `inputs.NAME.encoder`."""
        if path == "encoder":
            return self.model_copy(update={"encoder": settings})
        name = path.split(".")[1]
        changed = self.inputs[name].model_copy(update={"encoder": settings})
        return self.model_copy(update={"inputs": {**self.inputs, name: changed}})

    @property
    def texts(self) -> dict[str, TextSettings]:
        """The inputs that are made of symbols."""
        return {name: column for name, column in self.inputs.items() if isinstance(column, TextSettings)}

    def joined_texts(self, row: Mapping[str, str]) -> str:
        """All text inputs of a row, one below the other."""
        return "\n".join(row[name] for name in self.texts)

    @property
    def looked_at(self) -> list[str]:
        """What the decoder looks at: names of inputs, or of further places of theirs; nothing without attention."""
        if self.attention.score == "none":
            return []
        if self.attention.over is not None:
            return names(self.attention.over)
        return [self.copied_places or name if name == self.copied_from else name for name in self.with_places]

    @property
    def with_places(self) -> list[str]:
        """The inputs that can be looked at: not vectors, nor pictures made into one, which are one place each."""
        return [name for name in self.inputs if not self.one_place(name)]

    def one_place(self, name: str) -> bool:
        """Whether an input is a single place, at which every look is the same."""
        return self.inputs[name].one_place or self.encoder_of(name).layout == "vector"

    @property
    def state_size(self) -> int | None:
        """Size of the decoder state that attention is queried with; None: only the built model knows."""
        if self.decoder.own:
            return None
        if self.decoder.starts_by_size or not self.started_by:
            return self.decoder.size
        sizes = [self.encoder_of(name).summary_size for name in self.started_by]
        times = 2 if self.decoder.join == "compare" else 1
        return None if None in sizes else times * sum(size or 0 for size in sizes)

    @property
    def layer_counts(self) -> dict[str, int]:
        """{path of the settings: layers that are built}; together at most `MOST_LAYERS`."""
        counts = {path: len(read) * self.encoder_of(read[0]).layer_count for path, read in self.read_by.items()}
        looks = len(self.looked_at) * (getattr(self.attention, "layers", 1) if self.looked_at else 1)
        return counts | {"decoder": self.decoder.layer_count(looks) + looks}

    def view_of(self, looked_at: str) -> View:
        """(size, layout) of the places of `input`, or of `input.words`."""
        name, _, part = looked_at.partition(".")
        settings = self.encoder_of(name)
        if not part or settings.own:
            return settings.places_size, settings.layout
        return settings.further[part]

    @property
    def started_by(self) -> list[str]:
        return names(self.decoder.start)

    @property
    def fed_every_step(self) -> list[str]:
        return names(getattr(self.decoder, "every_step", None))

    @property
    def copied_from(self) -> str | None:
        """Name of the input whose words can be copied, if there is one."""
        return next(iter(names(getattr(self.decoder, "copy_from", None))), None)

    @property
    def copied_places(self) -> str | None:
        """The places that are pointed at in order to copy: the words of a text, or those of all texts of a document."""
        name = self.copied_from
        part = self.inputs[name].copied_part if name in self.inputs else ""
        return f"{name}.{part}" if part else name

    @property
    def read_along(self) -> str | None:
        """The places the output is also read off one after the other (`loss.ctc`): the first that are looked at, or
        those of the first input."""
        places = [*self.looked_at, *self.inputs]
        return places[0] if self.loss.ctc and places else None

    @property
    def used(self) -> set[str]:
        """Names of the inputs that reach the decoder, one way or another."""
        looked_at = {name.partition(".")[0] for name in self.looked_at}
        return {*looked_at, *self.started_by, *self.fed_every_step}


def names(value: str | list[str] | None) -> list[str]:
    """One name, several, or `none`, as a list."""
    if value is None or value == "none":
        return []
    return [value] if isinstance(value, str) else value


def with_plugins(recipe: Recipe) -> bool:
    """Whether some part of the model is of a class that a plug-in brought."""
    looked_back_by = [getattr(recipe.encoder_of(name), "self_attention", "none") for name in recipe.inputs]
    kinds = [scores.settings[score] for score in looked_back_by if score in scores]
    kinds += [kind for settings in nested(recipe) for kind in type(settings).__mro__ if issubclass(kind, Settings)]
    return any(kind.__module__.partition(".")[0] != "seq2see" for kind in kinds)


def nested(settings: Settings) -> Iterator[Settings]:
    """A group of keys and all groups inside it."""
    yield settings
    for _, value in settings:
        for inner in value.values() if isinstance(value, dict) else [value]:
            if isinstance(inner, Settings):
                yield from nested(inner)


def flatten(value: Any, path: str = "", *, free: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """(path, value) of every setting, except keys that are free, at any depth. path: of the value itself.

    >>> dict(flatten({"size": 3, "embedding": {"size": 4, "dropout": 0.1}}, "encoder", free=["dropout"]))
    {'encoder.size': 3, 'encoder.embedding.size': 4}
    """
    if not isinstance(value, dict):
        yield path, value
        return
    for key, inside in value.items():
        if key not in free:
            yield from flatten(inside, f"{path}.{key}" if path else key, free=free)


# ---------------------------------------------------------------- metrics and baselines
# A metric that does not fit is refused with the recipe, not after hours of training when the first report is due. Names
# that are not registered may belong to a plug-in that is loaded later; they are looked up when a run begins.

PERPLEXITY = "perplexity"
"""The metric that needs no predictions: the only one of a language model, and every model can be selected by it."""
AER = "aer"
POINTING = "pointing"
OF_LOOKS = (AER, POINTING)
"""The metrics of attention, not of outputs: they need a column of links, or of times, of which there is no aer."""


def measures_of(recipe: Recipe) -> list[str]:
    """The metrics of a recipe, the leading one first: those it names, or the default ones of its output."""
    if recipe.evaluation.metrics:
        return recipe.evaluation.metrics
    tokens = recipe.output.tokens if isinstance(recipe.output, TextSettings) else None
    return default_metrics(recipe.output.measured_as, tokens, inputs=bool(recipe.inputs))


def allowed_metrics(recipe: Recipe) -> list[str]:
    """The metrics that fit this recipe's output."""
    links = recipe.loss.alignment.column is not None
    allowed = metrics_for(recipe.output.measured_as, inputs=bool(recipe.inputs), links=links)
    return [name for name in allowed if name != AER] if links and timed_alignment(recipe) else allowed


def timed_alignment(recipe: Recipe) -> bool:
    """Whether what is looked at first lasts, so that an alignment is one of times."""
    first = recipe.looked_at[0] if recipe.looked_at else ""
    return first in recipe.inputs and recipe.inputs[first].timed


def allowed_baselines(recipe: Recipe) -> list[str]:
    """The baselines that fit this recipe."""
    output = recipe.output
    return baselines_for(
        output.measured_as, inputs=bool(recipe.inputs), text=bool(recipe.texts), continued=output.continues
    )


def baseline_of(recipe: Recipe) -> str:
    """The baseline that the recipe names, or the default of its output; none where it wants none."""
    return recipe.evaluation.baseline or default_baseline(
        recipe.output.measured_as, inputs=bool(recipe.inputs), text=bool(recipe.texts)
    )


def also_measured(recipe: Recipe) -> list[str]:
    """Further metrics that a model can be selected by: perplexity, where outputs have a probability."""
    return [] if recipe.output.numeric else [PERPLEXITY]


def fits(name: str, recipe: Recipe) -> bool:
    """Whether a metric can be taken of this recipe's model; one that is not known here may be of a plug-in."""
    registered = registered_name(name)
    return registered not in METRICS or registered in allowed_metrics(recipe)
