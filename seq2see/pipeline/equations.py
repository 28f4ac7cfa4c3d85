"""The equations of this very model, as the specification writes them: shown by `show`, filled in by `explain`."""

from __future__ import annotations

from seq2see.attention.scores import equation_of
from seq2see.decoders import decoders
from seq2see.encoders import Dense, encoders
from seq2see.recipe.numbers import activation_of, channels_of, hidden_of, output_of
from seq2see.recipe.schema import Recipe
from seq2see.settings.encoders import embedding_of
from seq2see.settings.equations import cell_equation, embedding_equation, position_words

__all__ = ["cell_equation", "embedding_equation"]


def encoder_equations(recipe: Recipe, name: str) -> list[str]:
    """How the input of that name becomes places h_1 .. h_M and a summary, in the words of its encoder's own class."""
    settings = recipe.encoder_of(name)
    lines = encoders[settings.kind].equations(settings)
    embedding = embedding_of(settings)
    if settings.own is None or embedding is None or "embedding" not in settings.own.given:
        return lines
    return [*lines, embedding_equation(embedding, "x_j")]


def score_equation(recipe: Recipe) -> str:
    """'e_j = v' tanh(W_q q + W_k k_j)', in the words of the score's own class; its name where that says nothing."""
    equation = equation_of(recipe.attention.score)
    return f"{equation}, times a learned temperature" if recipe.attention.learned_temperature else equation


def query_of(recipe: Recipe) -> str:
    """The state that asks."""
    if recipe.decoder.own is not None:
        return f"what {recipe.decoder.kind} asks with"
    if recipe.decoder.kind == "transformer":
        return "norm(x)" if recipe.output.one_step else "norm(x_t)"
    if recipe.output.one_step:
        return "s"
    return "s_t" if recipe.attention.query == "current" else "s_{t-1}"


def weights_equations(recipe: Recipe) -> list[str]:
    """How energies become weights: which places are asked, and what makes the energies sum to one."""
    settings = recipe.attention
    sharp = "" if settings.temperature == 1 else f" / {settings.temperature:g}"
    normalised = {
        "softmax": f"a_tj = exp(e_tj{sharp}) / sum_i exp(e_ti{sharp})",
        "sparsemax": f"a_tj = max(e_tj{sharp} - tau_t, 0)",
        "entmax15": f"a_tj = max(e_tj{sharp} / 2 - tau_t, 0) ** 2",
    }[settings.normaliser]
    if settings.normaliser != "softmax":
        normalised += ", tau_t such that they sum to one"
    if settings.through is not None:
        normalised = normalised.replace("sum_i", "sum_k").replace("e_ti", "e_tk")
        local = [] if settings.scope == "global" else _window_equations(recipe, grid=False)
        if local:
            local[0] = local[0].replace("the places j", "the words j") + ", and the sentences i that hold one"
        if len(local) > 1:
            local.append("e_ti = e_ti - as much as the nearest word of the sentence")
        larger = normalised.replace("a_tj =", "a_ti =").replace("_tj", "_ti")
        return [
            *local,
            f"{larger}, over the sentences h_i, by a score of their own",
            f"{normalised.replace('a_tj =', 'a_tj|i =')}, over the words of sentence i",
            "a_tij = a_ti * a_tj|i: the weights of all words sum to one",
        ]
    if settings.scope == "global":
        return [f"{normalised}, over the real places"]
    layouts = dict.fromkeys(recipe.encoder_of(name.partition(".")[0]).layout == "grid" for name in recipe.looked_at)
    lines = [line for grid in layouts for line in _window_equations(recipe, grid=grid)]
    return [*lines, f"{normalised}, over these"]


def _window_equations(recipe: Recipe, *, grid: bool) -> list[str]:
    """Which places are asked around p_t, and what their distance costs: in a line, or in rows i and columns j."""
    settings, reach = recipe.attention, recipe.attention.window
    predicted, far = settings.scope == "local-predicted", "(j - p_t) ** 2"
    if not grid:
        centre = "M sigmoid(v' tanh(W q))" if predicted else "t"
        lines = [f"p_t = {centre};  asked are the places j with |j - p_t| <= {reach}"]
    elif predicted:
        far = "((i - r_t) ** 2 + (j - p_t) ** 2)"
        centre = "(r_t, p_t) = (rows, columns) * sigmoid(V tanh(W q))"
        lines = [f"{centre};  asked are rows i and columns j with |i - r_t| <= {reach} and |j - p_t| <= {reach}"]
    else:
        lines = [f"p_t = t, a column;  asked are all rows of the columns j with |j - p_t| <= {reach}"]
    if settings.gaussian:
        lines.append(f"e_tj = e_tj - {far} / (2 sigma ** 2), sigma = {reach / 2:g}")
    return lines


