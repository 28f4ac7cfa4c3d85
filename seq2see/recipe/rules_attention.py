"""Rules about attention: what reads an input, what can be looked at, sizes, copying, alignments and CTC."""

from __future__ import annotations

from collections.abc import Iterator

from seq2see.attention import scopes, scores
from seq2see.attention.choices import HardSettings
from seq2see.attention.scopes import WINDOWED, MonotonicSettings
from seq2see.attention.scores import CoverageSettings
from seq2see.attention.self_attention import heads_problems
from seq2see.decoders.base import SeenSettings, SymbolSettings
from seq2see.decoders.recurrent import RecurrentDecoderSettings
from seq2see.decoders.transformer import TransformerDecoderSettings
from seq2see.errors import nearest
from seq2see.modalities.text import TextOutput
from seq2see.recipe.schema import Recipe, names, timed_alignment
from seq2see.registry import Problem, rule
from seq2see.settings.base import Settings, no_effect

# --- What is looked at


@rule("places", stage="readers")
def check_places(recipe: Recipe) -> Iterator[Problem]:
    """`attention.over` names inputs, or further places of one, as far as its encoder is known."""
    further = {name: [f"{name}.{part}" for part in recipe.encoder_of(name).further] for name in recipe.inputs}
    known = [place for name, parts in further.items() for place in (name, *parts)]
    unread = recipe.unread
    for place in names(recipe.attention.over):
        name, _, part = place.partition(".")
        settings = recipe.encoder_of(name) if name in recipe.inputs else None
        later = settings is not None and (settings.own or recipe.reader_of(name) in unread)
        if place in known or (part and later):
            continue
        setting = settings.makes.get(part) if settings is not None else None
        hint = f"; {recipe.encoder_path(name)}.{setting} makes {place}" if setting else ""
        allowed = f"allowed: {', '.join(known) or 'no input'}{hint}"
        yield Problem("attention.over", f"there is no input '{place}'{nearest(place, known)}; {allowed}")


@rule("through")
def check_through(recipe: Recipe) -> Iterator[Problem]:
    """Looking at words through their sentences is one look at all words of a document."""
    for name in recipe.looked_at if recipe.attention.through is not None else ():
        if "." not in name:
            parts = [f"{name}.{part}" for part in recipe.encoder_of(name).further]
            instead = f"; attention.over: {', '.join(parts)}" if parts else ""
            yield Problem("attention.through", f"'{name}' has no places inside larger ones{instead}")


@rule("sentences")
def check_sentences(recipe: Recipe) -> Iterator[Problem]:
    """The sentence level of a document is used. (The regions of a frame contain the frame's state.)"""
    used = {*recipe.started_by, *recipe.fed_every_step, *recipe.looked_at}
    for place in recipe.looked_at if recipe.attention.through is None else ():
        name, _, part = place.partition(".")
        alone = part and name not in used and part == recipe.inputs[name].copied_part
        if alone and not recipe.encoder_of(name).own:
            message = (
                f"{place} alone leaves the sentences unused; set attention.through to sentences, or name the input"
            )
            yield Problem("attention.over", f"{message} in decoder.start, or read it as kind text")


@rule("scope")
def check_scope(recipe: Recipe) -> Iterator[Problem]:
    """A window has neighbours: places in a line, or in a grid."""
    scope = recipe.attention.scope
    for name in recipe.looked_at if scopes[scope].local else ():
        layout, allowed = recipe.view_of(name)[1], "global"
        if layout in (*WINDOWED, None):  # None: only the built encoder knows
            continue
        window = f"{scope} is a window in a line or a grid"
        if layout == "sentences":
            used = name in (*recipe.started_by, *recipe.fed_every_step)
            allowed += f", or attention.over {name}.words" + ("" if used else f" with decoder.start {name}")
            message = f"{window}, and the places of '{name}' are sentences"
        elif layout == "set":
            message = f"{scope} is a window of neighbours, and '{name}' is read as a set, which has none"
        else:
            message = f"{window}, but the places of '{name}' are laid out as {layout}"
        yield Problem("attention.scope", f"{message}; allowed: {allowed}")


@rule("set-score")
def check_sets(recipe: Recipe) -> Iterator[Problem]:
    """A score that depends on positions has no meaning for a set."""
    attention = recipe.attention
    for name in recipe.looked_at if attention.goes_by_order else ():
        if recipe.view_of(name)[1] == "set":
            free = [score for score in scores if not scores[score].ordered]
            narrow = isinstance(attention, CoverageSettings) and not recipe.output.one_step
            allowed = f"{', '.join([*free, 'none'])}{', or attention.kernel 1' if narrow else ''}"
            message = f"{attention.score} depends on the position of a place, but '{name}' is a set, which has no order"
            yield Problem("attention.score", f"{message}; allowed: {allowed}")


