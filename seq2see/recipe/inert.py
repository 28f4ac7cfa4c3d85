"""Settings that would be accepted and do nothing: found, so that they can be refused."""

from __future__ import annotations

from seq2see.errors import nearest
from seq2see.recipe.along import idle_along
from seq2see.recipe.decoder_settings import ONE_STEP
from seq2see.recipe.directions import needless
from seq2see.recipe.encoder_settings import embedding_of
from seq2see.recipe.media_checks import unseen
from seq2see.recipe.numbers import pointless
from seq2see.recipe.own import unknown_options
from seq2see.recipe.pointing import idle
from seq2see.recipe.schema import (
    WRITERS,
    AttentionSettings,
    CellSettings,
    ConvolutionalEncoderSettings,
    DecoderSettings,
    DeepSetsEncoderSettings,
    EmbeddingSettings,
    EncoderSettings,
    HierarchicalEncoderSettings,
    OwnEncoderSettings,
    Recipe,
    SetInput,
    Settings,
    TextSettings,
    TextsInput,
    TransformerEncoderSettings,
)
from seq2see.recipe.scores import SCORES, own_options
from seq2see.recipe.sound_checks import silent
from seq2see.recipe.unused import unused_encoder
from seq2see.recipe.video_checks import unwatched


def inert(recipe: Recipe) -> dict[str, str]:
    """{path: reason} of every setting that differs from its default and has no effect in this recipe."""
    found: dict[str, str] = {}
    found |= _attention(recipe)
    found |= _encoders(recipe)
    found |= _shared(recipe)
    found |= _decoder(recipe)
    found |= _training(recipe)
    found |= _data(recipe)
    found |= _output(recipe)
    found |= _looks(recipe)
    found |= idle(recipe)
    found |= unseen(recipe)
    found |= pointless(recipe)
    found |= silent(recipe)
    found |= unwatched(recipe)
    found |= needless(recipe)
    found |= idle_along(recipe)
    for name, given in recipe.inputs.items():
        if isinstance(given, TextsInput) and not given.max_sentences:
            found |= _changed(given, f"inputs.{name}", ["keep"], "without max_sentences all are kept")
        if isinstance(given, SetInput) and given.separator is not None:
            found |= _changed(given, f"inputs.{name}", ["tokens"], "separator tells elements apart")
    return found


def _looks(recipe: Recipe) -> dict[str, str]:
    attention, found = recipe.attention, dict[str, str]()
    if not recipe.looked_at:
        keys = ["doubly_stochastic", "entropy", "coverage"]
        found |= _changed(recipe.loss, "loss", keys, "without attention there are no looks")
    elif recipe.decoder.one_step:
        found |= _changed(recipe.loss, "loss", ["coverage"], f"{recipe.output.said} is decoded in one step")
    found |= _twice(recipe)
    if not recipe.looked_at or attention.choice != "hard" or attention.estimator != "score-function":
        keys = ["exploration", "baseline_decay"]
        found |= _changed(recipe.loss, "loss", keys, "nothing is drawn and learned by its score")
    if recipe.looked_at and attention.constant:
        keys = ["doubly_stochastic", "entropy", "coverage", "exploration", "baseline_decay"]
        found |= _changed(recipe.loss, "loss", keys, "uniform weights are not learned")
    if recipe.looked_at and attention.score == "static" and attention.scope == "global":
        found |= _changed(recipe.loss, "loss", ["coverage"], "static looks are the same at every step")
    return found


def _twice(recipe: Recipe) -> dict[str, str]:
    """Reading a row twice tells nothing where both readings are the same."""
    if recipe.data.stream:
        return _changed(recipe.loss, "loss", ["consistency"], "a stream is read once, as it stands")
    readers = [recipe.encoder_of(name) for name in recipe.inputs]
    shares: list[float | None] = [
        recipe.decoder.dropout,
        recipe.decoder.embedding.dropout if recipe.output.kind == "text" else 0.0,
    ]
    shares += [one.dropout for one in readers]
    shares += [embedding.dropout for one in readers if (embedding := embedding_of(one)) is not None]
    drawn = bool(recipe.looked_at) and recipe.attention.choice == "hard"
    unknown = recipe.decoder.own is not None or any(one.own is not None for one in readers)
    if any(shares) or drawn or unknown:
        return {}
    return _changed(recipe.loss, "loss", ["consistency"], "without dropout a row is read the same way twice")


