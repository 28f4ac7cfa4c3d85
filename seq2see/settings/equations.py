"""Parts of a model in the words of the specification, where a recipe's settings are all it takes."""

from __future__ import annotations

from seq2see.settings.base import CellSettings, EmbeddingSettings


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


def position_words(positions: str, longest: int, symbol: str) -> str:
    """What is added to an embedding, to say where it stands."""
    if positions == "none":
        return ", without positions"
    if positions == "rotary":
        return f"; rotary: W_q x_{symbol} and W_k x_{symbol} are turned by {symbol}"
    if positions == "learned":
        return f" + p_{symbol}, a row of P (at most {longest} positions)"
    return f" + p_{symbol}, sines and cosines of {symbol}"