@rule("attention")
def check_attention(recipe: Recipe) -> Iterator[Problem]:
    """Attention needs an input with places, and its context has to reach the output."""
    attention = recipe.attention
    score = attention.score
    if score == "none":
        return
    if not recipe.inputs:
        message = f"{score} has nothing to look at in a model without inputs; allowed: none"
        yield Problem("attention.score", message)
    elif not recipe.with_places:
        message = f"{score} has nothing to look at: a vector is a single place, at which every look is the same"
        yield Problem("attention.score", f"{message}; allowed: none")
    elif not recipe.looked_at:
        yield Problem("attention.over", "names no input; to switch attention off, set attention.score to none")
    elif recipe.output.one_step and scores[score].remembers:
        allowed = ", ".join([*(name for name in scores if not scores[name].remembers), "none"])
        message = f"{score} goes by earlier looks, and {recipe.output.noun} is decoded in one step, with none before it"
        yield Problem("attention.score", f"{message}; allowed: {allowed} (additive is the same there)")
    elif not _reaches_the_output(recipe):
        recurrent = isinstance(recipe.decoder, RecurrentDecoderSettings)
        allowed = "all, or attention.input_feeding true" if recurrent else "all"
        yield Problem("decoder.output", f"state leaves the context unseen; allowed: {allowed}")


def _reaches_the_output(recipe: Recipe) -> bool:
    """Whether what is looked at goes into the output layer, or into the recurrence."""
    decoder = recipe.decoder
    if decoder.own or not isinstance(decoder, SeenSettings) or decoder.output == "all":
        return True
    recurrence = recipe.attention.query == "previous" or recipe.attention.input_feeding
    return recurrence and isinstance(decoder, RecurrentDecoderSettings)


@rule("single-places")
def check_single_places(recipe: Recipe) -> Iterator[Problem]:
    """What is looked at has more than one place."""
    for name in recipe.looked_at:
        if name in recipe.inputs and recipe.one_place(name):
            what = "a vector" if recipe.inputs[name].one_place else "made into one vector"
            others = ", ".join(recipe.with_places)
            allowed = f"attention.over {others}" if others else "attention.score none"
            yield Problem(
                "attention.over",
                f"'{name}' is {what}, a single place: every look at it is the same; allowed: {allowed}, and "
                f"decoder.start {name}",
            )


@rule("attention-sizes")
def check_sizes(recipe: Recipe) -> Iterator[Problem]:
    """Heads divide the places' size; queries and places have one size where they are multiplied as they are."""
    sizes = {name: recipe.view_of(name)[0] for name in recipe.looked_at}
    places = {name: size for name, size in sizes.items() if size is not None}
    attention, state = recipe.attention, recipe.state_size
    if attention.heads > 1:
        for name, size in places.items():
            for key, message in heads_problems(size, attention.heads):
                yield Problem(f"attention.{key}", f"places of '{name}': {message}")
    elif places and scores[attention.score].same_size and state is not None:
        asking = "decoder.size" if state == recipe.decoder.size else "the code's size"
        for name, size in (places | _larger_places(recipe)).items():
            if size != state:
                instead = f", or set decoder.size={size}" if asking == "decoder.size" else ""
                yield Problem(
                    "attention.score",
                    f"{attention.score} needs {asking} equal to the size of the places of '{name}', got {state} and "
                    f"{size}; use general or additive{instead}",
                )


def _larger_places(recipe: Recipe) -> dict[str, int]:
    """Larger places that are asked too, where others are looked at through them, and the numbers in each."""
    if recipe.attention.through is None:
        return {}
    sizes = {name.partition(".")[0]: recipe.encoder_of(name.partition(".")[0]).places_size for name in recipe.looked_at}
    return {name: size for name, size in sizes.items() if size is not None}


@rule("attention-settings", stage="no-effect")
def check_attention_settings(recipe: Recipe) -> Iterator[Problem]:
    settings, path = recipe.attention, "attention"
    if settings.score == "none":
        return
    if not any("." in name for name in recipe.looked_at):
        yield from no_effect(settings, path, ["through"], "no input that is looked at has places inside larger ones")
    asking = ["query", "input_feeding"]
    if recipe.output.one_step:
        yield from no_effect(settings, path, asking, f"{recipe.output.noun} is decoded in one step")
    elif isinstance(recipe.decoder, TransformerDecoderSettings):
        yield from no_effect(settings, path, asking, "in a transformer each layer asks with its own state")
    elif isinstance(recipe.decoder, RecurrentDecoderSettings) and settings.query == "previous":
        yield from no_effect(settings, path, ["input_feeding"], "with query previous the context always enters")
    if settings.constant:
        yield from no_effect(settings, path, ["estimator", "gumbel_temperature"], "uniform weights are not learned")
        if not isinstance(settings, MonotonicSettings) or not settings.gaussian:
            yield from no_effect(settings, path, ["normaliser", "temperature"], "uniform weights are what they are")


