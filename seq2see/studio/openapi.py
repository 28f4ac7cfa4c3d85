"""The OpenAPI document of a server, made for the models that it serves: what each of them takes, what comes back.

Bodies are read by hand, since they may come as JSON or as a form; so they are described by hand too, from the same
records (`schemas.py`, `Limits`) and from the models' recipes. A body that is not as its schema says is refused with
422; what no schema can say (whether weights fit the places of an input, whether a file is a picture) with 409.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from seq2see import __version__
from seq2see.settings.base import first_line
from seq2see.studio import schemas
from seq2see.studio.bodies import FORM, JSON
from seq2see.studio.guard import COOKIE
from seq2see.studio.inputs import EXAMPLE
from seq2see.studio.served import FILES, Served
from seq2see.studio.service import SEARCH
from seq2see.studio.settings import Limits

Schema = dict[str, Any]

NULL: Schema = {"type": "null"}
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": ["number", "null"]}
"""Of an answer: infinity is told as null."""
DATA_URL = (
    r"^data:[A-Za-z0-9_.+-]+/[A-Za-z0-9_.+-]+(;[A-Za-z0-9_=.+-]+)*;base64,"
    r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
)
SYMBOLS = r'^\[("[^"\\\x00-\x1f]*"(, ?"[^"\\\x00-\x1f]*")*)?\]$'
"""A list of texts, written as JSON, in a form."""
LARGEST_NUMBER = 10**12 - 1
REFUSALS = {
    400: "no HTTP, no JSON, or no form that can be read",
    401: "no token, or another one",
    403: "another host, or a page of another origin",
    404: "no such model, run, example or path",
    405: "another method",
    408: "the header or the body did not come in time",
    409: "as the schema says, and yet it cannot be answered: options that contradict each other, weights that do not "
    "fit the places, more work than one request may cost, a file that cannot be read",
    413: "the body is too large",
    415: "neither JSON nor a form",
    422: "not as the schema says",
    431: "the header is too large",
    500: "a fault of the server's",
    503: "too many connections, too many inputs wait for the model, or the server is closing",
    504: "no answer in time",
}
FIRST = ("model", "input", "inputs", "output", "rows")
"""Keys that a reader looks for before all others."""
ALWAYS = (400, 403, 405, 408, 431, 500, 503)


def document(models: Sequence[Served], limits: Limits, *, token: bool) -> Schema:
    """The whole document; token: requests need one."""
    paths = _asking(models, limits) | _looking(models)
    for path in paths.values():
        for operation in path.values():
            _complete(operation, token=token, get="requestBody" not in operation)
    return _whole(paths, _answers(), token=token)


def run_document(name: str) -> Schema:
    """The same of a server that shows one training."""
    paths = _run_paths([name])
    for path in paths.values():
        for operation in path.values():
            _complete(operation, token=False, get=True)
    return _whole(paths, {name: one for name, one in _answers().items() if name in ("Error", "Run")}, token=False)


def _whole(paths: Schema, schemas: Schema, *, token: bool) -> Schema:
    components: Schema = {"schemas": schemas}
    made: Schema = {
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
        made["security"] = [{"token": []}, {"cookie": []}]
    return made


def _complete(operation: Schema, *, token: bool, get: bool) -> None:
    """The refusals that every route has."""
    responses = operation["responses"]
    for status in (*ALWAYS, *((401,) if token else ())):
        responses.setdefault(str(status), _refusal(status))
    if token and get:
        header = {"Location": {"schema": TEXT, "required": True}}
        responses["303"] = {"description": "the token was in the address, and is now a cookie", "headers": header}
    operation["responses"] = dict(sorted(responses.items()))


def _refusal(status: int) -> Schema:
    made: Schema = {"description": REFUSALS[status], "content": {JSON: {"schema": _reference("Error")}}}
    headers = {405: "Allow", 401: "WWW-Authenticate"}
    if status in headers:
        made["headers"] = {headers[status]: {"schema": TEXT, "required": True}}
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        made["headers"] = {"Retry-After": {"schema": {"type": "integer", "minimum": 0}, "description": "seconds"}}
    return made


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Schema, required: Iterable[str] | None = None, *, closed: bool = False, **more: Any) -> Schema:
    """required: not given, all of them."""
    needed = list(properties if required is None else required)
    made: Schema = {"type": "object", "properties": properties} | ({"required": needed} if needed else {}) | more
    return made | ({"additionalProperties": False} if closed else {})


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items} | more


def _any(*schemas: Schema) -> Schema:
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}


# ---------------------------------------------------------------- what is asked

ASKED: dict[str, tuple[type[schemas.Asked], str]] = {
    "predict": (schemas.Predict, "Predictions"),
    "oracle": (schemas.Oracle, "Comparison"),
    "explain": (schemas.Explain, "Explanation"),
    "score": (schemas.Score, "Scores"),
}
"""Each is a route /api/NAME and a method of Service; its body, and the schema of its answer."""


def _asking(models: Sequence[Served], limits: Limits) -> Schema:
    paths = {}
    for name, (kind, answer) in ASKED.items():
        able = [one for one in models if one.model.recipe.looked_at] if kind is schemas.Oracle else []
        bodies = [_Body(kind, served, limits, alone=len(models) == 1) for served in able or models]
        content = {
            JSON: {"schema": _any(*(variant for body in bodies for variant in body.json()))},
            FORM: {
                "schema": _forms([body.form() for body in bodies]),
                "encoding": {"oracle": {"contentType": JSON}},
            },
        }
        operation: Schema = {
            "tags": ["ask"],
            "summary": first_line(kind),
            "operationId": name,
            "requestBody": {"required": True, "content": content},
            "responses": {"200": _ok(answer)} | {str(one): _refusal(one) for one in (404, 409, 413, 415, 422, 504)},
        }
        paths[f"/api/{name}"] = {"post": operation}
    return paths


def _forms(forms: list[Schema]) -> Schema:
    """Forms of several models; which fields are files is said for all of them, since parsers look for it there."""
    if len(forms) == 1:
        return forms[0]
    fields = [(name, field) for form in forms for name, field in form["properties"].items()]
    files = {name: field for name, field in fields if field.get("format") == "binary"}
    return {"type": "object", "properties": files, "anyOf": forms} if files else {"type": "object", "anyOf": forms}


class _Body:
    """The body of one route for one model."""

    def __init__(self, kind: type[schemas.Asked], served: Served, limits: Limits, *, alone: bool):
        self._kind, self._served, self._limits, self._alone = kind, served, limits, alone
        self._recipe = served.model.recipe
        self._characters = {"type": "string", "maxLength": limits.characters}
        self._form_text = self._characters | {
            "type": ["string", "number", "boolean"]
        }  # a form has only texts: 0 is "0"

    def json(self) -> list[Schema]:
        """One schema for each way of giving inputs."""
        options, given = self._options(), self._input()
        own = self._object(options | {"input": given | self._described("input")}, ["input"] if self._needed else [])
        if self._kind is schemas.Predict:
            several = _list(given, minItems=1, maxItems=self._limits.inputs) | self._described("inputs")
            own["properties"]["inputs"] = NULL
            return [own, self._object(options | {"inputs": several, "input": NULL}, ["inputs"])]
        if self._kind is schemas.Score:
            output = self._characters | self._described("output")
            pair = _object(
                {"input": given, "output": output}, ["input", "output"] if self._needed else ["output"], closed=True
            )
            rows = _list(pair, minItems=1, maxItems=self._limits.inputs) | self._described("rows")
            own["properties"] |= {"output": output, "rows": NULL}
            own["required"] = [*own.get("required", []), "output"]
            return [own, self._object(options | {"rows": rows, "input": NULL, "output": NULL}, ["rows"])]
        return [own]

    def form(self) -> Schema:
        """Inputs are fields or files under their own names; other keys as in JSON, and never null."""
        options = {name: _without_null(schema) for name, schema in self._options().items()}
        options = {name: schema for name, schema in options.items() if schema is not None}
        for name in ("prefix", "target", "said"):
            if name in options:  # symbols one by one are written as JSON, in a text like any other
                options[name] = (TEXT | {"pattern": SYMBOLS} if name == "said" else self._form_text) | self._described(
                    name
                )
        inputs = {name: self._field(settings.kind) for name, settings in self._recipe.inputs.items()}
        outputs = {"output": self._form_text | {"minLength": 1}} if self._kind is schemas.Score else {}
        made = self._object(options | outputs | inputs, [*inputs, *outputs])
        return made | {"description": "the same keys as fields; inputs by their names, as files or texts"}

    @property
    def _needed(self) -> bool:
        return bool(self._recipe.inputs)

    def _field(self, kind: str) -> Schema:
        return {"type": "string", "format": "binary"} if kind in FILES else self._form_text

    def _object(self, properties: Schema, required: Sequence[str]) -> Schema:
        ordered = {name: properties[name] for name in FIRST if name in properties} | properties
        more = [] if self._alone else ["model"]
        more += ["oracle"] if self._kind is schemas.Oracle else []
        return _object(ordered, [*more, *required], closed=True, title=self._served.name)

    def _described(self, name: str) -> Schema:
        return {"description": self._kind.model_fields[name].description}

    def _options(self) -> Schema:
        """All keys but those of inputs, as far as the model has a use for them."""
        made = self._kind.model_json_schema()["properties"]
        name: Schema = {"type": "string", "enum": [self._served.name]}
        found: Schema = {"model": (name if self._alone is False else _any(name, NULL)) | self._described("model")}
        for key, schema in made.items():
            if key not in ("model", "input", "inputs", "output", "rows"):
                meant = self._meant(key, {part: value for part, value in schema.items() if part != "title"})
                found[key] = meant | self._described(key)
        return found

    def _meant(self, key: str, schema: Schema) -> Schema:
        output = self._recipe.output
        if key == "oracle":
            return self._oracle()
        if (key in ("prefix", "said") and output.kind != "text") or (key == "target" and output.numeric):
            return NULL
        if key in ("prefix", "target", "said"):
            symbols = _list(self._characters)
            return _any(*(() if key == "said" else (self._characters,)), symbols, NULL)
        if key in SEARCH and output.one_step:
            if key != "n_best":
                return NULL
            return _any({"type": "integer", "enum": [1]}, NULL) if output.numeric else schema
        return schema

    def _oracle(self) -> Schema:
        names = list(self._recipe.looked_at)
        if not names and self._kind is not schemas.Oracle:
            return NULL
        by_name = _object(dict.fromkeys(names, schemas.WEIGHTS), [], closed=True, minProperties=1)
        made: Schema = {
            "type": "object",
            "patternProperties": {f"^({schemas.STEP.pattern})$": _any(schemas.WEIGHTS, by_name)},
            "additionalProperties": False,
            "maxProperties": schemas.LENGTH,
        }
        if self._kind is schemas.Oracle:
            return made | {"minProperties": 1}
        return _any(made, NULL)

    def _input(self) -> Schema:
        """One input in all the forms that it may have."""
        inputs = self._recipe.inputs
        if not inputs:
            return _any(NULL, {"type": "string", "maxLength": 0}, {"type": "object", "maxProperties": 0})
        count = len(self._served.examples)
        number: Schema = {"type": "integer", "minimum": 0, "maximum": count - 1}
        example = [_object({EXAMPLE: number}, closed=True)] if count else []
        values = {name: _any(*self._value(settings), *example) for name, settings in inputs.items()}
        by_name = _object(values, closed=True)
        whole = example if EXAMPLE not in inputs else []
        if len(inputs) > 1:
            return _any(by_name, *whole)
        (settings,) = inputs.values()
        return _any(*self._value(settings), by_name, *whole)

    def _value(self, settings: Any) -> list[Schema]:
        if settings.kind in FILES:
            return [{"type": "string", "pattern": DATA_URL}]
        if settings.kind in ("texts", "set"):
            return [self._characters, _list(TEXT)]
        if settings.kind == "vector":
            return [_list({"type": "number"}, minItems=1), self._characters]
        return [self._characters]


def _without_null(schema: Schema) -> Schema | None:
    """What of it a form can hold: there is no null there."""
    if schema.get("type") == "null":
        return None
    parts = [part for part in schema.get("anyOf", []) if part != NULL]
    if not parts:
        return schema
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return (parts[0] if len(parts) == 1 else {"anyOf": parts}) | rest


# ---------------------------------------------------------------- what is looked at


def _looking(models: Sequence[Served]) -> Schema:
    name = _in_path("name", {"type": "string", "enum": [one.name for one in models]})
    listed = _get("models", "models", "The models that are served.", _ok("Models"))
    about = "One model: its inputs, the five answers, examples."
    details = _get("models", "model", about, _ok("ModelDetails"), [name], refusals=[404])
    counters = {"description": "the counters", "content": {"text/plain": {"schema": TEXT}}}
    return {
        "/api/models": {"get": listed},
        "/api/models/{name}": {"get": details},
        **_example_path(models, name),
        **_run_paths([one.name for one in models]),
        "/health": {"get": _health()},
        "/metrics": {"get": _get("watch", "metrics", "Counters in Prometheus' text format.", counters)},
    }


def _example_path(models: Sequence[Served], name: Schema) -> Schema:
    """None where no model has examples with files."""
    files = sorted(
        {key for one in models for key, settings in one.model.recipe.inputs.items() if settings.kind in FILES}
    )
    most = max((len(one.examples) for one in models), default=0)
    if not files or not most:
        return {}
    number = _in_path("number", {"type": "integer", "minimum": 0, "maximum": most - 1})
    file = {"schema": {"type": "string", "format": "binary"}}
    kinds = dict.fromkeys(("image/*", "audio/*", "video/*", "application/octet-stream"), file)
    ok = {"description": "the file", "content": kinds}
    parameters = [name, number, _in_path("input", TEXT | {"enum": files})]
    operation = _get("models", "example", "The file of an example.", ok, parameters, refusals=[404])
    return {"/api/models/{name}/examples/{number}/{input}": {"get": operation}}


def _health() -> Schema:
    """Where it is not well it says the same things, as far as it still answers."""
    made = _get("watch", "health", "Whether the server answers, and which models it has.", _ok("Health"))
    ill = {"schema": _any(_reference("Health"), _reference("Error"))}
    made["responses"]["503"] = _refusal(503) | {"content": {JSON: ill}}
    return made


def _run_paths(names: list[str]) -> Schema:
    model = _in_query("model", {"type": "string", "enum": names}, "name of the model; not given: the first with a run")
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
                "How a model is, or was, trained: recipe, five answers.",
                _ok("Run"),
                [model],
                refusals=[404, 422],
            )
        },
        "/api/run/metrics": {
            "get": _get(
                "run",
                "run_metrics",
                "Reports from number `after` on, and how the run stands.",
                _ok("", _object({**_part(), "state": TEXT, "reports": _list({"type": "object"})})),
                [model, after, file],
                refusals=[404, 422],
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
                refusals=[404, 422],
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
    refusals: Sequence[int] = (),
) -> Schema:
    made: Schema = {"tags": [tag], "summary": summary, "operationId": name}
    made |= {"parameters": list(parameters)} if parameters else {}
    return made | {"responses": {"200": ok} | {str(status): _refusal(status) for status in refusals}}


def _ok(name: str, schema: Schema | None = None) -> Schema:
    return {"description": "the answer", "content": {JSON: {"schema": schema or _reference(name)}}}


def _in_path(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


# ---------------------------------------------------------------- what is answered


def _answers() -> Schema:
    """Components: what comes back. Keys that depend on the model are not required; more may come with time."""
    notices = _list(TEXT)
    likely = _list(_object({"text": TEXT, "probability": NUMBER}))
    token = _object({"text": TEXT, "probability": NUMBER, "runners_up": likely})
    alternative = _object({"text": TEXT, "score": NUMBER, "log_probability": NUMBER})
    looks = _object(
        {
            "inputs": _list({}),
            "outputs": _list(TEXT),
            "weights": _list(_list(NUMBER)),
            "layout": {"type": "object"},
            "maps": {"type": "object"},
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
            "tokens": _list(token),
            "alternatives": _list(alternative),
            "looks": _reference("Looks"),
            "shown": {"type": "object"},
        },
        ["input"],
    )
    scored = _list(_object({"text": TEXT, "log_probability": NUMBER}))
    look = _object(
        {
            "input": TEXT,
            "places": _list({}),
            "energies": _list(NUMBER),
            "weights": _list(NUMBER),
            "context": _list(NUMBER),
        }
    )
    count: Schema = {"type": "integer", "minimum": 0}
    explanation = _object(
        {
            "step": count,
            "steps": count,
            "outputs": _list(TEXT),
            "looks": _list(look),
            "probability": NUMBER,
            "likeliest": likely,
            "equations": {"type": "object"},
        }
    )
    model = _object(
        {
            "name": TEXT,
            "task": TEXT,
            "description": TEXT,
            "inputs": _list(_object({"name": TEXT, "kind": TEXT, "file": {"type": "boolean"}})),
            "output": _object({"kind": TEXT, "labels": _list(TEXT), "tokens": TEXT}, ["kind"]),
            "attention": {"type": "object"},
            "search": {"type": "object"},
            "ensemble": {"type": "integer", "minimum": 1},
            "run": {"type": "boolean"},
        }
    )
    details = {**model["properties"], "answers": _list({"type": "object"}), "examples": _list({"type": "object"})}
    score = _object({"rows": count, "tokens": count, "log_probability": NUMBER, "perplexity": NUMBER})
    each = _object(
        {
            "input": {"type": ["string", "object", "null"]},
            "output": TEXT,
            "log_probability": NUMBER,
            "tokens": scored,
        }
    )
    one = _reference("Prediction")
    return {
        "Error": _object({"error": TEXT}, closed=True),
        "Looks": looks,
        "Prediction": prediction,
        "Predictions": _object({"model": TEXT, "predictions": _list(one), "notices": notices}),
        "Comparison": _object({"model": TEXT, "before": one, "after": one, "notices": notices}),
        "Explanation": _object({"model": TEXT, "explanation": explanation, "notices": notices}),
        "Scores": _object({"model": TEXT, "score": score, "each": _list(each), "notices": notices}),
        "Model": model,
        "Models": _object({"models": _list(_reference("Model"))}),
        "ModelDetails": _object(details),
        "Health": _object({"status": TEXT, "version": TEXT, "models": {}}),
        "Run": _run(),
    }
