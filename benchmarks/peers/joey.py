"""Joey NMT as a worker: its own `train` with a train manager that waits between updates, its own `predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joeynmt.training
import torch
from joeynmt.config import parse_global_args
from joeynmt.prediction import predict, prepare
from joeynmt.training import TrainManager
from turns import Updates, answer, config, work


def configuration(folder: Path) -> dict[str, Any]:
    """What a user of Joey NMT writes into a YAML file."""
    data, dropout = Path(config["data"]), config["dropout"]
    side = {"level": "word", "max_length": 100, "voc_min_freq": 1}
    encoder = {"type": "recurrent", "rnn_type": "gru", "bidirectional": True, "hidden_size": 256, "num_layers": 1}
    decoder = {"type": "recurrent", "rnn_type": "gru", "hidden_size": 512, "num_layers": 1, "attention": "bahdanau"}
    embeddings = {"embedding_dim": 256, "dropout": dropout}
    return {
        "name": "peers",
        "model_dir": str(folder),
        "use_cuda": False,
        "random_seed": 1,
        "data": {
            "train": str(data / "train"),
            "dev": str(data / "dev"),
            "dataset_type": "plain",
            "src": {"lang": "en", "voc_file": str(data / "vocabulary.en"), **side},
            "trg": {"lang": "de", "voc_file": str(data / "vocabulary.de"), **side},
        },
        "model": {
            "encoder": {**encoder, "dropout": dropout, "embeddings": embeddings},
            "decoder": {
                **decoder,
                "dropout": dropout,
                "hidden_dropout": dropout,
                "input_feeding": True,
                "init_hidden": "bridge",
                "embeddings": embeddings,
            },
        },
        "training": {
            "optimizer": "adam",
            "learning_rate": config["rate"],
            "learning_rate_min": 1e-9,
            "scheduling": "exponential",
            "decrease_factor": 1.0,  # a constant rate
            "clip_grad_norm": 5.0,
            "batch_size": config["batch"],
            "batch_type": "sentence",
            "epochs": 10**6,
            "logging_freq": 10**8,
            "validation_freq": 10**9,
        },
        "testing": {"batch_size": 64, "batch_type": "sentence", "max_output_length": 100, "beam_size": 1},
    }


class ManagerInTurns(TrainManager):  # type: ignore[misc] # untyped
    """A train manager that waits for the driver between updates.

    An update is over, the optimiser's step included, when the loss of the next one is asked for.
    """

    turns: Updates | None = None
    tokens = 0

    def _train_step(self, batch: Any) -> Any:
        if self.turns is None:
            self.turns = Updates(lambda path: torch.save({"model_state": self.model.state_dict()}, path))  # noqa: TID251
            answer(ready=True)
            self.turns.wait()
        else:
            self.turns.updated(self.tokens)
        self.tokens = int(batch.ntokens)
        return super()._train_step(batch)


def train() -> None:
    folder = Path(config["run"])
    folder.mkdir(parents=True, exist_ok=True)
    joeynmt.training.TrainManager = ManagerInTurns
    joeynmt.training.train(rank=0, world_size=1, cfg=configuration(folder), skip_test=True)


class Decoder:
    model: Any
    data: Any
    args: Any

    def load(self, path: str) -> None:
        settings = configuration(Path(config["run"]))
        settings["testing"]["load_model"] = path
        self.args = parse_global_args(settings, rank=0, mode="translate")
        self.model, _, _, self.data = prepare(self.args, rank=0, mode="translate")

    def decode(self, sentences: list[str], beam: int, batch: int) -> list[str]:
        self.data.reset_cache()
        for sentence in sentences:
            self.data.set_item(sentence)
        outputs = predict(
            model=self.model,
            data=self.data,
            device=self.args.device,
            n_gpu=0,
            normalization="none",
            args=self.args.test._replace(batch_size=batch, beam_size=beam, beam_alpha=1.0 if beam > 1 else -1),
            autocast=self.args.autocast,
        )
        texts: list[str] = outputs[2]
        return texts


if __name__ == "__main__":
    torch.set_num_threads(config["threads"])
    work(train, Decoder)
