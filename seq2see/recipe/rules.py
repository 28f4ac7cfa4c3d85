"""The rules of whole recipes, in one list: names, data, training, search, metrics; attention's are beside it.

A rule about the settings of a single part is a method of these settings, `check(self, recipe, path)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from seq2see.attention.choices import HardSettings
from seq2see.decoders.base import SymbolSettings
from seq2see.dropout import DROPOUTS
from seq2see.embeddings import PretrainedSettings
from seq2see.errors import nearest
from seq2see.evaluation import list_names
from seq2see.modalities.text import TextOutput
from seq2see.recipe import rules_attention  # noqa: F401 - registers its rules
from seq2see.recipe.schema import (
    PERPLEXITY,
    Recipe,
    allowed_baselines,
    allowed_metrics,
    also_measured,
    baseline_of,
    fits,
    measures_of,
    names,
)
from seq2see.registry import RULES, Problem, Stage, rule
from seq2see.settings.base import MOST_LAYERS, Settings, no_effect
from seq2see.settings.columns import ENCODERS, EncoderSettings, TextSettings, readers_of

RESERVED = ("none", "output", "training")
"""Words with a meaning of their own wherever the name of an input could stand; torch claims the last one."""


def problems(recipe: Recipe) -> list[Problem]:
    """Every problem of a recipe whose keys and types are right."""
    for stage in ("names", "readers", "encoder"):
        if early := _staged(recipe, stage):
            return early
    everything = [*_staged(recipe, "combinations"), *part_problems(recipe), *_staged(recipe, "no-effect")]
    everything = list(dict.fromkeys(everything))  # a `check` may have called that of its base class
    wrong = [problem for problem in everything if not problem.no_effect]
    named = {problem.path for problem in wrong}  # one mistake is one problem
    idle = {problem.path: problem for problem in everything if problem.no_effect and problem.path not in named}
    return wrong + list(idle.values())


def droppable(recipe: Recipe) -> dict[str, str]:
    """{path: reason} of settings that have lost their meaning, so that an override may drop them."""
    meaningless = [problem for known in RULES.values() if known.droppable for problem in known.problems(recipe)]
    meaningless += [problem for problem in part_problems(recipe) if problem.no_effect]
    return {problem.path: problem.message for problem in meaningless}


def part_problems(recipe: Recipe) -> Iterator[Problem]:
    """What the settings of each part find wrong with themselves: the `check` of every class that they are made of."""
    for path, settings in _parts(recipe):
        for kind in type(settings).__mro__:
            check = vars(kind).get("check")
            for problem in check(settings, recipe, path) if check is not None else ():
                yield problem if problem.rule else replace(problem, rule=kind.__name__)


def _parts(recipe: Recipe) -> Iterator[tuple[str, Settings]]:
    for key, value in recipe:
        if isinstance(value, Settings):
            yield from _nested(key, value)
    for name, settings in recipe.inputs.items():
        yield from _nested(f"inputs.{name}", settings)


def _nested(path: str, settings: Settings) -> Iterator[tuple[str, Settings]]:
    yield path, settings
    for key, value in settings:
        if isinstance(value, Settings):
            yield from _nested(f"{path}.{key}", value)


def _staged(recipe: Recipe, stage: Stage) -> list[Problem]:
    return [problem for known in RULES.values() if known.stage == stage for problem in known.problems(recipe)]


# --- Names


@rule("input-names", stage="names")
def check_names(recipe: Recipe) -> Iterator[Problem]:
    """Inputs have names that nothing else has, and the decoder names inputs that there are."""
    known = list(recipe.inputs)
    for name in known:
        if not name.isidentifier() or name in RESERVED or name.startswith("_"):
            yield Problem(
                f"inputs.{name}",
                "not a name for an input; allowed: letters, digits and _, a letter first, "
                f"but not {', '.join(RESERVED)}",
            )
    for key in ("start", "every_step", "copy_from"):
        for name in names(getattr(recipe.decoder, key, None)):
            if name not in known:
                allowed = ", ".join([*known, "none"])
                yield Problem(f"decoder.{key}", f"there is no input '{name}'{nearest(name, known)}; allowed: {allowed}")


@rule("share", stage="names")
def check_shares(recipe: Recipe) -> Iterator[Problem]:
    """A vocabulary is shared with an input that has one of its own, cut into symbols in the same way."""
    fields = recipe.texts | ({"output": recipe.output} if isinstance(recipe.output, TextOutput) else {})
    for name, settings in fields.items():
        shared = settings.share
        if shared is None:
            continue
        path = f"{'inputs.' if name != 'output' else ''}{name}.share"
        other = recipe.texts.get(shared)
        if other is None or shared == name or other.share:
            allowed = ", ".join(one for one in recipe.texts if one != name and not recipe.texts[one].share)
            message = f"'{shared}' is not another input with a vocabulary of its own; allowed: {allowed or 'none'}"
            yield Problem(path, message)
        elif settings.tokens != other.tokens:
            message = f"tokens are {settings.tokens} here and {other.tokens} in {shared}: must be the same"
            yield Problem(path, message)
        elif (here := _separator(settings)) != (there := _separator(other)):
            yield Problem(path, f"the separator is {here} here and {there} in {shared}: must be the same")
        elif name != "output" and recipe.inputs[name].kind != recipe.inputs[shared].kind:
            own, kind = recipe.inputs[name].kind, recipe.inputs[shared].kind
            yield Problem(path, f"kind is {own} here and {kind} in {shared}: one encoder reads one kind")


def _separator(settings: TextSettings) -> str:
    """What stands between the elements of a set, in words."""
    separator = getattr(settings, "separator", None)
    return "not given" if separator is None else repr(separator)


@rule("shared-settings", stage="no-effect")
def check_shared_settings(recipe: Recipe) -> Iterator[Problem]:
    fields = {f"inputs.{name}": one for name, one in recipe.inputs.items()} | {"output": recipe.output}
    for path, settings in fields.items():
        if isinstance(settings, TextSettings) and settings.share is not None:
            shared = f"the vocabulary of {settings.share} is shared"
            yield from no_effect(settings, path, ["vocabulary", "min_count"], shared)
            yield from no_effect(settings, path, ["encoder"], f"the encoder of {settings.share} is shared")


# --- Data


@rule("conditioned", droppable=True)
def check_conditioned(recipe: Recipe) -> Iterator[Problem]:
    """With attention off, `start: none` leaves the decoder without some of the inputs."""
    unused = [name for name in recipe.inputs if name not in recipe.used]
    if recipe.attention.score == "none" and recipe.decoder.start == "none" and unused:
        lost = ", ".join(unused)
        instead = ", or decoder.every_step" if not recipe.output.one_step else ""
        message = f"with attention off, none leaves the decoder nothing of {lost}"
        yield Problem("decoder.start", f"{message}; allowed: {lost}{instead}, or attention")


@rule("stream")
def check_streams(recipe: Recipe) -> Iterator[Problem]:
    """Streams are for language models."""
    if recipe.data.stream and (recipe.inputs or recipe.output.one_step):
        message = "only a language model (no inputs, output of kind text) reads a stream; allowed: false"
        yield Problem("data.stream", message)


@rule("missing-input")
def check_inputs(recipe: Recipe) -> Iterator[Problem]:
    """What is not written symbol by symbol is the answer to an input."""
    if not recipe.inputs and recipe.output.one_step:
        yield Problem("inputs", f"{recipe.output.noun} needs at least one input")


@rule("unused-input")
def check_used(recipe: Recipe) -> Iterator[Problem]:
    """Every input is used."""
    lost = recipe.attention.score != "none" and not recipe.with_places  # reported by the rule `attention`
    for name in recipe.inputs:
        if name not in recipe.used and not lost and not list(check_conditioned(recipe)):
            message = "is read and never used; name it in attention.over, decoder.start or decoder.every_step"
            yield Problem(f"inputs.{name}", message)


@rule("pretrained-path")
def check_pretrained(recipe: Recipe) -> Iterator[Problem]:
    """A pretrained embedding has a file."""
    embeddings = {"encoder": recipe.encoder.symbols}
    if isinstance(recipe.decoder, SymbolSettings):
        embeddings["decoder"] = recipe.decoder.embedding
    embeddings |= {path: settings.symbols for path, settings in recipe.encoders.items()}
    for path, embedding in embeddings.items():
        if embedding is not None and isinstance(embedding, PretrainedSettings) and not embedding.path:
            yield Problem(f"{path}.embedding.path", "a pretrained embedding needs a file of vectors")


@rule("deterministic", droppable=True)
def check_deterministic(recipe: Recipe) -> Iterator[Problem]:
    """A run that is to repeat its bits depends on no clock, no number of cores and no kind of processor."""
    training = recipe.training
    if not training.deterministic:
        return
    because = "training.deterministic is true"
    if training.minutes and (training.epochs or training.updates):
        yield Problem("training.minutes", f"a clock may end the run, and {because}; allowed: 0")
    if training.threads > 1:
        yield Problem("training.threads", f"sums depend on the number of threads, and {because}; allowed: 0, 1")
    if training.precision == "auto":
        yield Problem("training.precision", f"the processor decides, and {because}; allowed: float32, bfloat16")


@rule("deterministic-end")
def check_deterministic_end(recipe: Recipe) -> Iterator[Problem]:
    """A run that is to repeat its bits needs an end that is not the clock's."""
    training = recipe.training
    if training.deterministic and training.minutes and not (training.epochs or training.updates):
        message = "only the clock ends the run, and training.deterministic is true"
        yield Problem("training.minutes", f"{message}; allowed: 0, with --epochs N or --updates N instead")


