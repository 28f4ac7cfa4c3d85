"""Export to ONNX: the encoder and one step of the decoder as graphs, which seq2see-runtime searches without torch.

A decoder of one step (a label, numbers) needs no search: its answer is in the encoder's graph. Both graphs are traced
with random inputs, written, and compared with the model on inputs of other sizes before the export is done.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from seq2see import __version__
from seq2see.data.columns import OUTPUT
from seq2see.data.vocabulary import SOS
from seq2see.decoders.output_heads import SoftmaxHead
from seq2see.decoders.records import Ready, State
from seq2see.errors import UserError, imported
from seq2see.export.shortlist import BIAS, SCALES, WEIGHTS, check_shortlist, learn_shortlist, output_layer
from seq2see.files import new_folder, write_bytes
from seq2see.looks import Layout
from seq2see.memory import Copyable
from seq2see.model import EncoderDecoder
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.predictor import why_no_looks
from seq2see.pipeline.weights import write_checksums
from seq2see.search.options import LANGUAGE_MODEL, NONE

FORMAT, SHORTLIST_FORMAT = 1, 2
ENCODER, STEP, METADATA = "encoder.onnx", "step.onnx", "runtime.json"
OPSET = 18
ROWS, LENGTH, WIDTH, READ = 3, 6, 2, 4
"""Sizes of the inputs that a graph is traced with, all different: inputs, their places, hypotheses of each, and symbols
written so far."""
FORCED = "forced/"
"""Before the names of inputs: attention weights of the caller."""
FEW = 5
"""Symbols of the output layer in a trace with a shortlist."""
CLOSE = 1e-4
"""How far log-probabilities and weights of a graph may be from the model's."""

Columns = Mapping[str, Any]


