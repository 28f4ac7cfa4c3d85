"""Settings that would be accepted and do nothing: found, so that they can be refused."""

from __future__ import annotations

from seq2see.recipe.schema import CellSettings, DecoderSettings, EmbeddingSettings, Recipe, Settings


def inert(recipe: Recipe) -> dict[str, str]:
    """{path: reason} of every setting that differs from its default and has no effect in this recipe."""
    found: dict[str, str] = {}
    found |= _attention(recipe)
    found |= _cell("encoder", recipe.encoder) | _embedding("encoder.embedding", recipe.encoder.embedding)
    for name, given in recipe.inputs.items():
        if given.encoder is not None:
            path = f"inputs.{name}.encoder"
            found |= _cell(path, given.encoder) | _embedding(f"{path}.embedding", given.encoder.embedding)
    found |= _decoder(recipe)
    found |= _output(recipe)
    return found


def _changed(settings: Settings, path: str, keys: list[str], reason: str) -> dict[str, str]:
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
        return _changed(settings, "attention", keys, "attention.score is none")
    from seq2see.attention.scores import options, scores  # late: torch comes with it

    if settings.score not in scores:
        return {}
    every = {option for name in scores for option in options(name)}
    unknown = sorted(every - options(settings.score))
    found = _changed(settings, "attention", unknown, f"score {settings.score} has no such setting")
    if recipe.decoder.kind == "label":
        found |= _changed(settings, "attention", ["query", "input_feeding"], "a label is decoded in one step")
    elif settings.query == "previous":
        found |= _changed(settings, "attention", ["input_feeding"], "with query previous the context always enters")
    return found


def _cell(path: str, settings: CellSettings) -> dict[str, str]:
    if isinstance(settings, DecoderSettings) and settings.kind == "label":
        return {}
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
    if settings.kind == "label":
        keys = ["cell", "activation", "reset", "layers", "embedding", "every_step", "tied"]
        return _changed(settings, "decoder", keys, "a label decoder has no cell and reads no symbol")
    found = _cell("decoder", settings) | _embedding("decoder.embedding", settings.embedding)
    if not recipe.started_by:
        found |= _changed(settings, "decoder", ["start_by"], "decoder.start is none")
    if settings.tied:
        found |= _changed(settings, "decoder", ["readout"], "tied: the readout has the size of the embedding")
    return found


def _output(recipe: Recipe) -> dict[str, str]:
    found: dict[str, str] = {}
    if recipe.output.kind == "label":
        keys = list(type(recipe.search).model_fields)
        found |= _changed(recipe.search, "search", keys, "a label is not searched for")
        found |= _changed(recipe.training, "training", ["scheduled_sampling"], "a label is decoded in one step")
    else:
        found |= _changed(recipe.loss, "loss", ["class_weights"], "only label outputs have classes")
    if not recipe.data.stream:
        found |= _changed(recipe.training, "training", ["bptt", "lanes"], "data.stream is false")
    if recipe.training.optimizer != "sgd":
        found |= _changed(recipe.training, "training", ["momentum"], "only sgd has momentum")
    else:
        found |= _changed(recipe.training, "training", ["betas"], "sgd has momentum instead")
    return found