@rule("stream-settings", stage="no-effect")
def check_stream(recipe: Recipe) -> Iterator[Problem]:
    training = recipe.training
    if not recipe.data.stream:
        yield from no_effect(training, "training", ["bptt", "lanes"], "data.stream is false")
        return
    yield from no_effect(training, "training", ["dev_rows"], "a stream is measured as one text, not by rows")
    lanes = "a stream is read in training.lanes of training.bptt"
    yield from no_effect(training, "training", ["batch_tokens", "batch_rows"], lanes)
    forced = "a stream is read as it is (teacher forced)"
    yield from no_effect(training, "training", ["scheduled_sampling"], forced)
    yield from no_effect(recipe.output, "output", ["max_length"], "a stream is one text, however long")
    yield from no_effect(recipe.data, "data", ["dev_most"], "the end of a stream is set aside, not rows")
    yield from no_effect(recipe.data, "data", ["shuffle_rows"], "a contiguous text is read in its order")


# --- What reads an input


@rule("readers", stage="readers")
def check_readers(recipe: Recipe) -> Iterator[Problem]:
    """Every input has an encoder that reads such inputs."""
    for name in recipe.unread:
        column, settings, path = recipe.inputs[name], recipe.encoder_of(name), recipe.encoder_path(name)
        message = f"{settings.kind} does not read '{name}', an input of kind {column.kind}"
        allowed = f"{', '.join(readers_of(column))}{_by_level(recipe, name)}"
        yield Problem(f"{path}.kind", f"{message}; allowed: {allowed}")


