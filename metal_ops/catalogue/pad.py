"""Padding: constant, reflected, replicated and circular. To add an op, add one block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.op import Gradient, Op, Reference
from conformance.oracle import Exact, Rules
from metal_ops.catalogue._blocks import ANY, FLOATS, UNSIGNED
from metal_ops.catalogue._gradients import added, copied, gathered
from metal_ops.catalogue._workloads import IMAGES, alone, workloads
from references import pad as true
from references.gradients import pad as derivative

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case
    from conformance.strategies.pads import Mode

_COPIED = (*ANY, *UNSIGNED, "float8_e4m3fn", "complex32")
_REFLECTED = (*FLOATS, "int64", "int32", "int16", "int8", "uint8", "bool", "complex64")


def _pad(mode: Mode, kernels: tuple[str, ...], dtypes: tuple[str, ...], gradient: Gradient) -> Op:
    name = f"pad.{mode}"

    def cases(dtype: str, property: str) -> SearchStrategy[Case]:
        from conformance.strategies import pad_cases

        return pad_cases(name, dtype, property, mode=mode)

    return Op(
        name=name,
        family="pad",
        function="nn.functional.pad",
        dtypes=dtypes,
        cases=cases,
        reference=Reference(true.pad, "numpy"),
        bound=Exact("a pad copies elements, and fills the rest with one value", rules=Rules(signed_zero=True)),
        properties=("forward", "layout", "backward"),
        kernels=kernels,
        gradient=gradient,
        workloads=workloads(name, alone(IMAGES), {"pad": [1, 1, 1, 1], "mode": mode}),
    )


OPS: tuple[Op, ...] = (
    _pad("constant", ("constant_pad_nd_*",), _COPIED, copied(derivative.pad)),
    _pad("reflect", ("reflection_pad*",), _REFLECTED, gathered(derivative.pad)),
    _pad("replicate", ("replication_pad*",), _REFLECTED, gathered(derivative.pad)),
    _pad("circular", ("copy_*", "contiguous_byte_copy"), _REFLECTED, added(derivative.pad)),
)
