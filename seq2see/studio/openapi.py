"""The OpenAPI document of a server, made for the models that it serves.

Bodies may be JSON or forms, so FastAPI neither reads nor describes them; the schemas here come from the same records
(`schemas.py`, `Limits`) and from the models' recipes. A body that breaks its schema is refused with 422; what no schema
can say (whether weights fit the places of an input, whether a file is an image) with 409.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from seq2see import __version__
from seq2see.errors import UserError
from seq2see.settings.base import first_line
from seq2see.settings.columns import ColumnSettings
from seq2see.studio import schemas
from seq2see.studio.http import EVENTS
from seq2see.studio.inputs import EXAMPLE
from seq2see.studio.limits import Limits
from seq2see.studio.middleware import COOKIE
from seq2see.studio.model_repository import ServedModel
from seq2see.studio.request_body import FORM, JSON
from seq2see.studio.service import SEARCH

Schema = dict[str, Any]

NULL: Schema = {"type": "null"}
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": ["number", "null"]}
"""A number of an answer; infinity is null."""
SYMBOLS = r'^\[("[^"\\\x00-\x1f]+"(, ?"[^"\\\x00-\x1f]+")*)?\]$'
"""A field of a form: a list of texts, none of them empty, as JSON."""
PREFIXES = SYMBOLS.replace(")*", f"){{0,{schemas.MAX_PREFIXES - 1}}}")
"""The same, not too many."""
LARGEST_NUMBER = 10**12 - 1
ERRORS = {
    400: "not HTTP, not JSON, or a form that cannot be read",
    401: "no token, or another one",
    403: "another host, or a page of another origin",
    404: "no such model, run, example or path",
    405: "method not allowed",
    408: "the header or the body did not come in time",
    409: "valid, but cannot be answered: options that contradict each other, weights that do not fit the places, more "
    "work than one request may cost, a file that cannot be read",
    413: "the body is too large",
    415: "neither JSON nor a form",
    422: "does not match the schema",
    429: "too many requests of this client",
    431: "the header is too large",
    500: "an error of the server",
    503: "too many connections, too many inputs in the queue, or the server is closing",
    504: "no answer in time",
}
FIRST_KEYS = ("model", "input", "inputs", "output", "rows")
"""Listed before all others."""
COMMON_ERRORS = (400, 403, 405, 408, 429, 431, 500, 503)


def models_document(models: Sequence[ServedModel], limits: Limits, *, token: bool, reload: bool = False) -> Schema:
    """The document of a server of models; token: requests need one; reload: models can be loaded again."""
    paths = _inference_paths(models, limits) | _get_paths(models)
    if reload:
        paths["/api/models/{name}/reload"] = {"post": _reload([served.name for served in models])}
    return _document(paths, _response_schemas(), token=token)


def run_document(name: str) -> Schema:
    """The document of a server of one training run."""
    responses = _response_schemas()
    return _document(_run_paths([name]), {key: responses[key] for key in ("Error", "Run")}, token=False)


def _document(paths: Schema, responses: Schema, *, token: bool) -> Schema:
    for path in paths.values():
        for method, operation in path.items():
            _add_common_responses(operation, token=token, get=method == "get")
    components: Schema = {"schemas": responses}
    document: Schema = {
        "openapi": "3.1.0",
        "info": {"title": "seq2see", "version": __version__},
        "paths": paths,
        "components": components,
    }
    if token:
        components["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE},
        }
        document["security"] = [{"token": []}, {"cookie": []}]
    return document


def _add_common_responses(operation: Schema, *, token: bool, get: bool) -> None:
    """The errors that every route has; token: and the redirect that turns a token into a cookie."""
    responses = operation["responses"]
    for status in (*COMMON_ERRORS, *((401,) if token else ())):
        responses.setdefault(str(status), _error(status))
    if token and get:
        header = {"Location": {"schema": TEXT, "required": True}}
        responses["303"] = {"description": "the token was in the address, and is now a cookie", "headers": header}
    operation["responses"] = dict(sorted(responses.items()))


def _error(status: int) -> Schema:
    response: Schema = {"description": ERRORS[status], "content": {JSON: {"schema": _reference("Error")}}}
    headers = {405: "Allow", 401: "WWW-Authenticate"}
    if status in headers:
        response["headers"] = {headers[status]: {"schema": TEXT, "required": True}}
    if status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS):
        response["headers"] = {"Retry-After": {"schema": {"type": "integer", "minimum": 0}, "description": "seconds"}}
    return response


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Schema, required: Iterable[str] | None = None, *, closed: bool = False, **more: Any) -> Schema:
    """required: by default all properties; closed: no others are allowed."""
    names = list(properties if required is None else required)
    schema: Schema = {"type": "object", "properties": properties} | ({"required": names} if names else {}) | more
    return schema | ({"additionalProperties": False} if closed else {})


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items} | more


def _any(*schemas: Schema) -> Schema:
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}


# ---------------------------------------------------------------- requests

REQUESTS: dict[str, tuple[type[schemas.ModelRequest], str]] = {
    "predict": (schemas.PredictRequest, "Predictions"),
    "stream": (schemas.StreamRequest, "Event"),
    "oracle": (schemas.OracleRequest, "Comparison"),
    "explain": (schemas.ExplainRequest, "Explanation"),
    "nearest": (schemas.NearestRequest, "NearestRows"),
    "score": (schemas.ScoreRequest, "Scores"),
}
"""Each is a route /api/NAME and a method of InferenceService: its body, and the schema of its response."""


def client_document(document: Schema) -> Schema:
    """The same for generators of clients, whatever models are served: every body is one plain JSON object."""
    plain = copy.deepcopy(document)
    for name, (schema, _) in REQUESTS.items():
        if f"/api/{name}" not in plain["paths"]:
            continue  # the server of a run asks for nothing
        body = schema.model_json_schema(ref_template="#/components/schemas/{model}")
        plain["components"]["schemas"] |= body.pop("$defs", {}) | {schema.__name__: body}
        request = plain["paths"][f"/api/{name}"]["post"]["requestBody"]
        request["content"] = {JSON: {"schema": _reference(schema.__name__)}}
    return plain


def _inference_paths(models: Sequence[ServedModel], limits: Limits) -> Schema:
    paths = {}
    for name, (schema, response) in REQUESTS.items():
        able = [served for served in models if _is_able(schema, served)]
        bodies = [_BodySchema(schema, served, limits, alone=len(models) == 1) for served in able or models]
        content = {
            JSON: {
                "schema": _any(*(variant for body in bodies for variant in body.json())),
                "examples": {body.name: body.example() for body in bodies},
            },
            FORM: {
                "schema": _forms([body.form() for body in bodies]),
                "encoding": {"oracle": {"contentType": JSON}},
            },
        }
        operation: Schema = {
            "tags": ["ask"],
            "summary": first_line(schema),
            "operationId": name,
            "requestBody": {"required": True, "content": content},
            "responses": {"200": _events() if schema is schemas.StreamRequest else _ok(response)}
            | _errors(404, 409, 413, 415, 422, 504),
        }
        paths[f"/api/{name}"] = {"post": operation}
    return paths


def _is_able(schema: type[schemas.ModelRequest], served: ServedModel) -> bool:
    """Whether a model can answer such requests at all."""
    recipe = served.model.recipe
    if schema is schemas.OracleRequest:
        return bool(recipe.looked_at)
    return schema is not schemas.StreamRequest or not recipe.output.one_step


def _events() -> Schema:
    """A stream: `token` for each symbol, then `done` with the whole prediction, or `error`."""
    token = {"step": 0, "text": "E", "probability": 0.93}
    example = f"event: token\ndata: {json.dumps(token)}\n\nevent: done\ndata: {{...}}\n\n"
    about = "server-sent events: `token` {step, text, probability}, then `done` (as the answer of predict) or `error`"
    return {"description": about, "content": {EVENTS: {"example": example}}}


def _forms(forms: list[Schema]) -> Schema:
    """Forms of several models; fields that are files are listed at the top too, where parsers look for them."""
    if len(forms) == 1:
        return forms[0]
    fields = [(name, field) for form in forms for name, field in form["properties"].items()]
    files = {name: field for name, field in fields if field.get("format") == "binary"}
    return {"type": "object", "properties": files, "anyOf": forms} if files else {"type": "object", "anyOf": forms}


class _BodySchema:
    """The schema of one route's body for one model; alone: it is the only model of the server."""

    def __init__(self, schema: type[schemas.ModelRequest], served: ServedModel, limits: Limits, *, alone: bool):
        self._schema, self._served, self._limits, self._alone = schema, served, limits, alone
        self._recipe = served.model.recipe
        self._characters = {"type": "string", "maxLength": limits.text_characters}
        self._symbol = self._characters | {"minLength": 1}
        self._form_text = self._characters | {"type": ["string", "number", "boolean"]}  # in a form 0 is the text "0"

    @property
    def name(self) -> str:
        return self._served.name

    def example(self) -> Schema:
        """A body that the model answers, with the first of its examples."""
        inputs, output = self._recipe.inputs, self._recipe.output
        body: Schema = {} if self._alone else {"model": self.name}
        if inputs:
            described = self._served.details["examples"] if self._served.examples else []
            values = described[0]["inputs"] if described else dict.fromkeys(inputs, "...")
            body["input"] = {EXAMPLE: 0} if any(settings.file for settings in inputs.values()) else values
        if self._schema is schemas.OracleRequest:
            body["oracle"] = {"0": self._looking_first(body.get("input"))}
        if self._schema is schemas.ScoreRequest:
            body["output"] = described[0].get("output", "...") if inputs and described else "..."
        if self._schema is schemas.PredictRequest and not output.one_step:
            body["beam"] = 5
        return {"summary": self.name, "value": body}

    def _looking_first(self, value: Any) -> list[float]:
        """Weights for the places of an input, all on the first; of an image or a sound they are not known here."""
        if value is None or EXAMPLE in value:
            return [1.0]
        try:
            return [1.0] + [0.0] * (len(self._served.model.places(value)) - 1)
        except UserError:  # "..." is no vector
            return [1.0]

    def json(self) -> list[Schema]:
        """One schema for each way of giving inputs."""
        options, value = self._options(), self._input()
        required = ["input"] if self._recipe.inputs else []
        single = self._object(options | {"input": value | self._description("input")}, required)
        most = self._limits.request_inputs
        if self._schema is schemas.PredictRequest:
            several = _list(value, minItems=1, maxItems=most) | self._description("inputs")
            pages = _list(value, minItems=1, maxItems=self._limits.list_inputs) | self._description("inputs")
            after = {"type": "integer", "minimum": 0, "maximum": schemas.LARGEST} | self._description("after")
            single["properties"] |= {"inputs": NULL, "after": NULL}
            return [
                single,
                self._object(options | {"inputs": several, "input": NULL, "after": NULL}, ["inputs"]),
                self._object(options | {"inputs": pages, "input": NULL, "after": after}, ["inputs", "after"]),
            ]
        if self._schema is schemas.ScoreRequest:
            output = self._characters | self._description("output")
            row = _object({"input": value, "output": output}, [*required, "output"], closed=True)
            rows = _list(row, minItems=1, maxItems=most) | self._description("rows")
            single["properties"] |= {"output": output, "rows": NULL}
            single["required"] = [*single.get("required", []), "output"]
            return [single, self._object(options | {"rows": rows, "input": NULL, "output": NULL}, ["rows"])]
        return [single]

    def form(self) -> Schema:
        """Inputs are fields or files under their own names; other keys are as in JSON, but never null."""
        options = {name: _without_null(schema) for name, schema in self._options().items()}
        options = {name: schema for name, schema in options.items() if schema is not None and name != "after"}
        lists = {"said": TEXT | {"pattern": SYMBOLS}, "avoid_prefixes": self._characters | {"pattern": PREFIXES}}
        for name in ("prefix", "target", *lists):
            if name in options:  # a list of symbols is a text that holds JSON
                options[name] = lists.get(name, self._form_text) | self._description(name)
        inputs = {name: self._form_field(settings) for name, settings in self._recipe.inputs.items()}
        outputs = {"output": self._form_text | {"minLength": 1}} if self._schema is schemas.ScoreRequest else {}
        form = self._object(options | outputs | inputs, [*inputs, *outputs])
        return form | {"description": "the same keys as fields; inputs by their names, as files or texts"}

    def _form_field(self, settings: ColumnSettings) -> Schema:
        return {"type": "string", "format": "binary"} if settings.file else self._form_text

    def _object(self, properties: Schema, required: Sequence[str]) -> Schema:
        ordered = {name: properties[name] for name in FIRST_KEYS if name in properties} | properties
        always = [] if self._alone else ["model"]
        always += ["oracle"] if self._schema is schemas.OracleRequest else []
        return _object(ordered, [*always, *required], closed=True, title=self._served.name)

    def _description(self, name: str) -> Schema:
        return {"description": self._schema.model_fields[name].description}

    def _options(self) -> Schema:
        """All keys but inputs and outputs; null where the model has no use for them."""
        name: Schema = {"type": "string", "enum": [self._served.name]}
        options: Schema = {"model": (_any(name, NULL) if self._alone else name) | self._description("model")}
        for key, schema in self._schema.model_json_schema()["properties"].items():
            if key not in FIRST_KEYS:
                untitled = {part: value for part, value in schema.items() if part != "title"}
                options[key] = self._option(key, untitled) | self._description(key)
        return options

    def _option(self, key: str, schema: Schema) -> Schema:
        """The schema of an option, narrowed to what this model allows."""
        output = self._recipe.output
        if key == "oracle":
            return self._oracle()
        if (key in ("prefix", "avoid_prefixes", "said") and output.one_step) or (key == "target" and output.numeric):
            return NULL
        if key == "avoid_prefixes":
            prefix = _any(self._symbol, _list(self._symbol, minItems=1))
            return _any(_list(prefix, maxItems=schemas.MAX_PREFIXES), NULL)
        if key in ("beam", "n_best") and self._schema is schemas.StreamRequest:
            return _any({"type": "integer", "enum": [1]}, NULL)
        if key == "target" and output.one_step and self._schema is schemas.NearestRequest:
            return NULL
        if key in ("prefix", "target", "said"):
            symbols = _list(self._symbol)
            return _any(*(() if key == "said" else (self._characters,)), symbols, NULL)
        if key in SEARCH and output.one_step:
            if key != "n_best":
                return NULL
            return _any({"type": "integer", "enum": [1]}, NULL) if output.numeric else schema
        return schema

    def _oracle(self) -> Schema:
        names = list(self._recipe.looked_at)
        required = self._schema is schemas.OracleRequest
        if not names and not required:
            return NULL
        by_name = _object(dict.fromkeys(names, schemas.WEIGHTS), [], closed=True, minProperties=1)
        oracle: Schema = {
            "type": "object",
            "patternProperties": {f"^({schemas.STEP.pattern})$": _any(schemas.WEIGHTS, by_name)},
            "additionalProperties": False,
            "maxProperties": schemas.MAX_STEPS,
        }
        return oracle | {"minProperties": 1} if required else _any(oracle, NULL)

    def _input(self) -> Schema:
        """One input: a value, {name: value}, or an example."""
        inputs = self._recipe.inputs
        if not inputs:
            return _any(NULL, {"type": "string", "maxLength": 0}, {"type": "object", "maxProperties": 0})
        count = len(self._served.examples)
        number: Schema = {"type": "integer", "minimum": 0, "maximum": count - 1}
        example = [_object({EXAMPLE: number}, closed=True)] if count else []
        fields = self._served.model.bundle.fields.inputs
        schemas = {name: field.json_schemas(self._characters) for name, field in fields.items()}
        by_name = _object({name: _any(*parts, *example) for name, parts in schemas.items()}, closed=True)
        whole = example if EXAMPLE not in inputs else []
        if len(inputs) > 1:
            return _any(by_name, *whole)
        (parts,) = schemas.values()
        return _any(*parts, by_name, *whole)