def _by_level(recipe: Recipe, name: str) -> str:
    """How such an input is read by self-attention, where the kind of the encoder does not state that."""
    if recipe.encoder_of(name).kind != "transformer":
        return ""
    usual = [ENCODERS[kind] for kind in readers_of(recipe.inputs[name])]
    key = next(
        (key for settings in usual for key, part in settings.parts.items() if "transformer" in part.settings), ""
    )
    return f" with {recipe.encoder_path(name)}.{key} transformer" if key else ""


@rule("encoder-kind", stage="encoder")
def check_encoder(recipe: Recipe) -> Iterator[Problem]:
    """The recipe's encoder is of a kind that reads some input, though all have encoders of their own: otherwise it
    would do nothing."""
    settings = recipe.encoder
    default = settings.kind == EncoderSettings().kind or settings.own
    used = any(recipe.encoder_path(name) == "encoder" for name in recipe.inputs)
    if default or used or any(settings.can_read(column) for column in recipe.inputs.values()):
        return
    for name, column in recipe.inputs.items():
        message = f"{settings.kind} does not read '{name}', an input of kind {column.kind}"
        yield Problem("encoder.kind", f"{message}; allowed: {', '.join(readers_of(column))}")


@rule("unused-encoder", stage="no-effect")
def check_unused_encoder(recipe: Recipe) -> Iterator[Problem]:
    """The recipe's own `encoder` where no input is read by it.

    Inputs' own encoders of the same kind have taken from it what they do not say themselves: what one of them has too
    did something.
    """
    settings, own = recipe.encoder, recipe.encoders
    if "encoder" in own:
        return
    reason = f"every input has its own encoder ({', '.join(own)})" if own else "there are no inputs"
    alike = [other for other in own.values() if other.kind == settings.kind]
    if not alike and settings.kind != EncoderSettings().kind:
        yield Problem("encoder", f"{reason}, so that nothing is read by a {settings.kind} one")
        return
    for path in _differing("encoder", settings, alike):
        yield Problem(path, reason)


