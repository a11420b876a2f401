"""Kernels of elementwise families that no call of PyTorch launches: the library has them, the host never asks.

Each group is told by a pattern of the names, with the rule of PyTorch's own that keeps calls from it: of the host
(aten/src/ATen/native/mps/OperationUtils.mm and operations/), of type promotion, or of the op's own checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_INTEGER = "(bool|char|int|long|short|uchar)"
_NOT_FLOAT = "(bool|char|int|long|short|uchar|float2|half2)"

_KEEP_TYPE = (
    "(abs|bitwise_not|ceil|floor|gelu|gelu_tanh|hardsigmoid|hardswish|isneginf|isposinf|log_sigmoid_forward|mish|neg"
    "|round|silu|trunc)"
)
"""Functions whose ``out=`` must have the element type of the result."""

_ALONE = (
    "(abs|acos|asin|atan|bitwise_not|cos|cosh|exp|exp2|expm1|log|log10|log1p|log2|neg|reciprocal|round|rsqrt|sigmoid|silu"
    "|sin|sinc|sinh|sqr|sqrt|tan|tanh)"
)
"""Functions of one operand without parameters whose result may be complex or an integer."""

_PREDICATE = "(eq|ne|lt|le|gt|ge|logical_and|logical_or|logical_xor)"

UNREACHABLE: dict[str, str] = {
    r"copy_(conj_neg|conj)_\w*_(bfloat|bool|char|float|half|int|long|short|uchar|float8_e4m3fn|u\w+)": "only complex "
    "tensors are lazily conjugated",
    r"copy_(conj_)?neg_\w*_(float2|half2|bfloat|bool|char|int|long|short|uchar|float8_e4m3fn|u\w+)": "only the "
    "imaginary part of a conjugated tensor is lazily negated",
    r"copy_identity_(dense|dense_scalar|inner_contiguous)_(?!castout)\w+": "bytes are copied where no type changes",
    r".+_dense_castout_ilp_\w+": "the host opts in for tests of numbers, and for copies",
    r".+_dense_ilp_\w+": "the host opts in for nan_to_num",
    r"(clamp_scalar|elu|nan_to_num|softplus)_inner_contiguous_\w+": "a struct takes the dense or the strided kernel",
    r"(elu|softplus)_backward_(dense_(broadcast|scalar)|\w+_cast_)\w+": "so it does with two operands",
    r"clamp_(min_|max_)?scalar_\w+_bool_bool_\w+": "torch does not clamp bools",
    r"(div_floor|lcm|pow|sub)_\w+_bool_bool": "torch refuses bools",
    rf"{_KEEP_TYPE}_(dense|strided|inner_contiguous)_castout_\w+": "torch refuses a result of another type",
    rf"(?!{_PREDICATE}_).+_dense_ilp4_{_NOT_FLOAT}_\w+": "the host opts in for floats, predicates, and by environment",
    rf"{_ALONE}_dense_{_NOT_FLOAT}_\w+": "the host opts in for floats, predicates, and by environment",
    rf".+_cast_float_{_INTEGER}": "a kernel that casts is asked for by the result's type alone",
    r".+_cast_bool_bool(_bool)?": "operands of different types never compute in bool",
    r".+_dense(_broadcast|_broadcast_rhs)?_cast_bool_(float8_e4m3fn|uint|ulong|ushort)": "they promote with numbers",
    rf"logaddexp2_.+_float_{_INTEGER}": "the host refuses integers",
    r"logaddexp_.+_float_bool": "torch refuses bools",
    r"lerp_alpha_\w+_cast_\w+": "torch refuses ends of different types",
    r"lerp_alpha_\w+_half2_half2_half2": "the host asks for a weight of type float2, for which there is no kernel",
    r"(make_complex|polar)_\w+_cast_\w+": "torch refuses parts of different types",
    r"glu_(\w+_cast|dense_scalar|dense_broadcast)_\w+": "both halves of a tensor have one shape and one type",
}
"""Pattern of the names (of all of a name), and why."""

EXCEPTIONS = (
    r"(logical_not|copy_identity)_dense_castout_ilp_\w+|nan_to_num_dense_ilp_\w+"
    r"|copy_conj_dense_castout_ilp_(float2|half2)|copy_neg_dense_castout_ilp_(float|half)"
)
"""Kernels for which the host does opt in."""

_PATTERNS = [(re.compile(pattern), reason) for pattern, reason in UNREACHABLE.items()]
_EXCEPTIONS = re.compile(EXCEPTIONS)


def why_unreachable(name: str) -> str | None:
    """The rule that keeps every call from an elementwise kernel; None for one that calls reach."""
    if _EXCEPTIONS.fullmatch(name):
        return None
    return next((reason for pattern, reason in _PATTERNS if pattern.fullmatch(name)), None)


def groups(names: Iterable[str]) -> dict[str, list[str]]:
    """The kernels of ``names`` that no call reaches, by the reason, in the order of the rules."""
    found: dict[str, list[str]] = {reason: [] for reason in UNREACHABLE.values()}
    for name in names:
        if (reason := why_unreachable(name)) is not None:
            found[reason].append(name)
    return {reason: kernels for reason, kernels in found.items() if kernels}
