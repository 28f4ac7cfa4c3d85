"""The equations of this very model, as the specification writes them: shown by `show`, filled in by `explain`."""

from __future__ import annotations

import re

from seq2see.attention.scores import scores
from seq2see.recipe.kinds import first_line
from seq2see.recipe.schema import CellSettings, EmbeddingSettings, Recipe

REMARK = re.compile(r"[,;:] (?![^\[(]*[\])])")
"""A score says its equation first; a comma, semicolon or colon outside brackets ends it, and remarks may follow."""


def cell_equation(settings: CellSettings) -> str:
    """How a cell goes from s_{t-1} to s_t, x_t being its input."""
    f = settings.activation
    if settings.cell == "rnn":
        return f"s_t = {f}(W x_t + U s_{{t-1}} + b)"
    if settings.cell == "lstm":
        return (
            "i, f, g, o = W x_t + U s_{t-1} + b;  m_t = logistic(f) * m_{t-1} + logistic(i) * tanh(g);  "
            "s_t = logistic(o) * tanh(m_t)"
        )
    inner = "r * (U_n s_{t-1} + b_U)" if settings.reset == "after" else "U_n (r * s_{t-1})"
    return (
        f"r, z = logistic(W x_t + U s_{{t-1}} + b);  n = {f}(W_n x_t + {inner} + b_n);  "
        "s_t = (1 - z) * n + z * s_{t-1}"
    )


def embedding_equation(settings: EmbeddingSettings, symbol: str) -> str:
    if settings.kind == "one-hot":
        return f"e({symbol}) the unit vector of the symbol (one-hot, nothing to learn)"
    origin = ""
    if settings.kind == "pretrained":
        origin = f", from {settings.path}, {'tuned' if settings.tuned else 'frozen'}"
    return f"e({symbol}) = a row of E ({settings.size} numbers{origin})"


def encoder_equations(recipe: Recipe, name: str) -> list[str]:
    """How the input of that name becomes places h_1 .. h_M and a summary h_M."""
    settings = recipe.encoder_of(name)
    cell = settings.cell
    lines = [embedding_equation(settings.embedding, "x_j")]
    if settings.bidirectional:
        lines.append(f"h_j = [f_j; g_j],  f_j = {cell}(f_{{j-1}}, e(x_j)),  g_j = {cell}(g_{{j+1}}, e(x_j))")
        lines.append("summary = [f_M; g_1], the last state of each direction")
    else:
        lines.append(f"h_j = {cell}(h_{{j-1}}, e(x_j));  summary = h_M, the last state")
    if settings.layers > 1:
        lines.append(f"{settings.layers} layers, each reading the h_j of the one below")
    return [*lines, f"{cell}: {cell_equation(settings)}"]


def score_equation(recipe: Recipe) -> str:
    """'e_j = v' tanh(W_q q + W_k k_j)', in the words of the score's own class; its name where that says nothing."""
    score = recipe.attention.score
    equation = REMARK.split(first_line(scores[score]))[0] or f"e_j = {score}(q, k_j)"
    return f"{equation}, times a learned temperature" if recipe.attention.learned_temperature else equation


def query_of(recipe: Recipe) -> str:
    """The state that asks."""
    if recipe.decoder.kind == "label":
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
    if settings.scope == "global":
        return [f"{normalised}, over the real places"]
    centre = "t" if settings.scope == "local-monotonic" else "M sigmoid(v' tanh(W q))"
    lines = [f"p_t = {centre};  asked are the places j with |j - p_t| <= {settings.window}"]
    if settings.gaussian:
        lines.append(f"e_tj = e_tj - (j - p_t) ** 2 / (2 sigma ** 2), sigma = {settings.window / 2:g}")
    return [*lines, f"{normalised}, over these"]


def context_equation(recipe: Recipe) -> str:
    """What the weights become."""
    settings = recipe.attention
    heads = f" (of each of {settings.heads} heads, joined by W_o)" if settings.heads > 1 else ""
    if settings.choice == "soft":
        return f"c_t = sum_j a_tj h_j{heads}"
    drawn = "learned by its score" if settings.estimator == "score-function" else "learned straight through"
    return f"c_t = h_j, j drawn by a_t while training ({drawn}), the likeliest one otherwise{heads}"


def attention_equations(recipe: Recipe) -> list[str]:
    over = ", ".join(recipe.looked_at)
    lines = [f"{score_equation(recipe)}, with q = {query_of(recipe)} and k_j = h_j of {over}"]
    lines += [*weights_equations(recipe), context_equation(recipe)]
    if len(recipe.looked_at) > 1:
        lines.append("one attention for each of these inputs; c_t joins their contexts")
    return lines


def joined(names: list[str], join: str) -> str:
    parts = [f"summary of {name}" for name in names]
    if join == "compare" and len(parts) == 2:
        u, v = names
        return f"[u; v; |u - v|; u * v], u = summary of {u}, v = summary of {v}"
    return parts[0] if len(parts) == 1 else f"[{'; '.join(parts)}]"


def start_equation(recipe: Recipe) -> str:
    s = "s" if recipe.decoder.kind == "label" else "s_0"
    if not recipe.started_by:
        return f"{s} is a parameter, learned with the rest"
    summary = joined(recipe.started_by, recipe.decoder.join)
    return f"{s} = {summary}" if recipe.decoder.start_by == "copy" else f"{s} = tanh(W_start ({summary}) + b_start)"


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


def step_equation(recipe: Recipe) -> str:
    return f"s_t = {recipe.decoder.cell}(s_{{t-1}}, [{'; '.join(step_inputs(recipe))}])"


def output_equation(recipe: Recipe) -> str:
    """The output layer, V being E where they are tied."""
    label = recipe.decoder.kind == "label"
    seen = ["s" if label else "s_t"]
    if recipe.decoder.output == "all":
        seen += ["c" if label else "c_t"] if recipe.looked_at else []
        seen += [] if label else ["e(y_{t-1})"]
    features = seen[0] if len(seen) == 1 else f"[{'; '.join(seen)}]"
    seen_by_gate = features
    if recipe.decoder.readout or recipe.decoder.tied:
        features = f"tanh(W_o {features} + b_o)"
    weights = "E" if recipe.decoder.tied and not label else "V"
    spoken = f"softmax({weights} {features} + c)"
    if recipe.copied_from is None:
        return f"{probability(recipe)} = {spoken}"
    pointed = f"sum_{{j: x_j = y_t}} a_tj (x: {recipe.copied_from})"
    gate = f"g = sigmoid(w_g' {seen_by_gate} + b_g)"
    return f"{probability(recipe)} = g {spoken} + (1 - g) {pointed};  {gate}"


def probability(recipe: Recipe) -> str:
    """What the model gives: P(y | x) of a label, P(y_t | y_<t, x) of a symbol."""
    if recipe.output.kind == "label":
        return "P(y | x)"
    return "P(y_t | y_<t, x)" if recipe.inputs else "P(y_t | y_<t)"