def _changed(settings: Settings, path: str, keys: list[str], reason: str) -> dict[str, str]:
    """Keys that differ from their default, each with the reason why that does nothing; none without a reason."""
    if not reason:
        return {}
    fields = type(settings).model_fields
    return {
        f"{path}.{key}": reason
        for key in keys
        if key in fields and getattr(settings, key) != fields[key].get_default(call_default_factory=True)
    }


def _attention(recipe: Recipe) -> dict[str, str]:
    settings = recipe.attention
    if settings.score == "none":
        keys = [key for key in type(settings).model_fields if key != "score"]
        reason = "attention.score is none" if recipe.inputs else "a model without inputs has nothing to look at"
        return _changed(settings, "attention", keys, reason)
    if settings.score not in SCORES:
        return {}
    predicted = {"size"} if settings.scope == "local-predicted" else set()
    unknown = sorted(frozenset().union(*SCORES.values()) - SCORES[settings.score] - predicted)
    found = _changed(settings, "attention", unknown, f"score {settings.score} has no such setting")
    found |= _own_options(settings)
    found |= _parts(settings)
    if not any("." in name for name in recipe.looked_at):
        found |= _changed(settings, "attention", ["through"], "nothing that is looked at lies inside larger places")
    if recipe.decoder.one_step:
        what = recipe.output.said
        found |= _changed(settings, "attention", ["query", "input_feeding"], f"{what} is decoded in one step")
        found |= _changed(settings, "attention", ["filters", "kernel"], f"{what} has no earlier looks to cover")
    elif recipe.decoder.kind == "transformer":
        keys = ["query", "input_feeding"]
        found |= _changed(settings, "attention", keys, "in a transformer each layer asks with its own state")
    elif recipe.decoder.kind == "recurrent" and settings.query == "previous":
        found |= _changed(settings, "attention", ["input_feeding"], "with query previous the context always enters")
    return found


def _parts(settings: AttentionSettings) -> dict[str, str]:
    """Settings of a scope, a choice or a normaliser that is not the one asked for."""
    found: dict[str, str] = {}
    if settings.scope == "global":
        found |= _changed(settings, "attention", ["window", "gaussian"], "scope global has no window")
    if settings.scope == "local-predicted":
        found |= _changed(settings, "attention", ["gaussian"], "a predicted p_t is learned through its Gaussian alone")
    if settings.constant:
        found |= _changed(settings, "attention", ["estimator", "gumbel_temperature"], "uniform weights are not learned")
        if settings.scope == "global" or not settings.gaussian:
            found |= _changed(settings, "attention", ["normaliser", "temperature"], "uniform weights are what they are")
    if settings.choice == "soft":
        found |= _changed(settings, "attention", ["estimator", "gumbel_temperature"], "choice soft draws nothing")
    elif settings.estimator != "gumbel":
        found |= _changed(settings, "attention", ["gumbel_temperature"], f"estimator {settings.estimator} has none")
    return found


def _own_options(settings: AttentionSettings) -> dict[str, str]:
    known = own_options(settings.score)
    found = {}
    for name in settings.options:
        if name not in known:
            allowed = f"; allowed: {', '.join(known)}" if known else ""
            reason = f"score {settings.score} has no such option of its own{nearest(name, known)}{allowed}"
            found[f"attention.options.{name}"] = reason
    return found


def _encoders(recipe: Recipe) -> dict[str, str]:
    given = {f"inputs.{name}.encoder": one.encoder for name, one in recipe.inputs.items() if one.encoder is not None}
    found: dict[str, str] = {}
    if any(recipe.encoder_path(name) == "encoder" for name in recipe.inputs):
        given["encoder"] = recipe.encoder
    else:
        found = unused_encoder(recipe.encoder, list(given.values()))
    for path, settings in given.items():
        found |= _encoder(path, settings)
        if isinstance(settings, HierarchicalEncoderSettings | DeepSetsEncoderSettings):
            found |= _pooling(recipe, path, settings)
    return found


def _pooling(
    recipe: Recipe, path: str, settings: HierarchicalEncoderSettings | DeepSetsEncoderSettings
) -> dict[str, str]:
    read = [name for name in recipe.inputs if recipe.encoder_path(name) == path]
    used, found = {*recipe.started_by, *recipe.fed_every_step}, dict[str, str]()
    if read and not used.intersection(read):
        reason = "no summary is used; name an input it reads in decoder.start or decoder.every_step"
        found = _changed(settings, path, ["pooling"], reason)
        if isinstance(settings, DeepSetsEncoderSettings) and settings.summary_layers:
            found[f"{path}.summary_layers"] = reason
    if isinstance(settings, HierarchicalEncoderSettings) and settings.words == settings.pooling == "last":
        found |= _changed(settings, path, ["pooling_size"], "last states are not weighed")
    return found


