"""Settings that would be accepted and do nothing: found, so that they can be refused."""

from __future__ import annotations

from seq2see.errors import nearest
from seq2see.modalities.set import SetInput
from seq2see.modalities.texts import TextsInput
from seq2see.recipe.along import idle_along
from seq2see.recipe.changed import changed
from seq2see.recipe.directions import needless
from seq2see.recipe.idle_decoder import idle_decoder
from seq2see.recipe.idle_encoders import idle_encoders
from seq2see.recipe.media_checks import unseen
from seq2see.recipe.numbers import pointless
from seq2see.recipe.pointing import idle
from seq2see.recipe.schema import Recipe
from seq2see.recipe.sound_checks import silent
from seq2see.recipe.video_checks import unwatched
from seq2see.settings.attention import SCORES, AttentionSettings, own_options
from seq2see.settings.base import TextSettings
from seq2see.settings.encoders import embedding_of


def inert(recipe: Recipe) -> dict[str, str]:
    """{path: reason} of every setting that differs from its default and has no effect in this recipe."""
    found: dict[str, str] = {}
    found |= _attention(recipe)
    found |= idle_encoders(recipe)
    found |= _shared(recipe)
    found |= idle_decoder(recipe)
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
            found |= changed(given, f"inputs.{name}", ["keep"], "without max_sentences all are kept")
        if isinstance(given, SetInput) and given.separator is not None:
            found |= changed(given, f"inputs.{name}", ["tokens"], "separator tells elements apart")
    return found


def _looks(recipe: Recipe) -> dict[str, str]:
    attention, found = recipe.attention, dict[str, str]()
    if not recipe.looked_at:
        keys = ["doubly_stochastic", "entropy", "coverage"]
        found |= changed(recipe.loss, "loss", keys, "without attention there are no looks")
    elif recipe.output.one_step:
        found |= changed(recipe.loss, "loss", ["coverage"], f"{recipe.output.said} is decoded in one step")
    found |= _twice(recipe)
    if not recipe.looked_at or attention.choice != "hard" or attention.estimator != "score-function":
        keys = ["exploration", "baseline_decay"]
        found |= changed(recipe.loss, "loss", keys, "nothing is drawn and learned by its score")
    if recipe.looked_at and attention.constant:
        keys = ["doubly_stochastic", "entropy", "coverage", "exploration", "baseline_decay"]
        found |= changed(recipe.loss, "loss", keys, "uniform weights are not learned")
    if recipe.looked_at and attention.score == "static" and attention.scope == "global":
        found |= changed(recipe.loss, "loss", ["coverage"], "static looks are the same at every step")
    return found


def _twice(recipe: Recipe) -> dict[str, str]:
    """Reading a row twice tells nothing where both readings are the same."""
    if recipe.data.stream:
        return changed(recipe.loss, "loss", ["consistency"], "a stream is read once, as it stands")
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
    return changed(recipe.loss, "loss", ["consistency"], "without dropout a row is read the same way twice")


def _attention(recipe: Recipe) -> dict[str, str]:
    settings = recipe.attention
    if settings.score == "none":
        keys = [key for key in type(settings).model_fields if key != "score"]
        reason = "attention.score is none" if recipe.inputs else "a model without inputs has nothing to look at"
        return changed(settings, "attention", keys, reason)
    if settings.score not in SCORES:
        return {}
    predicted = {"size"} if settings.scope == "local-predicted" else set()
    unknown = sorted(frozenset().union(*SCORES.values()) - SCORES[settings.score] - predicted)
    found = changed(settings, "attention", unknown, f"score {settings.score} has no such setting")
    found |= _own_options(settings)
    found |= _parts(settings)
    if not any("." in name for name in recipe.looked_at):
        found |= changed(settings, "attention", ["through"], "nothing that is looked at lies inside larger places")
    if recipe.output.one_step:
        what = recipe.output.said
        found |= changed(settings, "attention", ["query", "input_feeding"], f"{what} is decoded in one step")
    elif recipe.decoder.kind == "transformer":
        keys = ["query", "input_feeding"]
        found |= changed(settings, "attention", keys, "in a transformer each layer asks with its own state")
    elif recipe.decoder.kind == "recurrent" and settings.query == "previous":
        found |= changed(settings, "attention", ["input_feeding"], "with query previous the context always enters")
    return found