def context_equation(recipe: Recipe) -> str:
    """What the weights become."""
    settings = recipe.attention
    heads = f" (of each of {settings.heads} heads, joined by W_o)" if settings.heads > 1 else ""
    if settings.choice == "soft":
        summed = "sum_j a_tj h_j" if settings.through is None else "sum_ij a_tij w_ij"
        return f"c_t = {summed}{heads}"
    drawn = "learned by its score" if settings.estimator == "score-function" else "learned straight through"
    place = "h_j, j" if settings.through is None else "w_ij, ij"
    return f"c_t = {place} drawn by a_t while training ({drawn}), the likeliest one otherwise{heads}"


def attention_equations(recipe: Recipe) -> list[str]:
    over, place = ", ".join(recipe.looked_at), _place(recipe)
    above = "" if recipe.attention.through is None else ";  e_i of sentences likewise, with k_i = h_i"
    lines = [f"{score_equation(recipe)}, with q = {query_of(recipe)} and k_j = {place} of {over}{above}"]
    lines += [*heads_equations(recipe), *weights_equations(recipe), context_equation(recipe)]
    if recipe.attention.conditions:
        lines.append(f"P is given {recipe.attention.conditions}: it is not summed over all that could have been")
    if recipe.decoder.kind == "transformer" and recipe.decoder.layers > 1:
        lines.append("each layer looks for itself; the last one's looks are shown first, the others as layer-1, ...")
    if len(recipe.looked_at) > 1:
        lines.append("one attention for each of these inputs; c_t joins their contexts")
    return lines


def heads_equations(recipe: Recipe) -> list[str]:
    """What each head asks with, asks and sees: parts of projections, of which sentences have their own."""
    if recipe.attention.heads == 1:
        return []
    place, both = _place(recipe), recipe.attention.through is not None
    asked = f"its part of W_q q + b_q as q, of W_k {place} + b_k as k_j"
    lines = [
        f"each head has {asked}, and of W_v {place} + b_v as {place} ({'of heads, words' if both else 'of heads'})"
    ]
    return lines + ["for sentences its part of W_q q + b_q as q, of W_k h_i + b_k as k_i (of heads, sentences)"] * both


def _place(recipe: Recipe) -> str:
    """What is looked at: places of an input, or the words in its sentences."""
    return "h_j" if recipe.attention.through is None else "w_ij"


def joined(names: list[str], join: str) -> str:
    parts = [f"summary of {name}" for name in names]
    if join == "compare" and len(parts) == 2:
        u, v = names
        return f"[u; v; |u - v|; u * v], u = summary of {u}, v = summary of {v}"
    return parts[0] if len(parts) == 1 else f"[{'; '.join(parts)}]"


def start_equation(recipe: Recipe) -> str:
    if recipe.decoder.own is not None:
        return f"from {joined(recipe.started_by, recipe.decoder.join)}" if recipe.started_by else "from no input"
    s = "s" if recipe.output.one_step else "s_0"
    if recipe.decoder.kind == "transformer" and recipe.output.one_step:
        s = "x"
    elif recipe.decoder.kind == "transformer":
        if not recipe.started_by:
            return "from <sos> alone"
        s = "x_1 = x_1 + s_0,  s_0"
    if not recipe.started_by:
        return f"{s} is a parameter, learned with the rest"
    summary = joined(recipe.started_by, recipe.decoder.join)
    copied = recipe.decoder.start_by == "copy" or recipe.decoder.kind == "reconstruction"
    return f"{s} = {summary}" if copied else f"{s} = tanh(W_start ({summary}) + b_start)"


def step_inputs(recipe: Recipe) -> list[str]:
    """What enters the cell at step t."""
    parts = ["e(y_{t-1})"]
    if recipe.looked_at:
        if recipe.attention.query == "previous":
            parts.append("c_t")
        elif recipe.attention.input_feeding:
            parts.append("c_{t-1}")
    if recipe.fed_every_step:
        parts.append(joined(recipe.fed_every_step, recipe.decoder.join))
    return parts