def _without_null(schema: Schema) -> Schema | None:
    """The schema without null, which a form cannot hold; None where nothing is left."""
    if schema.get("type") == "null":
        return None
    parts = [part for part in schema.get("anyOf", []) if part != NULL]
    if not parts:
        return schema
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return (parts[0] if len(parts) == 1 else {"anyOf": parts}) | rest


# ---------------------------------------------------------------- GET routes


def _get_paths(models: Sequence[ServedModel]) -> Schema:
    names = [served.name for served in models]
    name = _in_path("name", {"type": "string", "enum": names})
    listed = _get("models", "models", "The models that are served.", _ok("Models"))
    about = "One model: its inputs, the five answers, examples."
    details = _get("models", "model", about, _ok("ModelDetails"), [name], errors=[404])
    text = {"description": "the metrics", "content": {"text/plain": {"schema": TEXT}}}
    return {
        "/api/models": {"get": listed},
        "/api/models/{name}": {"get": details},
        **_example_path(models, name),
        **_run_paths(names),
        "/health": {"get": _health()},
        "/metrics": {"get": _get("watch", "metrics", "Metrics in Prometheus' text format.", text)},
    }


def _reload(names: list[str]) -> Schema:
    workers: Schema = {"type": "integer", "minimum": 1}
    answer = _object({"model": TEXT, "reloaded": {"const": True}, "workers": workers, "ready": workers})
    about = "Load a model's folder again, and serve it in place of the old one once it is whole."
    parameters = [_in_path("name", {"type": "string", "enum": names})]
    return _get("models", "reload", about, _ok("", answer), parameters, errors=[404, 409])


