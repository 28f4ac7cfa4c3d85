"""OpenNMT-py as a worker: its own `train_single` with a report manager that waits, its own inference engine."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import onmt.trainer
import onmt.utils
import torch
import yaml
from onmt.bin.train import _get_parser as training_parser
from onmt.bin.train import train as run_training
from onmt.bin.translate import _get_parser as translation_parser
from onmt.inference_engine import InferenceEnginePY
from onmt.utils.parse import ArgumentParser
from turns import Updates, answer, config, work

RECURRENT: dict[str, Any] = {
    "encoder_type": "brnn",
    "decoder_type": "rnn",
    "rnn_type": "GRU",
    "word_vec_size": 256,
    "hidden_size": 512,  # of both directions of the encoder together
    "layers": 1,
    "global_attention": "mlp",
    "input_feed": 1,
}
TRANSFORMER: dict[str, Any] = {
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "word_vec_size": 256,
    "hidden_size": 256,
    "layers": 3,
    "heads": 4,
    "transformer_ff": 512,
    "position_encoding": True,
    "share_decoder_embeddings": True,
    "param_init_glorot": True,
    "param_init": 0.0,
}


class ReportsInTurns:
    """The trainer's report manager, which hears of every update."""

    tensorboard_writer = None

    def __init__(self) -> None:
        self.trainer: Any = None
        self.turns = Updates(self.save)
        self._start = 0.0

    @property
    def start_time(self) -> float:
        return self._start

    @start_time.setter
    def start_time(self, value: float) -> None:
        """Set once, when the loop begins."""
        self._start = value
        answer(ready=True)
        self.turns.wait()

    def report_training(
        self, step: int, steps: int, rate: float, patience: object, statistics: Any, multigpu: bool = False
    ) -> Any:
        self.turns.updated(statistics.n_words)
        return onmt.utils.Statistics()

    def report_step(self, *args: object, **kwargs: object) -> None:
        pass

    def save(self, path: str) -> None:
        saver = self.trainer.model_saver
        saver.base_path, saver.last_saved_step = path, None
        saver.save(0, moving_average=self.trainer.moving_average)
        Path(f"{path}_step_0.pt").rename(path)


def train() -> None:
    data, folder = Path(config["data"]), Path(config["run"])
    folder.mkdir(parents=True, exist_ok=True)
    corpus = {"path_src": str(data / "train.en"), "path_tgt": str(data / "train.de"), "weight": 1}
    settings = {
        "data": {"corpus": corpus},
        "src_vocab": str(data / "vocabulary.en"),
        "tgt_vocab": str(data / "vocabulary.de"),
        "save_model": str(folder / "model"),
        "batch_type": "sents",
        "batch_size": config["batch"],
        "bucket_size": 29_000,  # one pass over the rows
        "num_workers": 0,  # batches are made by the same threads
        "optim": "adam",
        "learning_rate": config["rate"],
        "decay_method": "none",
        "start_decay_steps": 10**9,
        "max_grad_norm": 5,
        "average_decay": round(1 - config["ema"], 6) if config["ema"] else 0,
        "dropout": [config["dropout"]],
        "label_smoothing": 0.0,
        "train_steps": 10**9,
        "valid_steps": 10**9,
        "save_checkpoint_steps": 10**9,
        "report_every": 1,
        "seed": 1,
        **(TRANSFORMER if config["model"] == "transformer" else RECURRENT),
    }
    path = folder / "options.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    reports = ReportsInTurns()
    build = onmt.trainer.Trainer

    def with_reports(*args: Any, **kwargs: Any) -> Any:
        reports.trainer = build(*args, **kwargs)
        return reports.trainer

    onmt.utils.build_report_manager = lambda opt, rank: reports
    onmt.trainer.Trainer = with_reports
    options, _ = training_parser().parse_known_args(["-config", str(path)])
    run_training(options)


class Decoder:
    """One engine, whose options of beam and batch are changed between calls."""

    engine: Any
    options: Namespace

    def load(self, path: str) -> None:
        here = Path(config["run"])
        here.mkdir(parents=True, exist_ok=True)
        source = here / "unused.txt"
        source.touch()
        arguments = ["-model", path, "-src", str(source), "-output", str(here / "outputs.txt"), "-gpu", "-1"]
        self.options = translation_parser().parse_args([*arguments, "-max_length", "100", "-max_length_ratio", "0"])
        ArgumentParser.validate_translate_opts(self.options)
        ArgumentParser._get_all_transform_translate(self.options)
        ArgumentParser._validate_transforms_opts(self.options)
        ArgumentParser.validate_translate_opts_dynamic(self.options)
        self.engine = InferenceEnginePY(self.options)

    def decode(self, sentences: list[str], beam: int, batch: int) -> list[str]:
        self.options.batch_size, self.options.beam_size = batch, beam
        self.engine.translator.beam_size = beam
        _, outputs = self.engine.infer_list(sentences)
        return [best[0] for best in outputs]


if __name__ == "__main__":
    torch.set_num_threads(config["threads"])
    work(train, Decoder)