def _differing(path: str, settings: Settings, others: Sequence[Settings]) -> Iterator[str]:
    for key, field in type(settings).model_fields.items():
        value, theirs = getattr(settings, key), [getattr(other, key, None) for other in others]
        if isinstance(value, Settings):
            alike = [other for other in theirs if isinstance(other, Settings)]
            yield from _differing(f"{path}.{key}", value, alike)
        elif value != field.get_default(call_default_factory=True) and value not in theirs:
            yield f"{path}.{key}"


# --- Training and search


@rule("training-settings", stage="no-effect")
def check_training(recipe: Recipe) -> Iterator[Problem]:
    settings, path = recipe.training, "training"
    if settings.optimizer == "sgd":
        yield from no_effect(settings, path, ["betas"], "sgd has momentum instead")
    else:
        yield from no_effect(settings, path, ["momentum"], "only sgd has momentum")
    if not recipe.inputs or recipe.output.numeric:
        what = f"{recipe.output.noun} has no steps to look at" if recipe.inputs else "a language model has no input"
        yield from no_effect(settings, path, ["film"], f"nothing is filmed: {what}")
    if settings.schedule == "constant":
        yield from no_effect(settings, path, ["floor"], "with schedule constant the rate does not fall")
    if not (settings.epochs or settings.updates or settings.minutes):
        yield from no_effect(settings, path, ["warmup"], "a run without an end has no share of it to warm up in")
        growing = "a run without an end has no share of it to grow over"
        yield from no_effect(settings, path, ["scheduled_sampling"], growing)


@rule("distillation")
def check_distillation(recipe: Recipe) -> Iterator[Problem]:
    """Teachers have probabilities of each symbol, given the true symbols before it."""
    settings, path = recipe.loss.distillation, "loss.distillation.teachers"
    if not settings.teachers:
        return
    if recipe.output.numeric:
        yield Problem(path, f"{recipe.output.noun} has no probabilities that could be learned; allowed: none")
    elif recipe.data.stream:
        yield Problem(path, "a stream is read on from batch to batch, and teachers read rows; allowed: none")
    if len(set(settings.teachers)) < len(settings.teachers):
        yield Problem(path, "a model is named twice; each counts once in the mean")
    if recipe.training.scheduled_sampling:
        message = "teachers read the true symbols, not the model's own (loss.distillation.teachers); allowed: 0"
        yield Problem("training.scheduled_sampling", message)


@rule("distillation-settings", stage="no-effect")
def check_distillation_settings(recipe: Recipe) -> Iterator[Problem]:
    settings, path = recipe.loss.distillation, "loss.distillation"
    if not settings.teachers:
        yield from no_effect(settings, path, ["weight", "temperature"], "there are no teachers")
    elif not settings.weight:
        because = "loss.distillation.weight is 0"
        yield from no_effect(settings, path, ["teachers", "temperature"], because)
    elif settings.weight == 1:
        because = "loss.distillation.weight is 1: the outputs themselves are not learned"
        yield from no_effect(recipe.loss, "loss", ["label_smoothing"], because)


@rule("noise")
def check_noise(recipe: Recipe) -> Iterator[Problem]:
    """Noise moves the symbols of texts; what names them by their places has to stay."""
    if not recipe.training.noise.any:
        return
    if recipe.copied_from is not None:
        yield Problem("training.noise", f"symbols of '{recipe.copied_from}' are copied (decoder.copy_from); allowed: 0")
    if recipe.loss.alignment.column is not None:
        yield Problem("training.noise", "links name places of the input (loss.alignment.column); allowed: 0")