def _encoder(path: str, settings: EncoderSettings) -> dict[str, str]:
    if isinstance(settings, OwnEncoderSettings):
        return _own_encoder(path, settings)
    embedding = embedding_of(settings)
    found = {} if embedding is None else _embedding(f"{path}.embedding", embedding)
    if isinstance(settings, CellSettings):
        found |= _cell(path, settings)
    elif isinstance(settings, ConvolutionalEncoderSettings) and settings.recurrent is not None:
        found |= _cell(f"{path}.recurrent", settings.recurrent)
    elif isinstance(settings, TransformerEncoderSettings) and settings.positions != "learned":
        found |= _changed(settings, path, ["longest"], f"positions {settings.positions} have no limit")
    return found


def _own_encoder(path: str, settings: OwnEncoderSettings) -> dict[str, str]:
    own = settings.own
    missing = [key for key in own.keys if key not in own.arguments]
    found = _changed(settings, path, missing, f"{own.name} takes no such argument")
    if "embedding" in own.given:
        found |= _embedding(f"{path}.embedding", settings.embedding)
    else:
        found |= _changed(settings, path, ["embedding"], f"{own.name} takes no such argument")
    unknown = unknown_options(own, settings.options, own.name)
    return found | {f"{path}.{key}": reason for key, reason in unknown.items()}


def _shared(recipe: Recipe) -> dict[str, str]:
    fields = {f"inputs.{name}": given for name, given in recipe.inputs.items()} | {"output": recipe.output}
    found: dict[str, str] = {}
    for path, given in fields.items():
        if isinstance(given, TextSettings) and given.share is not None:
            found |= _changed(given, path, ["vocabulary", "min_count"], f"the vocabulary of {given.share} is shared")
            found |= _changed(given, path, ["encoder"], f"the encoder of {given.share} is shared")
    return found


def _cell(path: str, settings: CellSettings) -> dict[str, str]:
    found: dict[str, str] = {}
    if settings.cell == "lstm":
        found |= _changed(settings, path, ["activation", "reset"], "an lstm has no such choice")
    if settings.cell == "rnn":
        found |= _changed(settings, path, ["reset"], "a plain recurrent cell has no reset gate")
    return found


def _embedding(path: str, settings: EmbeddingSettings) -> dict[str, str]:
    keys = {"learned": ["path", "tuned"], "one-hot": ["size", "path", "tuned"], "pretrained": []}[settings.kind]
    return _changed(settings, path, keys, f"a {settings.kind} embedding has no such setting")


def _decoder(recipe: Recipe) -> dict[str, str]:
    settings = recipe.decoder
    unknown = unknown_options(settings.own, settings.options, f"decoder {settings.kind}")
    found = {f"decoder.{key}": reason for key, reason in unknown.items()}
    if settings.kind in ONE_STEP:
        keys = ["cell", "activation", "reset", "layers", "embedding", "every_step", "tied"]
        keys += ["heads", "feedforward", "positions", "longest"]
        found |= _changed(settings, "decoder", keys, f"a {settings.kind} decoder has no cell and reads no symbol")
        if not recipe.looked_at:
            reason = f"without attention a {settings.kind} decoder has its state alone"
            found |= _changed(settings, "decoder", ["output"], reason)
        if settings.kind == "reconstruction":
            reason = "decoder.reconstruction says what lies between the code and the output"
            found |= _changed(settings, "decoder", ["readout"], reason)
            if recipe.started_by:
                found |= _changed(settings, "decoder", ["size", "start_by"], "it starts from the code as it is")
    elif settings.one_step:
        found |= _changed(settings, "decoder", ["embedding", "tied"], f"{settings.kind} reads no symbol")
    else:
        found |= _written(settings) | _embedding("decoder.embedding", settings.embedding)
    if settings.kind != "reconstruction":
        keys = ["reconstruction"]
        found |= _changed(settings, "decoder", keys, "only decoder.kind reconstruction has such settings")
    if not recipe.started_by:
        found |= _changed(settings, "decoder", ["start_by"], "decoder.start is none")
        if not recipe.fed_every_step:
            found |= _changed(settings, "decoder", ["join"], "no summaries are joined")
    if settings.tied:
        found |= _changed(settings, "decoder", ["readout"], "tied: the readout has the size of the embedding")
    return found


