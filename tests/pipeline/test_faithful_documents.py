"""What documents' sentences and words matter: each number found again by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import seq2see
from seq2see.api import Model
from seq2see.data.batches import Nested
from seq2see.modalities.texts import TextsField, TextsInput
from seq2see.pipeline.faithful import GRADIENT, OCCLUSION, PlaceImportance
from seq2see.pipeline.scoring import score_rows

FIELD = TextsField(TextsInput())

ROW = {"doc": "a b c ||| d ||| b a", "output": "d b"}
SENTENCES = ["d ||| b a", "a b c ||| b a", "a b c ||| d"]
WORDS = [
    "b c ||| d ||| b a",
    "a c ||| d ||| b a",
    "a b ||| d ||| b a",
    "a b c ||| b a",
    "a b c ||| d ||| a",
    "a b c ||| d ||| b",
]
SMALL = {"kind": "hierarchical", "size": 6, "pooling_size": 4, "embedding": {"size": 5}}
LOOKS = {"doc": {"over": "doc"}, "doc.words": {"over": "doc.words", "through": "sentences"}}
Trained = Callable[[str], Model]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("documents")
    table = folder / "documents.tsv"
    rows = [f"{a} {b} {c} ||| {b} ||| {c} {a}\t{b} {c}\n" for a in "abcd" for b in "abcd" for c in "abcd"]
    table.write_text("doc\toutput\n" + "".join(rows), encoding="utf-8")
    made: dict[str, Model] = {}

    def one(over: str) -> Model:
        if over not in made:
            made[over] = _train(over, table, folder)
        return made[over]

    return one


def _train(over: str, table: Path, folder: Path) -> Model:
    recipe = {
        "inputs": {"doc": {"kind": "texts", "sentences": "|||"}},
        "encoder": SMALL,
        "attention": {**LOOKS[over], "size": 6},
        "decoder": {"size": 12, "embedding": {"size": 5}},
        "training": {"learning_rate": 0.02},
    }
    return seq2see.train(recipe, table, out=folder / over, updates=6, listeners=[])


@pytest.mark.parametrize(("over", "shorter"), [("doc", SENTENCES), ("doc.words", WORDS)])
def test_occlusion_is_the_drop_of_the_scores(trained: Trained, over: str, shorter: list[str]) -> None:
    model = trained(over)
    found = PlaceImportance(model.bundle, ROW).measure()[over]
    whole = np.array(score_rows(model.bundles, [ROW])[0].log_probs)
    cut = [np.array(score_rows(model.bundles, [{**ROW, "doc": one}])[0].log_probs) for one in shorter]
    assert found.importance[OCCLUSION] == pytest.approx(np.stack([whole - one for one in cut], 1), abs=1e-5)
    assert found.attention == pytest.approx(model.look(ROW["doc"], target=ROW["output"]).looks.weights, abs=1e-5)


def test_the_gradient_of_a_sentence_is_that_of_its_words_together(trained: Trained) -> None:
    model = trained("doc")
    words = _by_scales(model)
    by_sentence = np.stack([words[:, :3].sum(1), words[:, 3], words[:, 4:].sum(1)], 1)
    assert PlaceImportance(model.bundle, ROW).measure()["doc"].importance[GRADIENT] == pytest.approx(
        by_sentence, rel=1e-3
    )


def test_the_gradient_of_each_word(trained: Trained) -> None:
    model = trained("doc.words")
    found = PlaceImportance(model.bundle, ROW).measure()["doc.words"].importance[GRADIENT]
    assert found == pytest.approx(_by_scales(model), rel=1e-3)


def _by_scales(model: Model) -> np.ndarray:
    """d log P(y_t) / d z, e(x_j) times 1 + z being read, the norm for each word (steps, words)."""
    network = model.bundle.network.eval()
    batch = model.bundle.fields.batch([ROW], target=True)
    real, embedding = batch.inputs["doc"].mask[0], network.encoder("doc").embedding
    z = torch.zeros(*real.shape, embedding.size, requires_grad=True)
    hook = embedding.register_forward_hook(lambda _module, _given, vectors: vectors * (1 + z))
    step, ready = network.forward_batch(batch)
    hook.remove()
    log_probs = network.head.target_scores(step, ready, batch.target.ids, mask=batch.target.mask)
    slopes = [torch.autograd.grad(one, z, retain_graph=True)[0] for one in log_probs]
    return torch.stack([slope[real].norm(dim=-1) for slope in slopes]).numpy()


def test_documents_lose_a_sentence_or_a_word() -> None:
    ids = torch.tensor([[[5, 6], [7, 0]]] * 3)
    column = Nested(ids, ids > 0, [[["a", "b"], ["c"]]] * 3)
    cut = FIELD.occlusion(column, "words").without(torch.tensor([0, 1, 2]))
    assert cut.ids.tolist() == [[[6, 0], [7, 0]], [[5, 0], [7, 0]], [[5, 6], [0, 0]]]
    assert cut.symbols == [[["b"], ["c"]], [["a"], ["c"]], [["a", "b"]]]
    cut = FIELD.occlusion(column).without(torch.tensor([0, 1, 1]))
    assert cut.ids.tolist() == [[[7, 0]], [[5, 6]], [[5, 6]]]
    assert torch.equal(cut.mask, cut.ids > 0)


def test_both_ways_of_looking_are_measured(trained: Trained) -> None:
    for over in LOOKS:
        found = trained(over).faithful([ROW, {"doc": "c d ||| a", "output": "a c"}], rows=0)
        assert {(one.input, one.measure) for one in found.agreements} == {(over, OCCLUSION), (over, GRADIENT)}
        assert found.rows == 2
