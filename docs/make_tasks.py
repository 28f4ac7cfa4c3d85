"""One page per task, from the recipes themselves: `python docs/make_tasks.py` writes docs/tasks/*.md."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from seq2see.evaluation.baselines import BASELINES
from seq2see.modalities.base import Field
from seq2see.modalities.image import ImageOutput
from seq2see.pipeline.evaluator import metrics_of
from seq2see.pipeline.fields import unbuilt_fields
from seq2see.pipeline.five_answers import answers_of
from seq2see.recipe import Recipe, load_recipe, shipped
from seq2see.recipe.schema import baseline_of
from seq2see.training.dataset import wanted_columns

FOLDER = Path(__file__).parent / "tasks"

PAGE = """# {name}

{description}

```
seq2see train {name} --data {table}
{use}
seq2see evaluate runs/{task} --data {test}
```

- **Table**: {columns}; any table with as many columns works; `--columns` selects others by name.
- **Metrics**: {metrics}; baselines: {baseline}.
- **Every setting** can be changed with `--set`, see [the list of keys](../recipe.md).{attention}

## The five answers

```
{answers}```

## The recipe

```yaml
{recipe}```

This page is written by `python docs/make_tasks.py`.
"""


def page(name: str) -> str:
    """The page of one shipped recipe."""
    recipe = load_recipe(name)
    return PAGE.format(
        name=name,
        task=recipe.task,
        description=recipe.description[:1].upper() + recipe.description[1:] + ".",
        table="text.txt" if recipe.data.stream else "pairs.tsv",
        test="test.txt" if recipe.data.stream else "test.tsv",
        use=_use(recipe),
        columns=" -> ".join(_columns(recipe)),
        metrics=", ".join(f"`{metric}`" for metric in metrics_of(recipe)),
        baseline=" and ".join(
            BASELINES[baseline].description for baseline in (baseline_of(recipe), *recipe.evaluation.further_baselines)
        ),
        attention=_attention(recipe),
        answers=answers_of(recipe).text(),
        recipe=(resources.files("seq2see") / "recipes" / f"{name}.yaml").read_text("utf-8"),
    )


def _columns(recipe: Recipe) -> list[str]:
    columns = [f"`{column}`" for _, column in wanted_columns(recipe)]
    inputs, output = columns[: len(recipe.inputs)], columns[len(recipe.inputs) :] or ["no output column"]
    return [", ".join(inputs), *output] if inputs else output


def _use(recipe: Recipe) -> str:
    if not recipe.inputs:
        return f"seq2see predict runs/{recipe.task} --temperature 0.8"
    if isinstance(recipe.output, ImageOutput):
        return f"seq2see predict runs/{recipe.task} picture.png --pictures made"
    words = [_example(name, field) for name, field in unbuilt_fields(recipe).items() if name in recipe.inputs]
    given = f'"{words[0]}"' if len(words) == 1 else "$'" + "\\t".join(words) + "'"
    look = f"seq2see look runs/{recipe.task} {given} --out look.html"
    predict = f"seq2see predict runs/{recipe.task} {given}"
    return predict if recipe.attention.score == "none" else f"{predict}\n{look}"


def _example(name: str, field: Field) -> str:
    numbers = field.elements is not None and float in field.elements.types
    return field.example or ("0.5 1.25 -3" if numbers else f"the {name}")


def _attention(recipe: Recipe) -> str:
    if not recipe.inputs:
        return " There is no input to look at, so a score is refused."
    if not recipe.with_places:
        return " A vector is a single place, so a score is refused."
    if recipe.attention.score == "none":
        return " Attention is off; `--set attention=additive` switches it on."
    return " `--set attention=none` switches attention off."


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in shipped():
        (FOLDER / f"{name}.md").write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
