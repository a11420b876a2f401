"""softmax and log_softmax. To add an op, add one block."""

from __future__ import annotations

from conformance.op import Op, Reference
from conformance.oracle import SoftmaxBound
from metal_ops.catalogue._blocks import row_reduction
from metal_ops.catalogue._gradients import one_kernel
from references import softmax as true
from references.gradients import softmax as derivative

FAMILY = "softmax"

OPS: tuple[Op, ...] = (
    row_reduction(
        "softmax",
        family=FAMILY,
        reference=Reference(true.softmax, "numpy"),
        bound=SoftmaxBound(),
        kernels=("softmax_*_u32", "softmax_*_u64"),
        gradient=one_kernel(derivative.softmax),
    ),
    row_reduction(
        "log_softmax",
        family=FAMILY,
        reference=Reference(true.log_softmax, "numpy"),
        bound=SoftmaxBound(logarithm=True),
        kernels=("log_softmax_*", "softmax_partial_*", "softmax_strided_partial_*"),
        gradient=one_kernel(derivative.log_softmax),
    ),
)