@rule("noise-settings", stage="no-effect")
def check_noise_settings(recipe: Recipe) -> Iterator[Problem]:
    noise, path = recipe.training.noise, "training.noise"
    texts = [column for column in recipe.inputs.values() if column.in_a_row]
    if not texts:
        yield from no_effect(noise, path, type(noise).model_fields, "there is no input of kind text")
    elif all(column.unordered for column in texts):
        yield from no_effect(noise, path, ["swap"], "a set has no order")


@rule("search-lengths")
def check_lengths(recipe: Recipe) -> Iterator[Problem]:
    least, most = recipe.search.min_length, recipe.search.max_length
    if least > most:
        yield Problem("search.min_length", f"{least} is more than search.max_length {most}")


@rule("language-model")
def check_language_model(recipe: Recipe) -> Iterator[Problem]:
    """A language model in search ranks outputs that answer inputs."""
    search, key = recipe.search, "search.language_model"
    if recipe.output.one_step or search.language_model in (None, "none"):
        return
    if not recipe.inputs:
        yield Problem(key, "this is a language model itself, and its outputs answer no input; allowed: none")
    if search.language_model_internal and recipe.copied_from is not None:
        message = f"words that are copied come from {recipe.copied_from} alone (decoder.copy_from); allowed: 0"
        yield Problem(f"{key}_internal", message)


@rule("language-model-settings", stage="no-effect")
def check_language_model_settings(recipe: Recipe) -> Iterator[Problem]:
    search, key = recipe.search, "language_model"
    if recipe.output.one_step:  # reported by the rule `output-settings`
        return
    if search.language_model in (None, "none"):
        keys = [f"{key}_weight", f"{key}_internal", f"{key}_use"]
        yield from no_effect(search, "search", keys, "there is no search.language_model")
    elif search.language_model_use == "rescore":
        whole = "outputs are rescored as whole texts (search.language_model_use rescore)"
        yield from no_effect(search, "search", [f"{key}_internal"], whole)
        if search.beam == 1:
            yield from no_effect(search, "search", [f"{key}_use"], "search.beam 1 finds one output, with none to rank")


@rule("output-settings", stage="no-effect")
def check_output(recipe: Recipe) -> Iterator[Problem]:
    """What an output has no use for: search, sampling, class weights, probabilities."""
    what = recipe.output.noun
    if recipe.output.one_step:
        yield from no_effect(recipe.search, "search", type(recipe.search).model_fields, f"{what} is not searched for")
        yield from no_effect(recipe.training, "training", ["scheduled_sampling"], f"{what} is decoded in one step")
    elif recipe.search.beam == 1:
        yield from no_effect(recipe.search, "search", ["consensus"], "search.beam 1 finds one output, like no other")
    if not recipe.output.classes:
        yield from no_effect(recipe.loss, "loss", ["class_weights"], "only label outputs have classes")
    if recipe.output.numeric:
        keys = ["label_smoothing", "consistency"]
        yield from no_effect(recipe.loss, "loss", keys, f"{what} has no probabilities")


@rule("reward")
def check_reward(recipe: Recipe) -> Iterator[Problem]:
    """Outputs can be drawn symbol by symbol, and their log-probability is that of the symbols alone."""
    reward = recipe.loss.reward
    if reward.metric == "none":
        return
    reason, allowed = "", "none"
    if recipe.output.one_step:
        reason = f"{recipe.output.noun} is decoded in one step, and nothing is drawn symbol by symbol"
    elif recipe.data.stream:
        reason = "a stream has no rows whose outputs could be compared"
    elif not recipe.inputs:
        reason = "without an input every output is a reference of every other"
    elif recipe.copied_from is not None and reward.metric == "cider":
        reason = "words that are copied (decoder.copy_from) are in no vocabulary whose words could be weighted"
        allowed = "none, bleu, edit"
    elif isinstance(recipe.attention, HardSettings) and recipe.looked_at:
        reason = "places are drawn too (attention.choice hard), and rewarded by another rule"
    elif (recipe.training.metric or measures_of(recipe)[0]) == PERPLEXITY:
        reason = (
            "perplexity would select the best weights, and rises as outputs are rewarded, so that all that is learned "
            "from rewards would be discarded; set training.metric to another of evaluation.metrics"
        )
    if reason:
        yield Problem("loss.reward.metric", f"{reward.metric}: {reason}; allowed: {allowed}")


