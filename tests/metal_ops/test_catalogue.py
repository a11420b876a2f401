"""The catalogue: complete, consistent with torch, and light to import."""

from __future__ import annotations

import subprocess
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from conformance.dtypes import dtype as dtype_of
from conformance.op import Computation, Op
from conformance.oracle import judge
from metal_ops import catalogue
from metal_ops.catalogue import ops

_OPS = {op.name: op for op in ops()}

_FAMILIES = {path.stem for path in Path(catalogue.__file__).parent.glob("[!_]*.py")}

_WITHOUT_LAYOUT = ("softmax", "reduction", "product", "backward")
"""Another layout may take another kernel, with another order of summation; of a backward the op's own layout asks."""

_FUNCTORS = """
abs acos angle asin atan bessel_j0_forward bessel_j1_forward bessel_y0_forward bessel_y1_forward bitwise_not
ceil cos cosh digamma entr erf erfc erfcx erfinv exp exp2 expm1 floor gelu gelu_tanh hardsigmoid hardswish i0
i0e i1 i1e isneginf isposinf lgamma log log10 log1p log2 log_sigmoid_forward logical_not mish
modified_bessel_i0_forward modified_bessel_i1_forward modified_bessel_k0_forward modified_bessel_k1_forward
neg reciprocal round rsqrt scaled_modified_bessel_k0_forward scaled_modified_bessel_k1_forward sigmoid silu
sin sinc sinh spherical_bessel_j0 sqr sqrt tan tanh trigamma trunc
""".split()
"""The unary functors of the kernels in PyTorch 2.15.0's metallib, copies aside."""


def test_names_are_unique() -> None:
    assert len(_OPS) == len(ops()) > 150


def test_every_unary_functor_of_the_library_is_covered() -> None:
    kernels = {glob for op in _OPS.values() for glob in op.kernels}
    assert [functor for functor in _FUNCTORS if f"{functor}_dense_*" not in kernels] == []


def test_importing_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, metal_ops.catalogue as c; c.ops();"
        "print([m for m in ('torch', 'hypothesis', 'scipy.special', 'mpmath', 'llvmlite') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", _OPS)
def test_the_function_exists_in_torch_and_keeps_to_the_naming_rule(name: str) -> None:
    torch = pytest.importorskip("torch")
    op = _OPS[name]
    function = reduce(getattr, op.function.split("."), torch)
    assert callable(function)
    public = op.function.removeprefix("nn.functional.").removeprefix("Tensor.").removeprefix("ops.aten.")
    assert op.name == public or op.name.startswith(f"{public}.")


@pytest.mark.parametrize("name", _OPS)
def test_blocks_are_complete(name: str) -> None:
    op = _OPS[name]
    assert op.family in _FAMILIES
    assert op.bound.name
    assert op.bound.source
    assert op.kernels
    assert "forward" in op.properties
    assert ("layout" in op.properties) == (op.family not in _WITHOUT_LAYOUT)
    assert ("backward" in op.properties) == (op.gradient is not None)
    assert ("exhaustive" in op.properties) == (op.sweep is not None)
    for dtype in op.dtypes:
        dtype_of(dtype)


def _simplest(op: Op, dtype: str, property: str) -> object:
    from hypothesis import Phase, find, settings

    quick = settings(database=None, phases=[Phase.generate, Phase.shrink], max_examples=50)
    return find(op.cases(dtype, property), lambda case: True, settings=quick)


@pytest.mark.parametrize("name", ["softmax", "exp", "polygamma", "clamp", "gelu.tanh", "pow.scalar", "nan_to_num"])
def test_cases_carry_op_dtype_and_parameters(name: str) -> None:
    from conformance.case import Case

    op = _OPS[name]
    for property in op.properties[::2]:
        case = _simplest(op, op.dtypes[-1], property)
        assert isinstance(case, Case)
        assert (case.op, case.dtype, case.property) == (name, op.dtypes[-1], property)
        assert set(op.default_params) <= set(case.params)
        assert Case.from_json(case.to_json()) == case


def test_sweeps_are_whole_for_small_types_and_stratified_for_large_ones() -> None:
    sweep = _OPS["exp"].sweep
    assert sweep is not None
    assert [case.tensors[0].shape for case in sweep("float16")] == [(65536,)]
    assert [case.tensors[0].shape for case in sweep("int8")] == [(256,)]
    assert sweep("bool") == []
    assert sum(case.tensors[0].shape[0] for case in sweep("float32")) > 100_000


@pytest.mark.parametrize("name", [name for name, op in _OPS.items() if op.sweep and "int8" in op.dtypes])
def test_integer_operands_are_judged_right(name: str) -> None:
    """A reference result of integers, stored as torch stores it, is accepted for every op that takes them."""
    torch = pytest.importorskip("torch")
    op = _OPS[name]
    assert op.sweep is not None
    case = op.sweep("int8")[0]
    x = np.arange(1, 60, dtype=np.int8)
    function = reduce(getattr, op.function.split("."), torch)
    got = function(torch.from_numpy(x), **case.params).numpy()
    given = Computation((x.astype(np.int64),), ("int8",), case.params, str(got.dtype), op.reference.function)
    judgement = judge(given, got, op.bound)
    if name == "sqrt":  # torch's CPU kernel may err by 0.75 ulp
        assert judgement.ulp.max() <= 1
    else:
        assert judgement.passed, judgement.message


def test_a_device_is_held_to_what_its_own_documentation_grants() -> None:
    pad = _OPS["pad.reflect"]
    assert pad.on("air") is pad
    assert pad.gradient is not None
    on_cuda = pad.on("cuda").gradient
    assert on_cuda is not None
    assert on_cuda.bound == pad.gradient.documented["cuda"] != pad.gradient.bound
    assert _OPS["rsqrt"].on("cuda").bound == _OPS["rsqrt"].documented["cuda"]
    assert _OPS["rsqrt"].on("cuda").gradient == _OPS["rsqrt"].gradient