def export(
    bundle: Bundle, out: Path, *, int8: bool = False, pairs: Sequence[Mapping[str, str]] | None = None
) -> list[str]:
    """Write a folder for seq2see-runtime. Returns notes for the user.

    int8: weights as whole numbers of 8 bits; pairs: rows of the training table, of which a shortlist is learned.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before onnxruntime is imported, as in the runtime
    for module in ("onnx", "onnxscript", "onnxruntime"):
        imported(module, extra="onnx")
    check_exportable(bundle)
    if pairs is not None:
        check_shortlist(bundle)
    with new_folder(out) as folder:
        encoder, program, step, second = trace(bundle, shortlist=pairs is not None)
        program.save(str(folder / ENCODER))
        if second is not None:
            second.save(str(folder / STEP))
        difference = compare(bundle, encoder, step, folder)
        if difference > CLOSE:
            raise UserError(f"the exported graphs differ from the model by {difference:.1e}; allowed: {CLOSE:g}")
        graphs = [folder / ENCODER, *([] if step is None else [folder / STEP])]
        notes = [f"the graphs give the model's numbers to {difference:.0e}"]
        if bundle.recipe.search.language_model not in (None, NONE):
            path = bundle.recipe.search.language_model
            notes.append(f"search.language_model: {path} is ignored: the runtime does not use language models")
        if int8:
            for graph in graphs:
                _quantise(graph)
            if pairs is not None:
                _quantise_output_layer(folder / STEP)
            notes.append(
                f"int8: on random inputs they differ by up to {compare(bundle, encoder, step, folder, int8=True):.1g}"
            )
        files = [*graphs, *bundle.fields.save(folder), folder / METADATA]
        if pairs is not None:
            shortlist = learn_shortlist(bundle, pairs)
            files += shortlist.save(folder, cast(SoftmaxHead, bundle.network.head), int8=int8)
            notes.append(str(shortlist))
        known = json.dumps(
            metadata(bundle, encoder, int8=int8, shortlist=pairs is not None), ensure_ascii=False, indent=1
        )
        write_bytes(folder / METADATA, known.encode())
        write_checksums(folder, files)
    return notes


def check_exportable(bundle: Bundle) -> None:
    """Refuse what no graph can hold, with the key of the recipe."""
    for name in bundle.recipe.inputs:
        score = getattr(bundle.recipe.encoder_of(name), "self_attention", "none")
        if score != "none":
            key = f"{bundle.recipe.encoder_path(name)}.self_attention"
            raise UserError(f"{key}: {score}, a loop over the input's steps, cannot be exported; allowed: none")


def metadata(bundle: Bundle, encoder: EncoderGraph, *, int8: bool, shortlist: bool) -> dict[str, Any]:
    """What the runtime needs to know beside the graphs: how values are read, how answers are searched and written."""
    recipe, fields = bundle.recipe, bundle.fields
    columns = {name: field.settings.model_dump(mode="json") for name, field in fields.all.items()}
    output = columns.pop(OUTPUT)
    copying = fields.copying
    return {
        "format": SHORTLIST_FORMAT if shortlist else FORMAT,
        "version": __version__,
        "int8": int8,
        "shortlist": shortlist,
        "inputs": columns,
        "required": list(recipe.needed),
        "output": output,
        "answer": recipe.output.answer_field,
        "one_step": recipe.output.one_step,
        "stream": recipe.data.stream,
        "numeric": recipe.output.numeric,
        "copied": None if copying is None else {"input": copying.name, "places": recipe.copied_places},
        "search": recipe.search.model_dump(mode="json", exclude=set(LANGUAGE_MODEL)),
        "most_steps": None if recipe.output.one_step else recipe.decoder.most_steps,
        "given": recipe.attention.conditions,
        "hard": recipe.attention.choice == "hard",
        "heads": recipe.attention.heads,
        "looked_at": list(recipe.looked_at),
        "why_no_looks": "" if recipe.looked_at else why_no_looks(recipe),
        "layouts": {name: _layout(layout) for name, layout in encoder.layouts.items()},
        "maps": {name: _layout(layout) for name, layout in encoder.maps.items()},
    }


def _layout(layout: Layout) -> dict[str, Any]:
    return {"kind": layout.kind, "shape": [int(side) for side in layout.shape], "leftward": layout.leftward}


def _quantise(graph: Path) -> None:
    """Replace a graph by one whose constant matrices have 8 bits, column by column; activations are quantised as they
    come."""
    quantization, onnx = imported("onnxruntime.quantization", extra="onnx"), imported("onnx", extra="onnx")
    model = onnx.load(str(graph))
    del model.graph.value_info[:]  # shapes of inner values, which the quantiser infers again
    quantization.quantize_dynamic(
        model, graph, op_types_to_quantize=["MatMul"], per_channel=True, weight_type=quantization.QuantType.QInt8
    )


def _quantise_output_layer(graph: Path) -> None:
    """Let the graph of a step multiply an output layer of 8 bits: weights (width, symbols), and a scale per symbol."""
    onnx = imported("onnx", extra="onnx")
    model = onnx.load(str(graph))
    nodes = model.graph.node
    transposed = next(node for node in nodes if WEIGHTS in node.input)
    product = next(node for node in nodes if transposed.output[0] in node.input)
    added = next(node for node in nodes if BIAS in node.input)
    if [node.op_type for node in (transposed, product, added)] != ["Transpose", "MatMul", "Add"]:
        raise UserError(
            "--int8 --shortlist: this version of torch writes the output layer in another way; leave one out"
        )
    inputs = [product.input[0], WEIGHTS, SCALES, "", BIAS]
    quantised = onnx.helper.make_node(
        "DynamicQuantizeMatMul", inputs, list(added.output), name="output_layer", domain="com.microsoft"
    )
    place = list(nodes).index(added)
    kept = [node for node in nodes if node not in (transposed, product, added)]
    kept.insert(place - 2, quantised)
    del nodes[:]
    nodes.extend(kept)
    inputs_by_name = {each.name: each for each in model.graph.input}
    width, symbols = reversed(inputs_by_name[WEIGHTS].type.tensor_type.shape.dim)
    shape = [width.dim_value, symbols.dim_param]
    types = onnx.TensorProto
    for name, kind, sizes in ((WEIGHTS, types.INT8, shape), (SCALES, types.FLOAT, shape[1:])):
        if name in inputs_by_name:
            model.graph.input.remove(inputs_by_name[name])
        model.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, sizes))
    if not any(each.domain == "com.microsoft" for each in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, str(graph))


# ---------------------------------------------------------------- what is traced


class EncoderGraph(nn.Module):
    """Columns of a batch as plain tensors -> everything that steps and looks need, as plain tensors.

    columns: of random values, whose fields that are tensors are the inputs, in order; names: of the outputs, known
    after the first call; whole: the answer of a decoder of one step is among the outputs.
    """

    def __init__(self, network: EncoderDecoder, columns: Columns, *, whole: bool = True):
        super().__init__()
        self._network = (network,)  # no submodule: an input may be called `items`, which torch would take for a method
        self.columns, self.whole = columns, whole
        self.names: list[str] = []
        self.layouts: dict[str, Layout] = {}
        self.maps: dict[str, Layout] = {}

    @property
    def network(self) -> EncoderDecoder:
        return self._network[0]

    def inputs(self, columns: Columns, rows: int) -> dict[str, Tensor]:
        """The tensors of columns by name; of a language model, which has none, a number for each row."""
        tensors = {f"{name}/{part}": tensor for name, column in columns.items() for part, tensor in _tensors(column)}
        return tensors or {"rows": torch.zeros(rows, dtype=torch.long)}

    def named(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The outputs by name."""
        outputs = self(*inputs.values())
        return dict(zip(self.names, outputs, strict=True))

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        columns = {name: _replaced(column, iter_) for iter_ in [iter(tensors)] for name, column in self.columns.items()}
        network = self.network
        ready = network.ready(columns, tensors[0].shape[0])
        state = network.begin(ready)
        outputs = ready.tensors()
        for name, each in ready.memory.maps.items():
            outputs |= {f"map/{name}/{part}": getattr(each, part) for part in ("weights", "rows", "places")}
            over = ready.memory.places.get(name)
            if over is not None and over.parent is not None:
                outputs[f"map/{name}/parent"] = over.parent
        if network.ctc is not None:
            outputs["ctc/log_probs"], outputs["ctc/mask"] = network.ctc_log_probs(ready.memory)
        if network.decoder.one_step and self.whole:
            step = network.step(ready, state, None)
            answer = network.log_probs(step, ready) if network.head.symbols else network.numbers(step)
            outputs |= {"answer": answer, **_weights(step)}
        else:
            outputs |= {f"state/{name}": part for name, part in state.tensors().items()}
        self.names = list(outputs)
        self.layouts = {name: prepared.layout for name, prepared in ready.by_layer().items()}
        self.maps = {name: each.layout for name, each in ready.memory.maps.items()}
        return tuple(outputs.values())


