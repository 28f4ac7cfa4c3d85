"""Symbols as vectors: learned, one-hot, or brought along, frozen or tuned."""

from __future__ import annotations

import pytest
import torch

from seq2see.embeddings import Embedding, EmbeddingSettings, OneHot, build_embedding

IDS = torch.tensor([[3, 0], [1, 3]])
VECTORS = torch.randn(5, 7)


def test_a_learned_embedding_is_rows_of_a_matrix() -> None:
    made = build_embedding(EmbeddingSettings(size=6), 5)
    assert isinstance(made, Embedding)
    assert made(IDS).equal(made.E[IDS])
    assert made.weight is made.E
    assert (made.size, made.E.shape, made.E.requires_grad) == (6, (5, 6), True)


def test_one_hot_is_the_unit_vector_of_a_symbol() -> None:
    made = build_embedding(EmbeddingSettings(kind="one-hot"), 5)
    assert isinstance(made, OneHot)
    assert made(IDS).equal(torch.eye(5)[IDS])
    assert made.size == 5
    assert made.weight is None
    assert not list(made.parameters())


@pytest.mark.parametrize("tuned", [True, False])
def test_pretrained_vectors_are_kept_and_learn_only_where_tuned(tuned: bool) -> None:
    made = build_embedding(EmbeddingSettings(kind="pretrained", path="x.vec", tuned=tuned), 5, vectors=VECTORS)
    assert isinstance(made, Embedding)
    assert made(IDS).equal(VECTORS[IDS])
    assert made.size == 7
    assert made.E.requires_grad == tuned
    assert made.E.data_ptr() != VECTORS.data_ptr()


def test_pretrained_vectors_may_come_later_with_the_weights() -> None:
    made = build_embedding(EmbeddingSettings(kind="pretrained", path="x.vec", size=7, tuned=False), 5)
    made.load_state_dict({"E": VECTORS})
    assert made(IDS).equal(VECTORS[IDS])
    assert not any(parameter.requires_grad for parameter in made.parameters())


@pytest.mark.parametrize("kind", ["learned", "one-hot"])
def test_dropout_is_for_training_alone(kind: str) -> None:
    made = build_embedding(EmbeddingSettings.model_validate({"kind": kind, "dropout": 0.5}), 50)
    ids = torch.arange(50)
    assert made.eval()(ids).equal(made(ids))
    whole = made(ids)
    kept = made.train()(ids)
    assert (kept[whole != 0] == 0).float().mean().item() == pytest.approx(0.5, abs=0.2)
    torch.testing.assert_close(kept[kept != 0], 2 * whole[kept != 0])


@pytest.mark.parametrize(("size", "deviation", "expected"), [(400, 0.0, 1 / 20), (400, 0.25, 0.25), (9, 0.25, 1 / 3)])
def test_rows_begin_with_length_one_or_longer_where_numbers_would_be_small(
    size: int, deviation: float, expected: float
) -> None:
    """The deviation is max(1 / sqrt(size), the least that is asked for), around zero."""
    made = build_embedding(EmbeddingSettings(size=size), 20_000, deviation=deviation)
    assert isinstance(made, Embedding)
    assert float(made.E.detach().std()) == pytest.approx(expected, rel=0.02)
    assert float(made.E.detach().mean()) == pytest.approx(0, abs=expected / 50)