def layer_equations(recipe: Recipe) -> list[str]:
    """How a transformer, or a decoder of the user's own, goes from the symbols so far to s_t."""
    decoder = recipe.decoder
    if decoder.own is not None:
        return decoders[decoder.kind].equations(decoder)
    parts = ["x_t = x_t + self(norm(x))_t over x_1 .. x_t" + _so_far(decoder.memory)]
    if recipe.looked_at:
        parts.append(_looked(recipe))
    parts.append("x_t = x_t + W_2 relu(W_1 norm(x_t) + b_1) + b_2")
    if recipe.output.one_step:
        return [f"each layer: {';  '.join(parts[1:])}".replace("_t", ""), "s = norm(x)"]
    projected = "W_e " * (decoder.embedding.kind == "one-hot" or decoder.embedding.size != decoder.size)
    entered = f"x_t = sqrt({decoder.size}) {projected}e(y_{{t-1}})"
    if recipe.fed_every_step:
        entered += f" + W_h {joined(recipe.fed_every_step, decoder.join)}"
    return [
        entered + position_words(decoder.positions, decoder.longest, "t"),
        f"each layer: {';  '.join(parts)}",
        "self(x)_t = W_o [c_t of each head] + b_o,  c_t = sum_i softmax_i(W_q x_t . W_k x_i / sqrt(d)) W_v x_i",
        "s_t = norm(x_t)",
    ]


def _so_far(memory: int | None) -> str:
    """How far back a step sees, where that has a limit."""
    return "" if memory is None else f", of these the last {memory + 1}"


def _looked(recipe: Recipe) -> str:
    """How what a layer sees of the inputs enters it."""
    sizes = [recipe.view_of(name)[0] for name in recipe.looked_at]
    same = recipe.attention.heads > 1 and sum(size or 0 for size in sizes) == recipe.decoder.size
    maybe = " (c_t itself if it has the size of x_t)" * (recipe.attention.heads > 1 and None in sizes)
    return f"x_t = x_t + {'c_t' if same else 'W_c c_t + b_c'}{maybe}"


def step_equation(recipe: Recipe) -> str:
    return f"s_t = {recipe.decoder.cell}(s_{{t-1}}, [{'; '.join(step_inputs(recipe))}])"


def output_equation(recipe: Recipe) -> str:
    """The output layer, V being E where they are tied."""
    if recipe.output.numeric:
        return numbers_equation(recipe)
    label = recipe.output.one_step
    seen = ["s" if label else "s_t"]
    if recipe.decoder.own is not None:
        seen = [f"features of {recipe.decoder.kind}"]
    elif recipe.decoder.output == "all" and recipe.decoder.kind != "transformer":
        seen += ["c" if label else "c_t"] if recipe.looked_at else []
        seen += [] if label else ["e(y_{t-1})"]
    features = seen[0] if len(seen) == 1 else f"[{'; '.join(seen)}]"
    seen_by_gate = features
    decoder = recipe.decoder
    direct = decoder.kind == "transformer" and decoder.embedding.size == decoder.size
    if decoder.readout or (decoder.tied and not direct):
        features = f"tanh(W_o {features} + b_o)"
    weights = "E" if recipe.decoder.tied and not label else "V"
    spoken = f"softmax({weights} {features} + c)"
    if recipe.copied_from is None:
        return f"{probability(recipe)} = {spoken}"
    pointed = f"sum_{{j: x_j = y_t}} a_tj (x: {recipe.copied_from})"
    gate = f"g = sigmoid(w_g' {seen_by_gate} + b_g)"
    return f"{probability(recipe)} = g {spoken} + (1 - g) {pointed};  {gate}"


def numbers_equation(recipe: Recipe) -> str:
    """How a code becomes numbers."""
    seen = "[s; c]" if recipe.looked_at and recipe.decoder.output == "all" else "s"
    if recipe.decoder.own is not None:
        seen = f"features of {recipe.decoder.kind}"
    else:
        seen = Dense.equation(seen, len(hidden_of(recipe)), activation=activation_of(recipe))
    made = f"V {seen} + c"
    if recipe.output.file and recipe.decoder.reconstruction.pixels == "transposed":
        levels = channels_of(recipe)
        made = f"transposed convolutions ({len(levels)} levels of {', '.join(map(str, levels))} maps) of ({made})"
    return f"y = {made}" if output_of(recipe) == "linear" else f"y = {output_of(recipe)}({made})"


def probability(recipe: Recipe) -> str:
    """What the model gives: P(y | x) of a label, P(y_t | y_<t, x) of a symbol."""
    if recipe.output.classes:
        return "P(y | x)"
    return "P(y_t | y_<t, x)" if recipe.inputs else "P(y_t | y_<t)"