def _example_path(models: Sequence[ServedModel], name: Schema) -> Schema:
    """Empty where no model has examples with files."""
    files = sorted({key for served in models for key, settings in served.model.recipe.inputs.items() if settings.file})
    most = max((len(served.examples) for served in models), default=0)
    if not files or not most:
        return {}
    number = _in_path("number", {"type": "integer", "minimum": 0, "maximum": most - 1})
    file = {"schema": {"type": "string", "format": "binary"}}
    kinds = dict.fromkeys(("image/*", "audio/*", "video/*", "application/octet-stream"), file)
    ok = {"description": "the file", "content": kinds}
    parameters = [name, number, _in_path("input", TEXT | {"enum": files})]
    operation = _get("models", "example", "The file of an example.", ok, parameters, errors=[404])
    return {"/api/models/{name}/examples/{number}/{input}": {"get": operation}}


def _health() -> Schema:
    """A server that is not healthy answers 503 with the same record."""
    operation = _get("watch", "health", "Whether the server answers, and which models it has.", _ok("Health"))
    unhealthy = {"schema": _any(_reference("Health"), _reference("Error"))}
    operation["responses"]["503"] = _error(503) | {"content": {JSON: unhealthy}}
    return operation


def _run_paths(names: list[str]) -> Schema:
    model = _in_query("model", {"type": "string", "enum": names}, "name of the model (default: the first with a run)")
    after = _in_query(
        "after",
        {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER, "default": 0},
        "`next` of the answer before",
    )
    file = _in_query("file", TEXT, "`file` of the answer before")
    return {
        "/api/run": {
            "get": _get(
                "run",
                "run",
                "A training run: recipe, five answers, state.",
                _ok("Run"),
                [model],
                errors=[404, 422],
            )
        },
        "/api/run/metrics": {
            "get": _get(
                "run",
                "run_metrics",
                "Reports from number `after` on, and the progress of the run.",
                _ok("", _object({**_part(), "state": TEXT, "reports": _list({"type": "object"})})),
                [model, after, file],
                errors=[404, 422],
            )
        },
        "/api/run/film": {
            "get": _get(
                "run",
                "run_film",
                "Frames of attention from number `after` on.",
                _ok(
                    "",
                    _object(
                        {
                            **_part(),
                            "whole": {"type": "boolean"},
                            "film": {"type": ["object", "null"]},
                            "frames": _list({"type": "object"}),
                        }
                    ),
                ),
                [model, after, file],
                errors=[404, 422],
            )
        },
    }


