"""The five answers about a recipe or a model: data, encoder, decoder, parameters, loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import prod
from typing import Any

from seq2see.decoders import Decoder, DecoderEquations
from seq2see.decoders.base import SymbolSettings
from seq2see.model import EncoderDecoder
from seq2see.pipeline.bundle import PROBE, Bundle, meta_network
from seq2see.pipeline.evaluator import metrics_of
from seq2see.pipeline.fields import unbuilt_fields
from seq2see.recipe.fitting import fitted_notes
from seq2see.recipe.schema import Recipe, TrainingSettings, timed_alignment
from seq2see.settings.base import Settings
from seq2see.symbols import Symbol


@dataclass
class Answers:
    """Each answer as lines of text; the parameters also counted."""

    task: str
    description: str
    data: list[str]
    encoder: list[str]
    decoder: list[str]
    parameters: list[ParameterCount]
    loss: list[str]
    notes: list[str]

    @property
    def total(self) -> str:
        """'1,234,567', or a formula where a vocabulary is unknown."""
        return format_count(total_count(self.parameters))

    def to_dict(self) -> dict[str, Any]:
        counted = [
            {"part": entry.part, "name": entry.name, "shape": list(entry.shape), "count": _number(entry.count)}
            for entry in self.parameters
        ]
        return {
            "task": self.task,
            "data": self.data,
            "encoder": self.encoder,
            "decoder": self.decoder,
            "parameters": counted,
            "total": _number(total_count(self.parameters)),
            "loss": self.loss,
            "notes": self.notes,
        }

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """In a notebook."""
        return f"<pre>{escape(self.text())}</pre>"

    def text(self) -> str:
        """For a person to read."""
        head = f"{self.task}: {self.description}" if self.description else self.task
        blocks = [head]
        answers = [
            ("1  What is the data?", self.data),
            ("2  What is the encoder?", self.encoder),
            ("3  What is the decoder, and how is it conditioned?", self.decoder),
            ("4  What are the parameters?", _table(self.parameters, self.total) + [""] * bool(self.notes) + self.notes),
            ("5  What is the loss, and how is it minimised?", self.loss),
        ]
        blocks += ["\n".join([title, *(f"   {line}".rstrip() for line in lines)]) for title, lines in answers]
        return "\n\n".join(blocks) + "\n"


TERMS = {
    "doubly_stochastic": "sum_j (T / M - sum_t a_tj) ** 2 (doubly stochastic: no place is left out)",
    "entropy": "sum_t H(a_t) (sharper looks)",
    "coverage": "sum_tj min(a_tj, sum_{i<t} a_ij) (coverage: no place twice)",
    "ctc": "(-log sum_z prod_j softmax(W_z h_j + b_z)[z_j]), z all that give y without repetitions and blanks (CTC)",
    "ctc_alignment": "(-sum_t log sum_j a_tj), j where the likeliest z has y_t, or a neighbour",
    "consistency": "sum_t (KL(p_t || q_t) + KL(q_t || p_t)) / 2, p and q under two dropouts (R-Drop)",
}
"""What else is minimised, where the recipe gives it a weight."""


def answers_of(subject: Bundle | Recipe) -> Answers:
    """The answers about a model, exact; or about a recipe, as far as they can be known without data."""
    if isinstance(subject, Bundle):
        recipe, network, parameters = subject.recipe, subject.network, network_parameters(subject.network)
        sizes = {name: field.size for name, field in subject.fields.all.items() if field.size}
        notes: list[str] = []
    else:
        recipe, sizes = subject, _stated(subject)
        known = {name: size for name, size in sizes.items() if subject.vocabulary_owner(name) == name}
        network = meta_network(subject, known)
        parameters = recipe_parameters(subject, known, network)
        notes = _notes(subject, known)
    notes += fitted_notes(recipe.fitted)
    if isinstance(recipe.decoder, SymbolSettings) and recipe.decoder.tied:
        notes = ["V of the output layer is E of the decoder (tied): counted once", *notes]
    return Answers(
        recipe.task,
        recipe.description,
        _data(recipe, sizes, exact=isinstance(subject, Bundle)),
        _encoder(recipe, network),
        _decoder(recipe, network),
        parameters,
        _loss(recipe, network),
        notes,
    )


def _stated(recipe: Recipe) -> dict[str, int]:
    """Sizes of the vocabularies whose limit the recipe states, special symbols included."""
    fields = unbuilt_fields(recipe)
    sizes = {name: fields[recipe.vocabulary_owner(name)].stated_size for name in fields}
    return {name: size for name, size in sizes.items() if size is not None}


def _notes(recipe: Recipe, known: Mapping[str, int]) -> list[str]:
    owners = dict.fromkeys(recipe.vocabulary_owner(name) for name in [*recipe.inputs, "output"])
    unknown = [name for name in owners if name not in known and recipe.sized_by_data(name)]
    lines = []
    if unknown:
        lines.append(f"{_counted(recipe, unknown)}, known once there is data")
    limits = {name: size for name, size in known.items() if recipe.sized_by_data(name)}
    if limits:
        text = ", ".join(f"{name} {size:,}" for name, size in limits.items())
        lines.append(
            f"counted for the largest vocabularies that the recipe allows ({text}); fewer symbols need fewer parameters"
        )
    return lines


def _counted(recipe: Recipe, names: list[str]) -> str:
    """What the sizes of fields count: `|series|: numbers of each step, |output|: labels`."""
    fields = unbuilt_fields(recipe)
    counted = dict.fromkeys(fields[name].counted for name in names)
    alike = {what: [f"|{name}|" for name in names if fields[name].counted == what] for what in counted}
    return ", ".join(f"{' and '.join(sizes)}: {what}" for what, sizes in alike.items())


def _data(recipe: Recipe, sizes: Mapping[str, int], *, exact: bool) -> list[str]:
    fields = unbuilt_fields(recipe)
    lines = [field.describe(name, sizes.get(name), exact=exact) for name, field in fields.items()]
    if not recipe.inputs:
        kind = (
            "one contiguous text, read in lanes" if recipe.data.stream else "rows, each a sequence from <sos> to <eos>"
        )
        lines.append(f"no input: a language model of {kind}")
    return [*lines, f"dev: --dev, or {_set_aside(recipe)} set aside"]


def _set_aside(recipe: Recipe) -> str:
    if recipe.data.stream:
        return f"the last {recipe.data.dev_share:.0%} of the text"
    return f"{recipe.data.dev_share:.0%} of the rows (at most {recipe.data.dev_most:,})"


def _encoder(recipe: Recipe, network: EncoderDecoder) -> list[str]:
    if not recipe.inputs:
        return ["none: nothing conditions the decoder"]
    lines = []
    for name in recipe.inputs:
        reader = recipe.reader_of(name)
        if reader != name:
            lines.append(f"{name}: read by the encoder of {reader}")
            continue
        headline, *rest = network.encoder(name).equations()
        lines.append(f"{name}: {headline}; places h_j of {network.encoder(name).size} numbers")
        lines += [f"  {line}" for line in rest]
    return lines


def _decoder(recipe: Recipe, network: EncoderDecoder) -> list[str]:
    equations = decoder_equations(recipe, network)
    lines = [equations.headline]
    if equations.embedding:
        lines.append(f"  {equations.embedding}")
    lines += _block("matching", equations.matching)
    lines.append(f"start       {equations.start}")
    if equations.every:
        lines.append(f"every step  {equations.every}")
    lines += _block("attention", attention_lines(equations, recipe.looked_at) or ["none"])
    if not recipe.looked_at and _could_copy(recipe):
        lines.append("copying     none: without attention there is no place to copy a word from")
    cell = [f"{equations.cell_name}: {equations.cell}"] if equations.cell else []
    lines += _block("step", [*equations.step, *cell])
    return [*lines, f"output      {output_equation(recipe, network)}"]


def _block(title: str, lines: list[str]) -> list[str]:
    """The first line beside the title, the others below it."""
    return [f"{title if number == 0 else '':<12}{line}" for number, line in enumerate(lines)]


def _could_copy(recipe: Recipe) -> bool:
    """Whether the output is written in the symbols of a text that is read."""
    tokens = getattr(recipe.output, "tokens", None)
    return not recipe.decoder.own and any(column.tokens == tokens for column in recipe.texts.values())


def _loss(recipe: Recipe, network: EncoderDecoder) -> list[str]:
    settings = recipe.training
    if recipe.output.numeric:
        lines = [f"L = mean_i (y_i - x_i) ** 2, where x is {_target(recipe)}; the mean over a batch"]
    else:
        lines = [f"L = -sum log {probability(recipe, network)}, the mean over a batch"]
    if recipe.loss.label_smoothing:
        lines.append(
            f"label smoothing {recipe.loss.label_smoothing:g}: this share of the target is spread over all symbols"
        )
    if recipe.loss.class_weights != "none":
        lines.append(f"class weights: {recipe.loss.class_weights}")
    lines += [f"  + {weight:g} {text}" for key, text in TERMS.items() if (weight := getattr(recipe.loss, key, 0.0))]
    if recipe.loss.ctc_first:
        lines.append(f"  the first {recipe.loss.ctc_first:.0%} of the run: CTC alone, the decoder is not run")
    lines += _draws(recipe)
    if recipe.loss.alignment.column is not None and recipe.loss.alignment.weight:
        links, weight = recipe.loss.alignment.column, recipe.loss.alignment.weight
        lines.append(
            f"  + {weight:g} (-sum_t log sum_j a_tj), j the places within the time of y_t in '{links}'"
            if timed_alignment(recipe)
            else f"  + {weight:g} (-sum_tj a_true_tj log a_tj), a_true_t even over the links of y_t in '{links}'"
        )
    lines += _instead(recipe)
    if not recipe.output.one_step:
        forced = "teacher forced: y_{t-1} is the true token"
        share = settings.scheduled_sampling
        way = "step by step" if share else network.decoder.way_of_teaching
        own = f", the model's own in a share growing to {share:.0%}" if share else ""
        lines.append(f"{forced}{own}; computed: {way}")
    if settings.noise.any:
        shares = ", ".join(f"{what} {share:g}" for what, share in settings.noise if share)
        lines.append(f"noise on the symbols that are read: {shares}")
    lines.append(_minimised(recipe))
    dropped = ", ".join(f"{where} {share:g}" for where, share in _dropouts(recipe).items() if share)
    if dropped:
        lines.append(f"dropout: {dropped}")
    metric = settings.metric or metrics_of(recipe)[0]
    kept = f"the mean of the best {settings.average} weights" if settings.average > 1 else "the best weights"
    smoothed = f", each a moving average (decay {settings.ema:g})" if settings.ema else ""
    lines.append(f"stops after {_limits(settings)}; {kept} by dev {metric} are kept{smoothed}")
    return lines


def _instead(recipe: Recipe) -> list[str]:
    """What takes the place of -log P of the outputs, or a part of it."""
    lines: list[str] = []
    if (distilled := recipe.loss.distillation).teachers:
        lines.append(
            f"distillation: (1 - w) L + w T ** 2 sum_t KL(p_t || P_t), w = {distilled.weight:g}, "
            f"T = {distilled.temperature:g}, p the mean of {', '.join(distilled.teachers)}"
        )
    if (reward := recipe.loss.reward).metric != "none":
        part = "the whole run" if reward.last == 1 else f"the last {reward.last:.0%} of the run"
        lines.append(
            f"{part}: L = -sum_k (r_k - mean of the others) log P(y_k) over {reward.samples} outputs y_k drawn of each "
            f"row, r the reward ({reward.metric}), instead"
        )
    return lines


def _target(recipe: Recipe) -> str:
    """What the output should be, and what was done to the input."""
    text = f"{recipe.output.noun} of column '{recipe.output.column or 'output'}'"
    if getattr(recipe.output, "standardise", False):
        text += ", standardised"
    noises = [column.noise_note for column in recipe.inputs.values() if column.noise_note]
    return f"{text}, clean, while what is read has noise ({', '.join(noises)})" if noises else text


def _draws(recipe: Recipe) -> list[str]:
    """What is minimised where looks are drawn and learned from what came of them."""
    settings, attention = recipe.loss, recipe.attention
    if not recipe.looked_at or not attention.by_score:
        return []
    lines = [
        "  + (-sum_t R_t log a_t(j_t)), j_t the place drawn, R_t = sum_{i>=t} (log P(y_i) - b) taken as it is",
        f"    b: the moving mean of log P(y_i) (decay {settings.baseline_decay:g}), what was to be expected",
    ]
    if settings.exploration:
        lines.append(f"  - {settings.exploration:g} sum_t H(a_t) (exploration: draws do not settle too soon)")
    return lines


def _minimised(recipe: Recipe) -> str:
    settings = recipe.training
    batch = f"{settings.lanes} lanes of {settings.bptt}" if recipe.data.stream else f"{settings.batch_tokens:,}"
    clip = f", gradient norm clipped at {settings.clip:g}" if settings.clip else ""
    return (
        f"{settings.optimizer}, learning rate {settings.learning_rate:g} ({settings.schedule}), "
        f"batches of {batch} symbols{clip}"
    )


def _dropouts(recipe: Recipe) -> dict[str, float | None]:
    """{where: share} of the encoders, the decoder and the symbols each of them reads."""
    dropouts: dict[str, float | None] = {}
    for name in recipe.inputs:
        if recipe.reader_of(name) == name:
            settings = recipe.encoder_of(name)
            whose = "" if recipe.inputs[name].encoder is None else f" of {name}"
            dropouts |= _shares(settings, f"encoder{whose}") | _shares(settings.symbols, f"e(x){whose}")
    symbols = recipe.decoder.embedding if isinstance(recipe.decoder, SymbolSettings) else None
    return dropouts | _shares(recipe.decoder, "decoder") | _shares(symbols, "e(y)")


OF_PARTS = {"recurrent_dropout": "s_{t-1} of ", "weight_drop": "U of ", "symbol_dropout": "symbols of "}
"""What is dropped of a part by these keys."""


def _shares(settings: Settings | None, part: str) -> dict[str, float | None]:
    """{what: share} of all that a part drops."""
    same = " (the same at all steps)" if getattr(settings, "variational", False) else ""
    shares = {f"{what}{part}": getattr(settings, key, None) for key, what in OF_PARTS.items()}
    return {f"{part}{same}": getattr(settings, "dropout", None), **shares}


def _limits(settings: TrainingSettings) -> str:
    limits = {"epochs": settings.epochs, "updates": settings.updates, "minutes": settings.minutes}
    stops = [f"{value:g} {name}" for name, value in limits.items() if value]
    if settings.patience:
        stops.append(f"{settings.patience} reports without improvement")
    return " or ".join(stops) or "the user's word"


def _table(parameters: list[ParameterCount], whole: str) -> list[str]:
    """Parts in order, each with its parameters below it."""
    parts = list(dict.fromkeys(entry.part for entry in parameters))
    rows: list[tuple[str, str, str]] = []
    for part in parts:
        inside = by_equation([entry for entry in parameters if entry.part == part])
        rows.append((part, "", format_count(total_count(inside))))
        rows += [(f"  {entry.name}", " x ".join(entry.shape), format_count(entry.count)) for entry in inside]
    rows.append(("in all", "", whole))
    name, shape, count = (max(len(row[column]) for row in rows) for column in range(3))
    return [f"{row[0]:<{name}}  {row[1]:<{shape}}  {row[2]:>{count}}".rstrip() for row in rows]


def _number(count: Mapping[tuple[str, ...], int]) -> int | str:
    return count.get((), 0) if set(count) <= {()} else format_count(dict(count))


# ---------------------------------------------------------------- equations


def decoder_equations(recipe: Recipe, network: EncoderDecoder) -> DecoderEquations:
    """Those of the decoder, which knows how it is conditioned.

    A user's own subclass of a decoder may compute something else: it has the general ones unless it writes its own.
    """
    decoder = network.decoder
    inherited = not type(decoder).__module__.startswith("seq2see.") and "equations" not in vars(type(decoder))
    return (Decoder.equations if inherited else type(decoder).equations)(decoder, output=recipe.output.noun)


def attention_lines(equations: DecoderEquations, over: Sequence[str]) -> list[str]:
    """How the decoder attends to the inputs of these names, line by line."""
    attention = equations.attention
    if attention is None or not over:
        return []
    larger = f";  {attention.larger}" if attention.larger else ""
    keys = f"with q = {equations.query} and k_j = {attention.place} of {', '.join(over)}{larger}"
    lines = [f"{attention.score}, {keys}", *attention.heads, *attention.window, *attention.weights, attention.context]
    if attention.given:
        lines.append(f"P is given {attention.given}: it is not summed over all that could have been")
    lines += equations.notes
    if len(over) > 1:
        lines.append("one attention for each of these inputs; c_t joins their contexts")
    return lines


def output_equation(recipe: Recipe, network: EncoderDecoder) -> str:
    """The output layer, V being E where they are tied."""
    return network.head.equation(decoder_equations(recipe, network).features, probability(recipe, network))


def probability(recipe: Recipe, network: EncoderDecoder) -> str:
    """What the model gives: P(y | x) of a label, P(y_t | y_<t, x) of a symbol."""
    if network.decoder.one_step:
        return "P(y | x)"
    return "P(y_t | y_<t, x)" if recipe.inputs else "P(y_t | y_<t)"


def step_equations(recipe: Recipe, network: EncoderDecoder) -> dict[str, str]:
    """The equations of one decoding step, by what they give: query, energies, weights, context, state, output."""
    equations = decoder_equations(recipe, network)
    lines: dict[str, str] = {}
    if recipe.looked_at and equations.attention is not None:
        attention = equations.attention
        lines["query"] = f"q = {equations.query}"
        lines["energies"] = ";  ".join([attention.score, *attention.heads])
        lines["weights"] = ";  ".join([*attention.window, *attention.weights])
        lines["context"] = attention.context
    if recipe.started_by and equations.cell:
        lines["start"] = equations.start
    lines["state"] = ";  ".join([*[equations.start] * equations.from_start, *equations.step])
    if equations.cell:
        lines["cell"] = equations.cell
    return lines | {"output": output_equation(recipe, network)}


# ---------------------------------------------------------------- parameters

Monomial = tuple[str, ...]
Count = dict[Monomial, int]
"""A polynomial in the sizes of vocabularies: {(): 7, ("source",): 128} is 7 + 128 |source|."""

READING = "sEPWUQVvuwbcn"
"""The order in which the symbols of a part are listed, by their first letters."""


@dataclass(frozen=True)
class ParameterCount:
    """One parameter: the part it belongs to, its name in the equations, its shape and how many numbers it holds."""

    part: str
    name: str
    shape: tuple[str, ...]
    count: Count


def network_parameters(network: EncoderDecoder) -> list[ParameterCount]:
    """The parameters of a network, tied ones once."""
    symbols = network.parameter_symbols()
    return _merged(
        (symbols[name], tuple(f"{size:,}" for size in parameter.shape), {(): parameter.numel()})
        for name, parameter in network.named_parameters()
    )


def recipe_parameters(
    recipe: Recipe, known: Mapping[str, int], network: EncoderDecoder | None = None
) -> list[ParameterCount]:
    """The parameters of a recipe's model; known: the sizes of known vocabularies, by `vocabulary_owner`.

    network: `meta_network(recipe, known)`, if there is one already. No memory is allocated: the network is built on the
    meta device, once with every unknown vocabulary of size PROBE and once for each of them with one symbol more, which
    shows the sizes that grow with it.
    """
    owners = [recipe.vocabulary_owner(name) for name in [*recipe.inputs, "output"]]
    unknown = [name for name in dict.fromkeys(owners) if name not in known and recipe.sized_by_data(name)]
    network = meta_network(recipe, known) if network is None else network
    symbols, shapes = network.parameter_symbols(), _shapes(network)
    grown = {name: _shapes(meta_network(recipe, {**known, name: PROBE + 1})) for name in unknown}
    counted: list[tuple[Symbol, tuple[str, ...], Count]] = []
    for name, shape in shapes.items():
        sizes: list[Count] = []
        for axis, size in enumerate(shape):
            slopes = {(owner,): grown[owner][name][axis] - size for owner in unknown}
            steep = {key: slope for key, slope in slopes.items() if slope}
            rest = size - PROBE * sum(steep.values())
            sizes.append(steep | ({(): rest} if rest or not steep else {}))
        counted.append((symbols[name], tuple(format_count(size) for size in sizes), _product(sizes)))
    return _merged(counted)


def _merged(counted: Iterable[tuple[Symbol, tuple[str, ...], Count]]) -> list[ParameterCount]:
    """One entry for each parameter; those that no equation names (a backbone's) are counted together."""
    result: dict[tuple[str, str, str], ParameterCount] = {}
    for number, (symbol, shape, count) in enumerate(counted):
        entry = ParameterCount(symbol.part, str(symbol), shape, count)
        key = (entry.part, entry.name, "" if symbol.merged else str(number))
        if key in result:
            entry = ParameterCount(entry.part, entry.name, (), total_count([result[key], entry]))
        result[key] = entry
    return list(result.values())


def total_count(counted: list[ParameterCount]) -> Count:
    """The sum of all counts."""
    result: Count = {(): 0}
    for entry in counted:
        for key, number in entry.count.items():
            result[key] = result.get(key, 0) + number
    return result


def by_equation(counted: list[ParameterCount]) -> list[ParameterCount]:
    """Layer by layer, and in each E, W, U, b."""
    layers = list(dict.fromkeys(entry.name.partition(", ")[2] for entry in counted))
    return sorted(counted, key=lambda each: (layers.index(each.name.partition(", ")[2]), READING.find(each.name[0])))


def format_count(count: Count) -> str:
    """'7 + 128 |source|'"""
    parts = []
    for key in sorted(count, key=lambda names: (len(names), names)):
        symbols = " ".join(f"|{name}|" for name in key)
        number = count[key]
        if key and number == 1:
            parts.append(symbols)
        elif number or len(count) == 1:
            parts.append(f"{number:,} {symbols}".strip())
    return " + ".join(parts)


def _shapes(network: EncoderDecoder) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}


def _product(sizes: list[Count]) -> Count:
    result: Count = {(): 1}
    for size in sizes:
        multiplied: Count = {}
        for left, a in result.items():
            for right, b in size.items():
                key = tuple(sorted((*left, *right)))
                multiplied[key] = multiplied.get(key, 0) + prod((a, b))
        result = multiplied
    return result