@rule("look-losses", stage="no-effect")
def check_look_losses(recipe: Recipe) -> Iterator[Problem]:
    """Losses of looks, where there are looks that can be learned."""
    attention, loss = recipe.attention, recipe.loss
    looks = bool(recipe.looked_at)
    if not looks:
        keys = ["doubly_stochastic", "entropy", "coverage"]
        yield from no_effect(loss, "loss", keys, "without attention there are no looks")
    elif recipe.output.one_step:
        yield from no_effect(loss, "loss", ["coverage"], f"{recipe.output.noun} is decoded in one step")
    if not looks or not attention.by_score:
        keys = ["exploration", "baseline_decay"]
        yield from no_effect(loss, "loss", keys, "nothing is drawn and learned by its score")
    if looks and attention.constant:
        keys = ["doubly_stochastic", "entropy", "coverage", "exploration", "baseline_decay"]
        yield from no_effect(loss, "loss", keys, "uniform weights are not learned")
    if looks and not scores[attention.score].uses_query and not scopes[attention.scope].local:
        yield from no_effect(loss, "loss", ["coverage"], "static looks are the same at every step")


@rule("consistency-loss", stage="no-effect")
def check_consistency(recipe: Recipe) -> Iterator[Problem]:
    """Reading a row twice tells nothing where both readings are the same."""
    if recipe.data.stream:
        yield from no_effect(recipe.loss, "loss", ["consistency"], "a stream is read once, as it is")
        return
    readers, decoder = [recipe.encoder_of(name) for name in recipe.inputs], recipe.decoder
    parts: list[Settings | None] = [decoder, *readers, *(one.symbols for one in readers)]
    if isinstance(decoder, SymbolSettings) and not recipe.output.one_step:
        parts.append(decoder.embedding)
    keys = ("dropout", "recurrent_dropout", "symbol_dropout")  # weight_drop is the same for both readings
    shares = [getattr(part, key, None) for part in parts for key in keys]
    drawn = bool(recipe.looked_at) and isinstance(recipe.attention, HardSettings)
    if not (any(shares) or drawn or decoder.own or any(one.own for one in readers)):
        yield from no_effect(recipe.loss, "loss", ["consistency"], "without dropout a row is read the same way twice")


@rule("unknown-words", stage="no-effect")
def check_replacing(recipe: Recipe) -> Iterator[Problem]:
    """An input symbol can stand in for an unknown one where symbols are looked at."""
    yield from no_effect(recipe.search, "search", ["replace_unknown"], _nothing_to_put_in(recipe))


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


# --- Copying, and alignments to learn from: both point from symbols of the output to places of an input


@rule("pointing-settings", stage="no-effect")
def check_pointing(recipe: Recipe) -> Iterator[Problem]:
    """There is something to point from and something to point at."""
    alignment, reason = recipe.loss.alignment, ""
    if recipe.output.one_step:
        reason = f"{recipe.output.noun} has no symbols"
    elif not recipe.looked_at:
        reason = "without attention no place is looked at"
    if recipe.copied_from is not None and (reason or _at_sentences_alone(recipe)):
        alone = f"its words are not looked at (attention.over={recipe.copied_places})"
        yield Problem("decoder.copy_from", reason or alone)
    if reason and alignment.column is not None:
        yield Problem("loss.alignment.column", reason)
    if alignment.column is None:
        yield from no_effect(
            alignment, "loss.alignment", ["weight", "rate", "optional"], "loss.alignment.column is not given"
        )
    elif not reason and not timed_alignment(recipe):
        yield from no_effect(alignment, "loss.alignment", ["rate"], "links between symbols have no times")


def _at_sentences_alone(recipe: Recipe) -> bool:
    """Whether a document is looked at whose words could be copied, but not at them."""
    name = recipe.copied_from
    return recipe.copied_places != name in recipe.looked_at and recipe.copied_places not in recipe.looked_at


