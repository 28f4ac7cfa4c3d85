"""`seq2see`: the commands put together, in the order a newcomer needs them."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from seq2see import __version__
from seq2see.cli.evaluate import evaluate
from seq2see.cli.guard import DEBUG, guarded
from seq2see.cli.predict import predict
from seq2see.cli.score import score
from seq2see.cli.tasks import tasks
from seq2see.cli.train import train

EPILOG = "RECIPE: a shipped name (seq2see tasks) or a YAML file. MODEL: a folder that train wrote."

app = typer.Typer(
    name="seq2see",
    help="Encoder-decoder models with attention that show where they look.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (tasks, train, predict, evaluate, score):
    app.command()(guarded(command))


def _version(asked: bool) -> None:
    if asked:
        print(f"seq2see {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show where in the code an error arose.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Say the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Encoder-decoder models with attention that show where they look."""
    if debug:
        os.environ[DEBUG] = "1"


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code: 0 done, 2 the input is at fault, 1 anything else."""
    app(args=arguments, prog_name="seq2see")