def _written(settings: DecoderSettings) -> dict[str, str]:
    """Settings of the other kind of decoder that writes; what a decoder of the user's own makes of them is its own."""
    if settings.kind not in WRITERS:
        return {}
    if settings.kind == "transformer":
        found = _changed(settings, "decoder", ["cell", "activation", "reset"], "a transformer has no cell")
        found |= _changed(settings, "decoder", ["output"], "the output layer of a transformer sees s_t")
        if settings.positions != "learned":
            found |= _changed(settings, "decoder", ["longest"], f"positions {settings.positions} have no limit")
        return found
    keys = ["heads", "feedforward", "positions", "longest"]
    return _cell("decoder", settings) | _changed(settings, "decoder", keys, "only a transformer has such a setting")


def _output(recipe: Recipe) -> dict[str, str]:
    found: dict[str, str] = {}
    if recipe.output.one_step:
        keys, what = list(type(recipe.search).model_fields), recipe.output.said
        found |= _changed(recipe.search, "search", keys, f"{what} is not searched for")
        found |= _changed(recipe.training, "training", ["scheduled_sampling"], f"{what} is decoded in one step")
    elif recipe.search.beam == 1:
        found |= _changed(recipe.search, "search", ["consensus"], "search.beam 1 finds one output, like no other")
    if recipe.output.kind != "label":
        found |= _changed(recipe.loss, "loss", ["class_weights"], "only label outputs have classes")
    if recipe.output.numeric:
        keys = ["label_smoothing", "consistency"]
        found |= _changed(recipe.loss, "loss", keys, f"{recipe.output.said} has no probabilities")
    return found | _changed(recipe.search, "search", ["replace_unknown"], _nothing_to_put_in(recipe))


def _nothing_to_put_in(recipe: Recipe) -> str:
    """Why no input symbol can stand in for an unknown one; nothing where it can."""
    if not recipe.looked_at:
        return "without attention no place is looked at"
    if recipe.search.avoid_unknown:
        return "search.avoid_unknown: <unk> is never written"
    first = recipe.looked_at[0]
    layout = recipe.view_of(first)[1]
    if layout in ("tokens", "set", None):  # None: only the built encoder knows
        return ""
    words = f"; attention.over {first}.words has some" if layout == "sentences" else ""
    places = "sentences" if layout == "sentences" else "no symbols"
    return f"the places of '{first}' are {places}, no words to put in{words}"


def _data(recipe: Recipe) -> dict[str, str]:
    found: dict[str, str] = {}
    if not recipe.data.stream:
        found |= _changed(recipe.training, "training", ["bptt", "lanes"], "data.stream is false")
    else:
        found |= _changed(recipe.training, "training", ["dev_rows"], "a stream is measured as one text, not by rows")
        keys = ["batch_tokens", "batch_rows"]
        found |= _changed(recipe.training, "training", keys, "a stream is read in training.lanes of training.bptt")
        reason = "a stream is read as it stands (teacher forced)"
        found |= _changed(recipe.training, "training", ["scheduled_sampling"], reason)
        found |= _changed(recipe.output, "output", ["max_length"], "a stream is one text, however long")
        found |= _changed(recipe.data, "data", ["dev_most"], "the end of a stream is set aside, not rows")
    return found


def _training(recipe: Recipe) -> dict[str, str]:
    settings = recipe.training
    found: dict[str, str] = {}
    if settings.optimizer == "sgd":
        found |= _changed(settings, "training", ["betas"], "sgd has momentum instead")
    else:
        found |= _changed(settings, "training", ["momentum"], "only sgd has momentum")
    if not recipe.inputs or recipe.output.numeric:
        what = f"{recipe.output.said} has no steps to look at" if recipe.inputs else "a language model has no input"
        found |= _changed(settings, "training", ["film"], f"nothing is filmed: {what}")
    if settings.schedule == "constant":
        found |= _changed(settings, "training", ["floor"], "with schedule constant the rate does not fall")
    if not (settings.epochs or settings.updates or settings.minutes):
        found |= _changed(settings, "training", ["warmup"], "a run without an end has no share of it to warm up in")
        reason = "a run without an end has no share of it to grow over"
        found |= _changed(settings, "training", ["scheduled_sampling"], reason)
    return found