@rule("copying")
def check_copying(recipe: Recipe) -> Iterator[Problem]:
    """Words that are copied are those of the output."""
    name, path, output = recipe.copied_from, "decoder.copy_from", recipe.output
    if not recipe.looked_at or not isinstance(output, TextOutput) or name is None or name not in recipe.inputs:
        return
    looked_at = [one.removesuffix(".words") for one in recipe.looked_at]
    texts = [one for one in looked_at if one in recipe.texts]
    if name not in texts:
        message = f"'{name}' is not a text that is looked at; allowed: {', '.join([*texts, 'none'])}"
        yield Problem(path, message)
        return
    separator, tokens = getattr(recipe.inputs[name], "separator", None), recipe.texts[name].tokens
    if separator is not None:
        message = f"elements of {name} stand between {separator!r}, symbols of the output do not; allowed: none"
        yield Problem(path, message)
    elif tokens != output.tokens:
        message = f"tokens are {tokens} in {name} and {output.tokens} in the output: must be the same"
        yield Problem(path, message)
    elif tokens == "bpe" and recipe.vocabulary_owner(name) != recipe.vocabulary_owner("output"):
        message = f"pieces (bpe) are those of the output only where they are shared; set output.share={name}"
        yield Problem(path, message)


@rule("alignment")
def check_alignment(recipe: Recipe) -> Iterator[Problem]:
    """Links count the words of the first input that is looked at, or times lie in it, and looks can be learned from
    them."""
    alignment, output, path = recipe.loss.alignment, recipe.output, "loss.alignment.column"
    if not recipe.looked_at or not isinstance(output, TextOutput) or alignment.column is None:
        return
    first = recipe.looked_at[0]
    read = recipe.texts.get(first) if first in recipe.inputs and recipe.inputs[first].in_a_row else None
    if timed_alignment(recipe):
        pass
    elif read is None and alignment.optional:
        return
    elif read is None:
        message = f"links count the words of a text, and '{first}', the first input looked at, is not a text"
        yield Problem(path, f"{message}; times belong to a sound or a video")
    elif "bpe" in (read.tokens, output.tokens):
        message = "links count words, and tokens are bpe: pieces of words; allowed: word, symbol, character"
        yield Problem(path, message)
    if alignment.weight and not alignment.optional:  # else what can be learned from it is
        yield from _unteachable(recipe)
    columns = {f"inputs.{name}": one.column or name for name, one in recipe.inputs.items()}
    columns["output"] = output.column or "output"
    taken = next((key for key, column in columns.items() if column == alignment.column), None)
    if taken is not None:
        yield Problem(path, f"'{alignment.column}' is the column of {taken}")


def _unteachable(recipe: Recipe) -> Iterator[Problem]:
    """Looks that links cannot change."""
    path, attention = "loss.alignment.weight", recipe.attention
    if attention.constant:
        message = f"{recipe.loss.alignment.weight:g}, and uniform weights are not learned; allowed: 0"
        yield Problem(path, message)
    elif attention.zeros:
        instead = "attention.normaliser softmax and attention.scope global"
        yield Problem(path, f"{attention.zeros}, which has no logarithm to learn from; allowed: 0, or {instead}")


def copying_notes(recipe: Recipe) -> list[str]:
    """Notes on copying where attention gives places exactly zero."""
    if recipe.copied_from is None or not recipe.attention.zeros:
        return []
    where = f"at such a place of {recipe.copied_from}"
    return [f"{recipe.attention.zeros}: a word that only copying can write, {where}, has no probability to learn from"]


# --- CTC


@rule("ctc")
def check_ctc(recipe: Recipe) -> Iterator[Problem]:
    """The places that a text is read off lie one after the other."""
    name = recipe.read_along
    if name is None or list(check_ctc_settings(recipe)):
        return
    layout = recipe.view_of(name)[1]
    if recipe.search.ctc and recipe.copied_from is not None:
        yield Problem("search.ctc", "words that are copied cannot be read along the places; allowed: 0")
    elif layout not in (*WINDOWED, None):  # None: only the built encoder knows
        yield Problem(
            "loss.ctc", f"the places of '{name}' are laid out as {layout}, and do not follow one another; allowed: 0"
        )


@rule("ctc-settings", stage="no-effect")
def check_ctc_settings(recipe: Recipe) -> Iterator[Problem]:
    """There is a text, and places to read it off."""
    if not recipe.loss.ctc:
        yield from no_effect(recipe.search, "search", ["ctc"], "loss.ctc is 0: nothing is read along the places")
        reason = "loss.ctc is 0: nothing is read along the places"
        yield from no_effect(recipe.loss, "loss", ["ctc_first", "ctc_alignment"], reason)
    elif recipe.output.one_step:
        message = f"a {recipe.output.kind} has no symbols to be read one after the other"
        yield Problem("loss.ctc", message)
    elif not recipe.inputs:
        yield Problem("loss.ctc", "a model without inputs has no places to read")
    elif recipe.read_along not in recipe.looked_at:
        reason = f"'{recipe.read_along}', which is read along, is not looked at"
        yield from no_effect(recipe.loss, "loss", ["ctc_alignment"], reason)