def _parts(settings: AttentionSettings) -> dict[str, str]:
    """Settings of a scope, a choice or a normaliser that is not the one asked for."""
    found: dict[str, str] = {}
    if settings.scope == "global":
        found |= changed(settings, "attention", ["window", "gaussian"], "scope global has no window")
    if settings.scope == "local-predicted":
        found |= changed(settings, "attention", ["gaussian"], "a predicted p_t is learned through its Gaussian alone")
    if settings.constant:
        found |= changed(settings, "attention", ["estimator", "gumbel_temperature"], "uniform weights are not learned")
        if settings.scope == "global" or not settings.gaussian:
            found |= changed(settings, "attention", ["normaliser", "temperature"], "uniform weights are what they are")
    if settings.choice == "soft":
        found |= changed(settings, "attention", ["estimator", "gumbel_temperature"], "choice soft draws nothing")
    elif settings.estimator != "gumbel":
        found |= changed(settings, "attention", ["gumbel_temperature"], f"estimator {settings.estimator} has none")
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


def _shared(recipe: Recipe) -> dict[str, str]:
    fields = {f"inputs.{name}": given for name, given in recipe.inputs.items()} | {"output": recipe.output}
    found: dict[str, str] = {}
    for path, given in fields.items():
        if isinstance(given, TextSettings) and given.share is not None:
            found |= changed(given, path, ["vocabulary", "min_count"], f"the vocabulary of {given.share} is shared")
            found |= changed(given, path, ["encoder"], f"the encoder of {given.share} is shared")
    return found


def _output(recipe: Recipe) -> dict[str, str]:
    found: dict[str, str] = {}
    if recipe.output.one_step:
        keys, what = list(type(recipe.search).model_fields), recipe.output.said
        found |= changed(recipe.search, "search", keys, f"{what} is not searched for")
        found |= changed(recipe.training, "training", ["scheduled_sampling"], f"{what} is decoded in one step")
    elif recipe.search.beam == 1:
        found |= changed(recipe.search, "search", ["consensus"], "search.beam 1 finds one output, like no other")
    if recipe.output.kind != "label":
        found |= changed(recipe.loss, "loss", ["class_weights"], "only label outputs have classes")
    if recipe.output.numeric:
        keys = ["label_smoothing", "consistency"]
        found |= changed(recipe.loss, "loss", keys, f"{recipe.output.said} has no probabilities")
    return found | changed(recipe.search, "search", ["replace_unknown"], _nothing_to_put_in(recipe))


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
        found |= changed(recipe.training, "training", ["bptt", "lanes"], "data.stream is false")
    else:
        found |= changed(recipe.training, "training", ["dev_rows"], "a stream is measured as one text, not by rows")
        keys = ["batch_tokens", "batch_rows"]
        found |= changed(recipe.training, "training", keys, "a stream is read in training.lanes of training.bptt")
        reason = "a stream is read as it stands (teacher forced)"
        found |= changed(recipe.training, "training", ["scheduled_sampling"], reason)
        found |= changed(recipe.output, "output", ["max_length"], "a stream is one text, however long")
        found |= changed(recipe.data, "data", ["dev_most"], "the end of a stream is set aside, not rows")
    return found


def _training(recipe: Recipe) -> dict[str, str]:
    settings = recipe.training
    found: dict[str, str] = {}
    if settings.optimizer == "sgd":
        found |= changed(settings, "training", ["betas"], "sgd has momentum instead")
    else:
        found |= changed(settings, "training", ["momentum"], "only sgd has momentum")
    if not recipe.inputs or recipe.output.numeric:
        what = f"{recipe.output.said} has no steps to look at" if recipe.inputs else "a language model has no input"
        found |= changed(settings, "training", ["film"], f"nothing is filmed: {what}")
    if settings.schedule == "constant":
        found |= changed(settings, "training", ["floor"], "with schedule constant the rate does not fall")
    if not (settings.epochs or settings.updates or settings.minutes):
        found |= changed(settings, "training", ["warmup"], "a run without an end has no share of it to warm up in")
        reason = "a run without an end has no share of it to grow over"
        found |= changed(settings, "training", ["scheduled_sampling"], reason)
    return found
