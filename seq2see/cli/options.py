"""Arguments and options that several commands share, said once."""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import Parser, column_names, number, whole


def add_model(parser: Parser, *, ensembles: bool = True) -> None:
    more = "; several joined by + are an ensemble" if ensembles else ""
    parser.add_argument("model", metavar="MODEL", help=f"a folder that train wrote{more}")
    add_plugin(parser)


def add_input(parser: Parser) -> None:
    """INPUT, which a language model has not: whether it must be there is known when the model is."""
    parser.add_argument(
        "input",
        metavar="INPUT",
        nargs="?",
        help="the input; several in the recipe's order, a tab between them; none for a language model",
    )


def add_inputs(parser: Parser) -> None:
    """INPUT..., --file and --columns: see `reading.source`."""
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="*",
        help="inputs; a model of several takes them in the recipe's order, a tab between them; without INPUT and "
        "--file, the lines of standard input",
    )
    parser.add_argument(
        "--file", metavar="TABLE", type=Path, help="inputs from the columns of a table, or the lines of a .txt"
    )
    add_columns(parser)
    add_on_error(parser)


def add_on_error(parser: Parser) -> None:
    """--on-error, for commands that read tables with a model: see `models.reading`."""
    parser.add_argument(
        "--on-error",
        metavar="HOW",
        choices=("stop", "skip"),
        help="bad rows and files: stop, or skip them and say so; not given: as the recipe says",
    )


def add_data(parser: Parser) -> None:
    parser.add_argument(
        "--data",
        metavar="TABLE",
        required=True,
        help="a table with inputs and outputs, or the name of a data set (its dev rows)",
    )
    add_columns(parser)
    add_on_error(parser)


def add_training(parser: Parser, *, each: str = "") -> None:
    """--data, --dev, --columns, --set and what ends a run (`each`: said before, where there are several runs)."""
    parser.add_argument(
        "--data",
        metavar="TABLE",
        help="rows to learn from: a table, a folder with train.* and dev.*, a data set's name",
    )
    parser.add_argument("--dev", metavar="TABLE", help="rows to measure on; not given: some rows are set aside")
    add_columns(parser)
    add_changes(parser)
    parser.add_argument("--epochs", metavar="N", type=whole, help=f"{each}stop after N readings of the rows")
    parser.add_argument("--updates", metavar="N", type=whole, help=f"{each}stop after N updates")
    parser.add_argument("--minutes", metavar="M", type=number, help=f"{each}stop after M minutes")


def add_columns(parser: Parser) -> None:
    parser.add_argument(
        "--columns",
        metavar="A,B",
        type=column_names,
        help="columns of the table in the recipe's order, inputs first; one whose name holds a comma in quotes: "
        "'\"A, B\",C'",
    )


def add_changes(parser: Parser) -> None:
    parser.add_argument(
        "--set",
        dest="changes",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change one key of the recipe (decoder.size=256); may be given several times",
    )
    add_plugin(parser)


def add_plugin(parser: Parser) -> None:
    """Wherever a recipe or a model is named: either may name a score, encoder or decoder of the user's own."""
    parser.add_argument(
        "--plugin",
        dest="plugins",
        metavar="MODULE",
        action="append",
        default=[],
        help="import a module of yours, which registers scores, encoders or decoders; may be given several times",
    )


def add_beam(parser: Parser) -> None:
    parser.add_argument("--beam", metavar="K", type=whole, help="hypotheses the search keeps; 1: greedy")


def add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON, one object per line")