@rule("reward-settings", stage="no-effect")
def check_reward_settings(recipe: Recipe) -> Iterator[Problem]:
    """Without a metric nothing is rewarded; with rewards from the start the outputs of the table are not learned."""
    loss = recipe.loss
    if loss.reward.metric == "none":
        yield from no_effect(loss.reward, "loss.reward", ["last", "samples"], "loss.reward.metric is none")
    if not loss.reward.always:
        return
    because = "loss.reward.last is 1: outputs drawn from the model are learned, not those of the table"
    yield from no_effect(loss, "loss", ["label_smoothing", "consistency", "ctc_alignment"], because)
    yield from no_effect(loss.distillation, "loss.distillation", ["teachers"], because)
    yield from no_effect(recipe.training, "training", ["scheduled_sampling"], because)
    if loss.alignment.column is not None and loss.alignment.weight:
        message = f"{because}; allowed: 0 (links are still measured)"
        yield Problem("loss.alignment.weight", message, "no-effect", no_effect=True)
    without = "loss.reward.last is 1: outputs are drawn and learned without dropout"
    for path, part in _parts(recipe):
        yield from no_effect(part, path, DROPOUTS, "" if getattr(part, "own", False) else without)


# --- Metrics


@rule("metrics", droppable=True)
def check_metrics(recipe: Recipe) -> Iterator[Problem]:
    """Metrics and trivial models fit what the model gives."""
    measured = measures_of(recipe)
    wrong = [name for name in measured if not fits(name, recipe)]
    if wrong:
        yield Problem("evaluation.metrics", _cannot(wrong, recipe))
    metric = recipe.training.metric
    if metric is not None and not fits(metric, recipe):
        yield Problem("training.metric", _cannot([metric], recipe))
    elif metric is not None and metric not in (taken := [*measured, *also_measured(recipe)]):
        known = ", ".join(dict.fromkeys(taken))
        message = f"'{metric}' is not among what is measured; add it to evaluation.metrics ({known})"
        yield Problem("training.metric", message)
    baseline, allowed = recipe.evaluation.baseline, allowed_baselines(recipe)
    if baseline not in (None, "none", *allowed):
        message = (
            f"'{baseline}' is not a trivial model of {_measured(recipe)}; allowed: {', '.join([*allowed, 'none'])}"
        )
        yield Problem("evaluation.baseline", message)
    for name in recipe.evaluation.further_baselines:
        if name not in allowed:
            message = f"'{name}' is not a trivial model of {_measured(recipe)}; allowed: {', '.join(allowed)}"
            yield Problem("evaluation.further_baselines", message)
        elif name in (baseline_of(recipe), "unigram") or recipe.evaluation.further_baselines.count(name) > 1:
            yield Problem("evaluation.further_baselines", f"'{name}' is measured already")


def _cannot(wrong: list[str], recipe: Recipe) -> str:
    message = ", ".join(f"'{name}'" for name in wrong)
    return f"{message} cannot be taken of {_measured(recipe)}; allowed: {list_names(allowed_metrics(recipe))}"


def _measured(recipe: Recipe) -> str:
    return recipe.output.noun if recipe.inputs or recipe.output.one_step else "a language model"


# --- The whole


@rule("layers")
def check_layers(recipe: Recipe) -> Iterator[Problem]:
    """Not more layers than can be built in a reasonable time: each is, one by one, before anything is counted."""
    counts = recipe.layer_counts
    total = sum(counts.values())
    if total > MOST_LAYERS:
        largest = max(counts, key=lambda path: counts[path])
        here = f"{counts[largest]:,} of them here"
        yield Problem(largest, f"{total:,} layers in all networks together, {here}; at most {MOST_LAYERS:,} in total")