def _weights(step: Any) -> dict[str, Tensor]:
    """The weights of all looks, (rows, [heads,] places)."""
    return {f"weights/{name}": look.by_head() for name, look in step.by_layer().items()}


class StepGraph(nn.Module):
    """One step: tokens (batch, width), the number of the step, and what the encoder's graph gives -> log P of every
    symbol (batch * width, symbols), the next state, and the weights of its looks.

    Tensors of the state have the axes (batch, width, ...). shortlist: V and c of the output layer are inputs too, so
    that the runtime can leave out rows of them; log P is then of the symbols of these rows, among themselves. oracle:
    attention weights of the caller are inputs too, (batch, width, places), NaN where the model's own hold.
    """

    def __init__(self, encoder: EncoderGraph, *, shortlist: bool = False, oracle: bool = False):
        super().__init__()
        self._encoder, self.shortlist = (encoder,), shortlist
        self.inputs = [name for name in encoder.names if not name.startswith(("map/", "ctc/"))]
        self.inputs += [WEIGHTS, BIAS] if shortlist else []
        self.forced = [name for name in encoder.layouts if ".layer-" not in name] if oracle else []
        self.inputs += [f"{FORCED}{name}" for name in self.forced]
        self.names: list[str] = []

    @property
    def encoder(self) -> EncoderGraph:
        return self._encoder[0]

    def forward(self, token: Tensor, position: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        batch, width = token.shape
        known = dict(zip(self.inputs, tensors, strict=True))
        network = self.encoder.network
        layouts = {
            name: _fitted(layout, known[f"looks/{name}/mask"].shape[1]) for name, layout in self.encoder.layouts.items()
        }
        ready = Ready.from_tensors(known, layouts, rows=batch)
        rows = {name.removeprefix("state/"): part.flatten(0, 1) for name, part in known.items() if _carried(name)}
        number: Any = position if torch.compiler.is_exporting() else int(position)
        state = State.from_tensors(rows, width=width, position=number)
        forced = {name: known[f"{FORCED}{name}"].flatten(0, 1) for name in self.forced}
        read = None if network.decoder.one_step else token.flatten()
        step = network.step(ready, state, read, forced=forced or None)
        after = {f"state/{name}": part.unflatten(0, (batch, width)) for name, part in step.state.tensors().items()}
        if self.shortlist:
            features = cast(SoftmaxHead, network.head).read_out(step.features)
            log_probs = torch.log_softmax(linear(features, known[WEIGHTS], known[BIAS]), dim=-1)
        else:
            log_probs = network.log_probs(step, ready)
        outputs = {"log_probs": log_probs, **after, **_weights(step)}
        self.names = list(outputs)
        return tuple(outputs.values())


def _fitted(layout: Layout, places: int) -> Layout:
    """The layout of so many places: inputs of a batch differ in their columns, or in their frames."""
    if layout.kind == "grid":
        return replace(layout, shape=(layout.shape[0], places // layout.shape[0]))
    if layout.kind == "frames-grid":
        rows, columns = layout.shape[1:]
        return replace(layout, shape=(places // (rows * columns), rows, columns))
    return layout


def _carried(name: str) -> bool:
    return name.startswith("state/")


def _tensors(column: Any) -> Iterator[tuple[str, Tensor]]:
    """The fields of a column that hold tensors, those of records inside it too."""
    for field in fields_of(column):
        value = getattr(column, field.name)
        if isinstance(value, Tensor):
            yield field.name, value
        elif is_dataclass(value):
            yield from ((f"{field.name}/{name}", tensor) for name, tensor in _tensors(value))


def _replaced(column: Any, tensors: Iterator[Tensor]) -> Any:
    """The same column with these tensors, in the order of `_tensors`."""
    changed: dict[str, Any] = {}
    for field in fields_of(column):
        value = getattr(column, field.name)
        if isinstance(value, Tensor):
            changed[field.name] = next(tensors)
        elif is_dataclass(value):
            changed[field.name] = _replaced(value, tensors)
    return replace(column, **changed)


def random_columns(bundle: Bundle, rows: int, length: int, seed: int) -> dict[str, Any]:
    """A batch of random values, with what can be copied from them."""
    random = np.random.default_rng(seed)
    columns = {name: field.random_column(rows, length, random) for name, field in bundle.fields.inputs.items()}
    copying = bundle.fields.copying
    if copying is not None:
        column = columns[copying.name]
        lengths = column.mask.flatten(1).sum(1)
        real = torch.arange(int(lengths.max())) < lengths[:, None]
        ids = torch.from_numpy(random.integers(0, bundle.fields.output.size + 2, tuple(real.shape)))
        columns[copying.name] = replace(column, copyable=Copyable(ids * real))
    return columns


# ---------------------------------------------------------------- graphs


def trace(
    bundle: Bundle, *, shortlist: bool = False, oracle: bool = False
) -> tuple[EncoderGraph, Any, StepGraph | None, Any]:
    """Both graphs with their ONNX programs; a decoder of one step has no second one.

    oracle: the second takes attention weights of the caller, and a decoder of one step has one too.
    """
    first, other = (
        random_columns(bundle, rows, length, 1) for rows, length in ((ROWS, LENGTH), (ROWS + 2, LENGTH + 3))
    )
    encoder = EncoderGraph(bundle.network, first, whole=not oracle)
    inputs, others = encoder.inputs(first, ROWS), encoder.inputs(other, ROWS + 2)
    with torch.inference_mode():
        outputs, apart = encoder.named(inputs), encoder.named(others)
    shapes = tuple(_free(part, others[name]) for name, part in inputs.items())
    program = _program(encoder, tuple(inputs.values()), (shapes,), list(inputs), encoder.names)
    if bundle.network.decoder.one_step and not oracle:
        return encoder, program, None, None
    step = StepGraph(encoder, shortlist=shortlist, oracle=oracle)
    if shortlist:
        head = cast(SoftmaxHead, bundle.network.head)
        outputs, apart = (
            each | {WEIGHTS: head.V.detach()[:few], BIAS: head.c.detach()[:few]}
            for each, few in ((outputs, FEW), (apart, FEW + 2))
        )
    outputs, apart = (each | _unforced(step, each, width) for each, width in ((outputs, WIDTH), (apart, WIDTH + 1)))
    known = {name: _wide(name, outputs[name], WIDTH, READ) for name in step.inputs}
    others = {name: _wide(name, apart[name], WIDTH + 1, READ + 3) for name in step.inputs}
    token, position = torch.full((ROWS, WIDTH), SOS), torch.tensor(READ)
    with torch.inference_mode():
        step(token, position, *known.values())
    names = ["log_probs", *(f"next/{name}" for name in step.names[1:])]
    free = torch.export.Dim.AUTO
    second = _program(
        step,
        (token, position, *known.values()),
        ({0: free, 1: free}, {}, tuple(_free(part, others[name]) for name, part in known.items())),
        ["token", "position", *known],
        names,
    )
    return encoder, program, step, second


def _unforced(step: StepGraph, known: Mapping[str, Tensor], width: int) -> dict[str, Tensor]:
    """The inputs of a step's graph that leave the model its own attention weights."""
    masks = {name: known[f"looks/{name}/mask"] for name in step.forced}
    return {
        f"{FORCED}{name}": torch.full((mask.shape[0], width, mask.shape[1]), torch.nan) for name, mask in masks.items()
    }


def _wide(name: str, part: Tensor, width: int, read: int) -> Tensor:
    """A tensor of the first state for several hypotheses; caches are filled, as a trace takes an empty axis as such."""
    if not _carried(name):
        return part.clone()
    wide = part[:, None].expand(part.shape[0], width, *part.shape[1:]).clone()
    return torch.randn(*wide.shape[:3], read, wide.shape[4]) if name.startswith("state/caches") else wide


def _free(part: Tensor, other: Tensor) -> dict[int, Any]:
    """The axes whose size is another in another batch."""
    pairs = enumerate(zip(part.shape, other.shape, strict=True))
    return {axis: torch.export.Dim.AUTO for axis, (size, another) in pairs if size != another}


def _program(
    graph: nn.Module, arguments: tuple[Tensor, ...], shapes: Any, inputs: list[str], outputs: list[str]
) -> Any:
    """The graph as ONNX, without inputs that it has no use for, and without paths of this machine's files."""
    with torch.no_grad():
        program = torch.onnx.export(
            graph.eval(),
            arguments,
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=inputs,
            output_names=outputs,
            custom_translation_table=translations(),
            opset_version=OPSET,
            verbose=False,
        )
    made = cast(Any, program).model.graph
    for value in [each for each in made.inputs if not each.uses() and each not in made.outputs]:
        made.inputs.remove(value)
    for node in made.all_nodes():
        node.metadata_props.clear()
    return program


# ---------------------------------------------------------------- proof

TRIED = ((2, LENGTH + 4, 3), (1, 3, 1))
"""Sizes of the inputs that a written graph is compared with the model on: inputs, places, hypotheses of each."""
STEPS = 3


def compare(
    bundle: Bundle, encoder: EncoderGraph, step: StepGraph | None, folder: Path, *, int8: bool = False
) -> float:
    """The largest difference between the written graphs and the model, on random inputs of other sizes."""
    encode = session(folder / ENCODER)
    advance = None if step is None else session(folder / STEP)
    worst = 0.0
    for seed, (rows, length, width) in enumerate(TRIED):
        columns = random_columns(bundle, rows, length, seed)
        inputs = encoder.inputs(columns, rows)
        with torch.inference_mode():
            wanted = encoder.named(inputs)
            feed = {name: _as_traced(name, tensor, inputs).numpy() for name, tensor in inputs.items()}
            found = dict(zip(encoder.names, run(encode, feed), strict=True))
            worst = max(worst, _apart(wanted, found))
            if advance is None or step is None:
                continue
            if step.shortlist:
                head = cast(SoftmaxHead, bundle.network.head)
                wanted |= {WEIGHTS: head.V.detach(), BIAS: head.c.detach()}
                found |= output_layer(head, int8=int8)
            free = _unforced(step, wanted, width)
            wanted |= free
            found |= _arrays(free)
            own = {name: _repeated(name, wanted[name], width) for name in step.inputs}
            taken = [*step.inputs, SCALES] if SCALES in found else step.inputs
            theirs = {name: _repeated(name, torch.from_numpy(found[name]), width) for name in taken}
            for number in range(STEPS):
                token = torch.full((rows, width), SOS + 2 * bool(number))
                position = torch.tensor(number)
                made = dict(zip(step.names, step(token, position, *own.values()), strict=True))
                feed = {
                    "token": token.numpy(),
                    "position": position.numpy(),
                    **_arrays(theirs),
                }
                given = dict(zip(step.names, run(advance, feed), strict=True))
                worst = max(worst, _apart(made, given))
                own |= {name: part for name, part in made.items() if _carried(name)}
                theirs |= {name: torch.from_numpy(part) for name, part in given.items() if _carried(name)}
    return worst


def session(graph: Path) -> Any:
    """A graph ready to run, on one thread."""
    library = imported("onnxruntime", extra="onnx")
    options = library.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    return library.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


def run(graph: Any, feed: Mapping[str, Any]) -> list[Any]:
    """All outputs; inputs that the graph has no use for are left out."""
    used = {each.name for each in graph.get_inputs()}
    outputs: list[Any] = graph.run(None, {name: array for name, array in feed.items() if name in used})
    return outputs


def _as_traced(name: str, tensor: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
    """Ids to copy from the words of documents, with as much padding as the traced encoder gives these words."""
    mask = inputs.get(name.replace("copyable/ids", "mask"))
    if not name.endswith("copyable/ids") or mask is None or mask.dim() == 2:
        return tensor
    return torch.nn.functional.pad(tensor, (0, mask[0].numel() - tensor.shape[1]))


def _repeated(name: str, part: Tensor, width: int) -> Tensor:
    return part[:, None].expand(part.shape[0], width, *part.shape[1:]).clone() if _carried(name) else part


def _arrays(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def _apart(wanted: Mapping[str, Tensor], found: Mapping[str, Any]) -> float:
    """The largest difference of two outputs of the same name; padding that one of them lacks does not count."""
    worst = 0.0
    for name, tensor in wanted.items():
        mine, other = tensor.float().numpy(), np.asarray(found[name], dtype=np.float32)
        common = tuple(slice(min(sizes)) for sizes in zip(mine.shape, other.shape, strict=True))
        both = [np.nan_to_num(part[common], neginf=-1e4) for part in (mine, other)]
        worst = max(worst, float(np.abs(both[0] - both[1]).max(initial=0.0)))
    return worst


# ---------------------------------------------------------------- recurrent operators


def translations() -> dict[Any, Any]:
    """The recurrent operators of `seq2see.cells` as ONNX's. Gates lie in another order there."""
    op = imported("onnxscript", extra="onnx").opset18

    def gates(weight: Any, *order: int) -> Any:
        parts = op.Split(weight, axis=0, num_outputs=len(order))
        return op.Concat(*(parts[number] for number in order), axis=0)

    def first(part: Any) -> Any:
        return op.Unsqueeze(part, op.Constant(value_ints=[0]))

    def swapped(x: Any) -> Any:
        return op.Transpose(x, perm=[1, 0, 2])

    def outputs(y: Any) -> Any:
        return swapped(op.Squeeze(y, op.Constant(value_ints=[1])))

    def zeros(part: Any) -> Any:
        return op.Mul(part, op.Constant(value_float=0.0))

    def rnn(x: Any, W: Any, U: Any, b: Any, logistic: bool) -> Any:
        bias = first(op.Concat(b, zeros(b), axis=0))
        activations = ["Sigmoid" if logistic else "Tanh"]
        y, _ = op.RNN(swapped(x), first(W), first(U), bias, hidden_size=U.shape[1], activations=activations)
        return outputs(y)

    def gru(x: Any, W: Any, U: Any, b: Any, b_U: Any, before: bool, logistic: bool) -> Any:
        order = (1, 0, 2)
        none = zeros(b_U)
        bias = first(op.Concat(gates(b, *order), none, none, b_U, axis=0))
        y, _ = op.GRU(
            swapped(x),
            first(gates(W, *order)),
            first(gates(U, *order)),
            bias,
            hidden_size=U.shape[1],
            linear_before_reset=int(not before),
            activations=["Sigmoid", "Sigmoid" if logistic else "Tanh"],
        )
        return outputs(y)

    def lstm(x: Any, W: Any, U: Any, b: Any) -> Any:
        order = (0, 3, 1, 2)
        bias = gates(b, *order)
        y, _, _ = op.LSTM(
            swapped(x),
            first(gates(W, *order)),
            first(gates(U, *order)),
            first(op.Concat(bias, zeros(bias), axis=0)),
            hidden_size=U.shape[1],
        )
        return outputs(y)

    own = torch.ops.seq2see
    return {own.rnn.default: rnn, own.gru.default: gru, own.lstm.default: lstm}
