# SPDX-License-Identifier: Apache-2.0
"""Rules of the integer graph, its text form and its passes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from compiler.small_models import conv_model
from openvta.compiler.errors import CompileError, GraphError
from openvta.compiler.graph import INT8, INT32, UINT8, Array, Graph, Node, Requant, Tensor, topological
from openvta.compiler.importers import import_onnx
from openvta.compiler.ops import Add, AveragePool, Clip, Conv2d, Dense, MaxPool, Recode, Requantize, Reshape
from openvta.compiler.passes import (
    PASSES,
    CanonicalNames,
    DropDead,
    FoldClip,
    LowerToSigned,
    Pipeline,
    import_pipeline,
    lowering_pipeline,
    parse_pipeline,
)
from openvta.compiler.reference import Reference, evaluate
from openvta.compiler.text import format_graph, parse_graph
from openvta.spec.isa import RequantMode

MODELS = Path(__file__).parents[1] / "data" / "models"


def _rule(
    zero_point: int = 0, low: int = -128, high: int = 127, *, shift: int = 1, channels: int = 1, unsigned: bool = False
) -> Requant:
    return Requant(
        RequantMode.HALF_EVEN,
        Array(np.full(channels, 0.5**shift), np.float64),
        Array(np.ones(channels), np.uint32),
        Array(np.full(channels, shift), np.uint8),
        zero_point,
        low,
        high,
        unsigned,
        True,
    )


def _tensor(name: str, shape: tuple[int, ...] = (1, 2, 4, 4), dtype: str = INT8, zero: int = 0) -> Tensor:
    return Tensor(name, shape, dtype, 0.5, zero)


def _graph(*nodes: Node, tensors: tuple[Tensor, ...], outputs: tuple[str, ...] = ("y",)) -> Graph:
    return Graph("g", tensors, nodes, ("x",), outputs)


def _conv(**changes: object) -> Conv2d:
    base = Conv2d(
        "conv",
        ("x",),
        ("y",),
        weight=Array(np.ones((3, 2, 1, 1)), np.int8),
        weight_scale=Array(np.ones(3), np.float64),
        bias=Array(np.zeros(3), np.int32),
        strides=(1, 1),
        pads=(0, 0, 0, 0),
        groups=1,
        requant=_rule(channels=3),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


X = _tensor("x")
Y3 = _tensor("y", (1, 3, 4, 4))
Y = _tensor("y")


def test_array_compares_by_type_shape_and_content() -> None:
    a = Array([1, 2], np.int8)
    assert a == Array(np.array([1, 2], np.int8))
    assert hash(a) == hash(Array([1, 2], np.int8))
    assert a != Array([1, 2], np.int16)
    assert a != Array([[1, 2]], np.int8)
    assert a != Array([1, 3], np.int8)
    assert a != "other"
    with pytest.raises(ValueError, match="read-only"):
        a.values[0] = 5


def test_a_sound_graph_verifies() -> None:
    graph = _graph(_conv(), tensors=(X, Y3))
    assert graph.verify() is graph
    assert graph.producer("y") is graph.node("conv")
    assert graph.producer("x") is None
    assert graph.consumers("x") == (graph.node("conv"),)
    assert graph.node("conv").macs((X,), (Y3,)) == 3 * 16 * 2


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (replace(X, dtype="int4"), "dtype = int4"),
        (replace(X, shape=(1, 0, 4, 4)), "every dimension"),
        (replace(X, shape=(1, 2, 4)), "N C or N C H W"),
        (replace(X, scale=0.0), "finite and > 0"),
        (replace(X, scale=float("nan")), "finite and > 0"),
        (replace(X, scale=0.1), "float32 value"),
        (replace(X, zero_point=128), r"zero_point = 128: must be in -128..127"),
        (replace(X, dtype=UINT8, zero_point=-1), r"must be in 0..255"),
        (replace(X, name=""), "must not be empty"),
    ],
)
def test_bad_tensors(tensor: Tensor, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        tensor.check()


@pytest.mark.parametrize(
    ("node", "target", "message"),
    [
        (_conv(strides=(0, 1)), Y3, "strides"),
        (_conv(pads=(0, 0, -1, 0)), Y3, "pads"),
        (_conv(groups=3), Y3, "groups = 3"),
        (_conv(groups=2), Y3, "groups = 2"),
        (_conv(), Y, "must have 3 channels"),
        (_conv(bias=Array(np.zeros(2), np.int32)), Y3, "bias"),
        (_conv(bias=Array(np.zeros(3), np.int64)), Y3, "bias"),
        (_conv(weight=Array(np.full((3, 2, 1, 1), 300), np.int16)), Y3, r"must be in -255..255"),
        (_conv(weight=Array(np.ones((3, 2, 1, 1)), np.int32)), Y3, "weight dtype"),
        (_conv(weight_scale=Array(np.full(3, np.nan), np.float64)), Y3, "weight_scale"),
        (_conv(requant=_rule(channels=2)), Y3, "needs 1 or 3 entries"),
        (_conv(requant=_rule(3, channels=3)), Y3, "requant.zero_point = 3"),
        (_conv(requant=_rule(0, 5, 4)), Y3, "must be ordered"),
        (_conv(requant=_rule(0, -129, 4)), Y3, "must be ordered"),
        (_conv(requant=_rule(unsigned=True)), Y3, "requant.unsigned"),
        (_conv(requant=replace(_rule(), shift=Array([64], np.uint8))), Y3, r"must be in 0..63"),
        (_conv(requant=replace(_rule(), multiplier=Array([2**31], np.uint32))), Y3, r"below 2\^31"),
        (_conv(), replace(Y3, shape=(1, 3, 5, 4)), "height and width must be 4 x 4"),
        (_conv(), replace(Y3, dtype=INT32), "int8 or uint8"),
        (MaxPool("p", ("x",), ("y",), (2, 2), (1, 1), (0, 0, 1, 1)), replace(Y, scale=0.25), "output quantization"),
        (MaxPool("p", ("x",), ("y",), (1, 1), (1, 1), (1, 0, 0, 0)), _tensor("y", (1, 2, 5, 4)), "nothing but padding"),
        (Clip("c", ("x",), ("y",), 5, 4), Y, "must be ordered"),
        (Clip("c", ("x",), ("y",), -200, 4), Y, "must be ordered"),
        (Reshape("r", ("x",), ("y",)), _tensor("y", (1, 31)), "must keep N"),
        (Recode("r", ("x",), ("y",)), Y, "must be int8 -> uint8"),
        (Recode("r", ("x",), ("y",)), _tensor("y", dtype=UINT8, zero=1), "moved by 128"),
        (Requantize("r", ("x",), ("y",), _rule()), _tensor("y", (1, 32)), "must be the input's"),
        (Dense("d", ("x",), ("y",), Array(np.ones((2, 2)), np.int8), *[Array([1.0])] * 2, _rule()), Y, "2 dimensions"),
    ],
)
def test_bad_nodes(node: Node, target: Tensor, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        _graph(node, tensors=(X, target)).verify()


def test_bad_additions() -> None:
    def add(a: int, b: int, rule: Requant) -> Graph:
        return _graph(Add("a", ("x", "x"), ("y",), (a, b), rule), tensors=(X, Y))

    add(1 << 22, 1 << 22, _rule()).verify()
    with pytest.raises(GraphError, match=r"coefficient = 8388608: must be below 2\^23"):
        add(1 << 23, 1, _rule()).verify()
    wide = _graph(
        Add("a", ("x", "x"), ("y",), ((1 << 23) - 1, (1 << 23) - 1), _rule()),
        tensors=(replace(X, zero_point=-128), Y),
    )
    with pytest.raises(GraphError, match=r"limit 2\^31 - 1"):
        wide.verify()
    with pytest.raises(GraphError, match="HALF_EVEN with multiplier 1"):
        add(1, 1, replace(_rule(), mode=RequantMode.HALF_UP)).verify()


def test_structure_faults() -> None:
    conv = _conv()
    with pytest.raises(GraphError, match="used twice"):
        _graph(conv, tensors=(X, X, Y3)).verify()
    with pytest.raises(GraphError, match="used twice"):
        _graph(conv, conv, tensors=(X, Y3)).verify()
    with pytest.raises(GraphError, match="no such tensor"):
        _graph(conv, tensors=(X,)).verify()
    with pytest.raises(GraphError, match="neither an input nor written"):
        _graph(conv, tensors=(X, Y3, _tensor("z"))).verify()
    with pytest.raises(GraphError, match="read before any node writes it"):
        _graph(replace(conv, inputs=("z",)), tensors=(X, Y3, _tensor("z"))).verify()
    with pytest.raises(GraphError, match="already written by conv"):
        _graph(conv, replace(conv, name="other"), tensors=(X, Y3)).verify()
    with pytest.raises(GraphError, match="at least one output"):
        _graph(conv, tensors=(X, Y3), outputs=()).verify()
    with pytest.raises(GraphError, match="Conv2d takes 1"):
        _graph(replace(conv, inputs=("x", "x")), tensors=(X, Y3)).verify()
    with pytest.raises(GraphError, match="cycle"):
        topological((replace(conv, inputs=("y",)),), ("x",), "g")
    with pytest.raises(GraphError, match="no node writes it"):
        topological((replace(conv, inputs=("q",)),), ("x",), "g")


def test_average_pool_rules() -> None:
    divisors = Array(np.array([[4, 2], [4, 2]]), np.int32)
    base = AveragePool("p", ("x",), ("y",), (2, 2), (2, 2), (0, 0, 0, 0), divisors, (2, 4), (_rule(), _rule(shift=2)))
    target = _tensor("y", (1, 2, 2, 2))
    graph = _graph(base, tensors=(X, target)).verify()
    x = np.random.default_rng(0).integers(-128, 128, (3, 2, 4, 4)).astype(np.int8)
    y = evaluate(graph, {"x": x})["y"]
    sums = x.astype(int).reshape(3, 2, 2, 2, 2, 2).sum(axis=(3, 5))
    for column, divisor in ((0, 4), (1, 2)):
        expected = [min(max(round(Fraction(int(s), divisor)), -128), 127) for s in sums[..., column].reshape(-1)]
        assert y[..., column].reshape(-1).tolist() == expected
    with pytest.raises(GraphError, match="divisor_values"):
        _graph(replace(base, divisor_values=(4, 2)), tensors=(X, target)).verify()
    with pytest.raises(GraphError, match="requants = 1"):
        _graph(replace(base, requants=(_rule(),)), tensors=(X, target)).verify()
    with pytest.raises(GraphError, match="divisors"):
        _graph(replace(base, divisors=Array([[4]], np.int32)), tensors=(X, target)).verify()


@pytest.mark.parametrize("name", sorted(p.name for p in MODELS.glob("*s8s8*.onnx")))
def test_text_round_trip(name: str) -> None:
    graph = import_onnx(MODELS / name).graph
    text = format_graph(graph)
    assert text == graph.text()
    assert parse_graph(text) == graph
    assert parse_graph(text).text() == text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("graph ", "grph ", "must begin with"),
        (" Conv2d ", " Conv9d ", "operator = Conv9d"),
        ("groups=1", "groups=", "JSON"),
        ("groups=1", "", "Conv2d has"),
        ("groups=1", "groups=1 groups=2", "given twice"),
        ("groups=1", "group=1", "Conv2d has"),
        ("groups=1", "groups=7", "groups = 7"),
        ("-> (", "-- (", "'->' is missing"),
        ('"mode": "HALF_EVEN"', '"mode": "UP"', "mode = UP"),
        ('{"@": 0}', '{"@": 99}', "no such constant"),
        ("constant @0 int8", "constant @0 int99", "constant type int99"),
        ("constant @0 int8 [3", "constant @0 int8 [4", "do not hold"),
        ("constant @0 int8 [3", "constant @0 int8 [-3", "integers >= 0"),
        ("constant @0 int8 [3", "constant @0 int8 [30000000000", "at most"),
        ("int8 [1, 2, 5, 5] scale=0.5", "int8 [1, 2, 5, 5] scale=-0.5", "scale"),
        ("int8 [1, 2, 5, 5] scale=0.5", 'int8 [1, 2, 5, "5"] scale=0.5', "list of integers"),
        ("int8 [1, 2, 5, 5] scale=0.5", "int8 [1, 2, 5, 5] size=0.5", "only scale= and zero_point="),
        ('input "x"', "input 5", "must be a string"),
    ],
)
def test_bad_text(old: str, new: str, message: str) -> None:
    text = import_onnx(conv_model()).graph.text()
    assert old in text
    with pytest.raises(GraphError, match=message):
        parse_graph(text.replace(old, new, 1))


def test_damaged_text_never_ends_in_another_error() -> None:
    text = import_onnx(conv_model()).graph.text()
    rng = np.random.default_rng(3)
    for _ in range(400):
        at = int(rng.integers(len(text)))
        changed = text[:at] + chr(int(rng.integers(32, 127))) + text[at + int(rng.integers(0, 3)) :]
        try:
            parse_graph(changed)
        except CompileError:
            continue


def test_missing_first_line_and_comments() -> None:
    with pytest.raises(GraphError, match="first line names the graph"):
        parse_graph("")
    text = import_onnx(conv_model()).graph.text()
    assert parse_graph("# a comment\n\n" + text) == parse_graph(text)


def test_pipelines_print_and_parse() -> None:
    for pipeline in (import_pipeline(), lowering_pipeline(), Pipeline(())):
        assert parse_pipeline(str(pipeline), PASSES) == pipeline
    assert str(lowering_pipeline()) == "lower_to_signed;flatten_dense"
    for bad, message in (("nothing", "no pass"), ("fold_clip(x=1)", "no option 'x'"), ("fold_clip(", "no pass")):
        with pytest.raises(CompileError, match=message):
            parse_pipeline(bad, PASSES)


def test_fold_clip_keeps_what_others_read() -> None:
    clip = Clip("clip", ("y",), ("z",), 0, 100)
    tensors = (X, Y3, replace(Y3, name="z"))
    folded = FoldClip().run(_graph(_conv(), clip, tensors=tensors, outputs=("z",)).verify()).verify()
    assert [n.op for n in folded.nodes] == ["Conv2d"]
    rule = folded.nodes[0].requant  # type: ignore[attr-defined]
    assert (rule.low, rule.high) == (0, 100)
    kept = _graph(_conv(), clip, tensors=tensors, outputs=("z", "y")).verify()
    assert FoldClip().run(kept) == kept


@pytest.mark.parametrize(("first", "second"), [((-5, 50), (0, 100)), ((10, 50), (-9, 3)), ((-50, -10), (0, 5))])
def test_clamps_compose(first: tuple[int, int], second: tuple[int, int]) -> None:
    values = np.arange(-128, 128)
    expected = np.clip(np.clip(values, *first), *second)
    rule = _rule(0, *first, shift=0).clamped(*second)
    assert (rule.apply(values.reshape(1, 1, -1), [0])[0, 0] == expected).all()
    clips = (Clip("a", ("x",), ("m",), *first), Clip("b", ("m",), ("y",), *second))
    graph = FoldClip().run(_graph(*clips, tensors=(X, _tensor("m"), Y)).verify()).verify()
    assert len(graph.nodes) == 1
    x = values.astype(np.int8).reshape(8, 2, 4, 4)
    assert (evaluate(graph, {"x": x})["y"].reshape(-1) == expected).all()


def test_drop_dead_and_canonical_names() -> None:
    dead = Clip("dead", ("y",), ("z",), 0, 1)
    graph = _graph(_conv(), dead, tensors=(X, Y3, replace(Y3, name="z"))).verify()
    assert [n.name for n in DropDead().run(graph).nodes] == ["conv"]
    renamed = parse_graph(graph.text().replace('"conv"', '"other"').replace('"y"', '"result"'))
    assert renamed != graph
    assert CanonicalNames().run(renamed).verify() == CanonicalNames().run(graph).verify()


def test_lower_to_signed_on_the_border() -> None:
    x, y = _tensor("x", dtype=UINT8, zero=7), _tensor("y", dtype=UINT8, zero=7)
    graph = _graph(Clip("clip", ("x",), ("y",), 7, 200), tensors=(x, y)).verify()
    lowered = LowerToSigned().run(graph).verify()
    assert [n.op for n in lowered.nodes] == ["Recode", "Clip", "Recode"]
    values = np.arange(256).astype(np.uint8).reshape(8, 2, 4, 4)
    for form in (graph, lowered):
        assert (evaluate(form, {"x": values})["y"] == np.clip(values, 7, 200)).all()


def test_reference_checks_its_inputs() -> None:
    reference = Reference(_graph(_conv(), tensors=(X, Y3)).verify())
    good = np.zeros((1, 2, 4, 4), np.int8)
    for inputs, message in (
        ({}, "the graph takes x"),
        ({"x": good, "z": good}, "the graph takes x"),
        ({"x": good.astype(np.int16)}, "dtype = int16: must be int8"),
        ({"x": good[:, :1]}, r"must be \[N, 2, 4, 4\]"),
        ({"x": good[0]}, r"must be \[N, 2, 4, 4\]"),
        ({"x": good[:0]}, "N >= 1"),
        ({"x": good.transpose(0, 2, 3, 1)}, r"must be \[N, 2, 4, 4\]"),
    ):
        with pytest.raises(CompileError, match=message):
            reference.run(inputs)
    assert reference.run({"x": np.repeat(good, 47, axis=0)})["y"].shape == (47, 3, 4, 4)


def test_convolution_against_plain_loops() -> None:
    rng = np.random.default_rng(9)
    x = rng.integers(-128, 128, (2, 4, 5, 6)).astype(np.int8)
    for groups in (1, 2, 4):
        weight = rng.integers(-128, 128, (8, 4 // groups, 3, 2)).astype(np.int8)
        node = _conv(weight=Array(weight), strides=(2, 1), pads=(1, 0, 2, 1), groups=groups)
        acc = node.accumulate(x, 5)
        image = np.full((2, 4, 8, 7), 5)
        image[:, :, 1:6, 0:6] = x
        for n, o, i, j in np.ndindex(*acc.shape):
            first = o // (8 // groups) * (4 // groups)
            window = image[n, first : first + 4 // groups, 2 * i : 2 * i + 3, j : j + 2] - 5
            assert acc[n, o, i, j] == int((window * weight[o].astype(int)).sum())