def _part() -> Schema:
    whole: Schema = {"type": "integer", "minimum": 0}
    return {"file": TEXT, "first": whole, "next": whole}


def _run() -> Schema:
    return _object({"name": TEXT, "state": TEXT, "ready": {"type": "boolean"}})


def _get(
    tag: str,
    name: str,
    summary: str,
    ok: Schema,
    parameters: Sequence[Schema] = (),
    *,
    errors: Sequence[int] = (),
) -> Schema:
    operation: Schema = {"tags": [tag], "summary": summary, "operationId": name}
    operation |= {"parameters": list(parameters)} if parameters else {}
    return operation | {"responses": {"200": ok} | _errors(*errors)}


def _errors(*statuses: int) -> Schema:
    return {str(status): _error(status) for status in statuses}


def _ok(name: str, schema: Schema | None = None) -> Schema:
    example = {"example": EXAMPLES[name]} if name in EXAMPLES else {}
    return {"description": "the answer", "content": {JSON: {"schema": schema or _reference(name)} | example}}


def _in_path(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


# ---------------------------------------------------------------- responses


_PREDICTED: Schema = {
    "input": "a dog",
    "text": "ein Hund",
    "log_probability": -0.31,
    "score": -0.103,
    "tokens": [
        {"text": "ein", "probability": 0.93, "runners_up": [{"text": "ein", "probability": 0.93}]},
        {"text": "Hund", "probability": 0.85, "runners_up": [{"text": "Hund", "probability": 0.85}]},
        {"text": "<eos>", "probability": 0.93, "runners_up": [{"text": "<eos>", "probability": 0.93}]},
    ],
    "alternatives": [{"text": "der Hund", "score": -0.93, "log_probability": -2.8}],
    "looks": {
        "inputs": ["a", "dog"],
        "outputs": ["ein", "Hund", "<eos>"],
        "weights": [[0.9, 0.1], [0.05, 0.95], [0.4, 0.6]],
        "layout": {"kind": "tokens", "shape": [2]},
    },
}
_MODEL: Schema = {
    "name": "translation",
    "task": "translation",
    "description": "a sentence in one language -> the same in another",
    "inputs": [{"name": "source", "kind": "text", "file": False}],
    "output": {"kind": "text", "tokens": "word"},
    "attention": {"score": "additive", "over": ["source"], "scope": "global", "choice": "soft", "heads": 1},
    "search": {"beam": 5, "length_penalty": 1.0},
    "ensemble": 1,
    "run": True,
    "index": False,
}
EXAMPLES: dict[str, Schema] = {
    "Predictions": {"model": "translation", "predictions": [_PREDICTED], "notices": []},
    "Comparison": {
        "model": "translation",
        "before": _PREDICTED,
        "after": _PREDICTED | {"text": "ein Haus"},
        "notices": [],
    },
    "Explanation": {
        "model": "translation",
        "explanation": {
            "step": 0,
            "steps": 3,
            "outputs": ["ein", "Hund", "<eos>"],
            "looks": [
                {
                    "input": "source",
                    "places": ["a", "dog"],
                    "energies": [1.7, -0.5],
                    "weights": [0.9, 0.1],
                    "context": [0.2, -0.1],
                }
            ],
            "probability": 0.93,
            "likeliest": [{"text": "ein", "probability": 0.93}, {"text": "der", "probability": 0.04}],
            "equations": {"weights": "a_tj = exp(e_tj) / sum_k exp(e_tk)"},
        },
        "notices": [],
    },
    "NearestRows": {
        "model": "translation",
        "rows": [{"input": "a dog runs", "output": "ein Hund rennt", "cosine": 0.97}],
        "notices": [],
    },
    "Scores": {
        "model": "translation",
        "score": {"rows": 1, "tokens": 3, "log_probability": -0.31, "perplexity": 1.11},
        "each": [
            {
                "input": "a dog",
                "output": "ein Hund",
                "log_probability": -0.31,
                "tokens": [{"text": "ein", "log_probability": -0.07}],
            }
        ],
        "notices": [],
    },
    "Models": {"models": [_MODEL]},
    "ModelDetails": _MODEL
    | {"answers": [], "examples": [{"example": 0, "inputs": {"source": "a dog"}, "output": "ein Hund"}]},
    "Health": {
        "status": "ok",
        "version": __version__,
        "models": ["translation"],
        "queues": {"translation": {"waiting": 0, "running": 1}},
    },
    "Run": {"name": "translation", "state": "recorded", "ready": True},
}
"""Answers of a server with one model, by the names of their schemas."""


def _response_schemas() -> Schema:
    """Components. Keys that depend on the model are not required; later versions may add keys."""
    notices = _list(TEXT)
    count: Schema = {"type": "integer", "minimum": 0}
    likely = _list(_reference("Likely"))
    weights = _list(_list(NUMBER))
    one_map: Schema = {
        "inputs": _list({}),
        "weights": weights,
        "layout": _reference("Layout"),
        "heads": _list(weights),
        "chosen": _list({}),
        "rows": _list(TEXT),
    }
    looks = _object(
        {
            **one_map,
            "outputs": _list(TEXT),
            "maps": {"type": "object", "additionalProperties": _reference("Map")},
            "beside": {"type": "object", "additionalProperties": TEXT},
            "reason": TEXT,
        },
        ["inputs", "outputs", "weights", "layout"],
    )
    prediction = _object(
        {
            "input": {"type": ["string", "object", "null"]},
            "text": TEXT,
            "label": TEXT,
            "vector": _list(NUMBER),
            "image": TEXT,
            "log_probability": NUMBER,
            "score": NUMBER,
            "given": TEXT,
            "tokens": _list(_reference("Token")),
            "alternatives": _list(_reference("Alternative")),
            "looks": _reference("Looks"),
            "tree": _reference("BeamTree"),
            "shown": {"type": "object"},
        },
        ["input"],
    )
    look = _object(
        {
            "input": TEXT,
            "places": _list({}),
            "energies": _list(NUMBER),
            "weights": _list(NUMBER),
            "context": _list(NUMBER),
        }
    )
    explanation = _object(
        {
            "step": count,
            "steps": count,
            "outputs": _list(TEXT),
            "looks": _list(_reference("ExplainedLook")),
            "probability": NUMBER,
            "likeliest": likely,
            "equations": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        }
    )
    model = _object(
        {
            "name": TEXT,
            "task": TEXT,
            "description": TEXT,
            "inputs": _list(_reference("ModelInput")),
            "output": _reference("ModelOutput"),
            "attention": _reference("ModelAttention"),
            "search": {"type": "object"},
            "ensemble": {"type": "integer", "minimum": 1},
            "run": {"type": "boolean"},
            "index": {"type": "boolean"},
        }
    )
    details = {**model["properties"], "answers": _list({"type": "object"}), "examples": _list(_reference("Example"))}
    score = _object({"rows": count, "tokens": count, "log_probability": NUMBER, "perplexity": NUMBER})
    each = _object(
        {
            "input": {"type": ["string", "object", "null"]},
            "output": TEXT,
            "log_probability": NUMBER,
            "tokens": _list(_reference("ScoredToken")),
        }
    )
    predicted = _reference("Prediction")
    return {
        "Error": _object({"error": TEXT}, closed=True),
        "Likely": _object({"text": TEXT, "probability": NUMBER}),
        "Token": _object({"text": TEXT, "probability": NUMBER, "runners_up": likely}),
        "BeamTree": _object({"nodes": _list(_reference("TreeNode")), "left_out": count}),
        "TreeNode": _object(
            {
                "text": TEXT,
                "parent": {"type": "integer", "minimum": -1},
                "probability": NUMBER,
                "log_probability": NUMBER,
                "state": {"type": "string", "enum": ["kept", "pruned", "finished", "stopped"]},
                "output": count,
            },
            ["text", "parent", "probability", "log_probability", "state"],
        ),
        "Alternative": _object({"text": TEXT, "score": NUMBER, "log_probability": NUMBER}),
        "Layout": _object({"kind": TEXT, "shape": _list(count), "direction": TEXT}, []),
        "Map": _object(one_map, ["inputs", "weights", "layout"]),
        "Looks": looks,
        "Prediction": prediction,
        "Predictions": _object(
            {"model": TEXT, "predictions": _list(predicted), "notices": notices, "next": {"type": ["integer", "null"]}},
            ["model", "predictions", "notices"],
        ),
        "Comparison": _object({"model": TEXT, "before": predicted, "after": predicted, "notices": notices}),
        "ExplainedLook": look,
        "ExplainedStep": explanation,
        "Explanation": _object({"model": TEXT, "explanation": _reference("ExplainedStep"), "notices": notices}),
        "NearestRow": _object(
            {"input": {}, "output": TEXT, "cosine": NUMBER, "step": count, "symbol": TEXT, "symbols": _list(TEXT)},
            ["output", "cosine"],
        ),
        "NearestRows": _object({"model": TEXT, "rows": _list(_reference("NearestRow")), "notices": notices}),
        "ScoredToken": _object({"text": TEXT, "log_probability": NUMBER}),
        "Score": score,
        "ScoredRow": each,
        "Scores": _object(
            {"model": TEXT, "score": _reference("Score"), "each": _list(_reference("ScoredRow")), "notices": notices}
        ),
        "ModelInput": _object({"name": TEXT, "column": TEXT, "kind": TEXT, "file": {"type": "boolean"}}),
        "ModelOutput": _object({"kind": TEXT, "column": TEXT, "labels": _list(TEXT), "tokens": TEXT}, ["kind"]),
        "ModelAttention": _object(
            {"score": TEXT, "over": _list(TEXT), "scope": TEXT, "choice": TEXT, "heads": count, "reason": TEXT},
            ["score", "over"],
        ),
        "Example": _object({"example": count, "inputs": {"type": "object"}, "output": {}}, ["example", "inputs"]),
        "Model": model,
        "Models": _object({"models": _list(_reference("Model"))}),
        "ModelDetails": _object(details),
        "Load": _object({"waiting": count, "running": count, "processes": count}, ["waiting", "running"]),
        "Health": _object(
            {
                "status": TEXT,
                "version": TEXT,
                "models": _list(TEXT),
                "queues": {"type": "object", "additionalProperties": _reference("Load")},
                "decoding": _reference("Load"),
                "problems": _list(TEXT),
            },
            ["status", "version", "models"],
        ),
        "Run": _run(),
    }
