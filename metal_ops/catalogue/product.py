"""Matrix products, in groups and scaled as well. To add an op, add one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.op import Gradient, Op, Reference, ReferenceFunction, VectorJacobianProduct
from conformance.oracle import MultilinearBound
from metal_ops.catalogue._blocks import COMPLEX, FLOATS, INTS
from metal_ops.catalogue._workloads import workloads
from references import product as true
from references.gradients import product as derivative

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case
    from conformance.layout import Layout
    from conformance.strategies.contraction import Kind

FAMILY = "product"

_SCALARS = ("alpha", "beta")
"""The factors of a product and of an addend. BLAS reads nothing of a product with an alpha of 0."""

_LINES = (((16, 128), (128, 128)), ((64, 512), (512, 512)), ((1, 2048), (2048, 2048)))
"""One token by a weight, a few, and a square."""

_LIBRARY = ("matmul_*", "addmm_*", "naive_*bmm_*", "gemv_*")


def _product(
    name: str,
    kind: Kind,
    *,
    reference: ReferenceFunction,
    vjp: VectorJacobianProduct,
    addend: bool = False,
    shapes: Sequence[tuple[tuple[int, ...], ...]] = (),
) -> Op:
    """A product of two operands, with or without an addend; its gradients are products that torch calls one by one."""

    def cases(dtype: str, property: str) -> SearchStrategy[Case]:
        from conformance.strategies import contraction_cases

        return contraction_cases(name, dtype, property, kind=kind, addend=addend)

    scaled = _SCALARS if addend else ()
    return Op(
        name=name,
        family=FAMILY,
        function=name,
        dtypes=(*FLOATS, *INTS, *COMPLEX),
        cases=cases,
        reference=Reference(reference, "numpy"),
        bound=MultilinearBound(scaled_by=scaled, skipping=scaled[:1]),
        properties=("forward", "out", "backward"),
        kernels=_LIBRARY,
        gradient=_composed(vjp, scaled),
        out=name,
        workloads=workloads(name, shapes) if shapes else None,
    )


def _composed(vjp: VectorJacobianProduct, scaled: tuple[str, ...] = ()) -> Gradient:
    """Products of their own, which torch may have to scale, or to sum where an operand was broadcast: a step each."""
    return Gradient(vjp, "numpy", MultilinearBound(scaled_by=scaled, stored_steps=1, skipping=scaled[:1]))


def _layer(name: str, *, bias: bool) -> Op:
    """torch.nn.functional.linear; with a bias torch may add it to a product that it has rounded."""

    def cases(dtype: str, property: str) -> SearchStrategy[Case]:
        from conformance.strategies import contraction_cases

        return contraction_cases(name, dtype, property, kind="layer", bias=bias)

    return Op(
        name=name,
        family=FAMILY,
        function="nn.functional.linear",
        dtypes=(*FLOATS, *COMPLEX),
        cases=cases,
        reference=Reference(true.linear, "numpy"),
        bound=MultilinearBound(stored_steps=1 if bias else 0),
        properties=("forward", "backward"),
        kernels=_LIBRARY,
        gradient=_composed(derivative.linear),
        workloads=workloads(name, [(*pair, pair[1][:1]) if bias else pair for pair in _LINES]),
    )


def _aligned(dtype: str, shape: tuple[int, ...]) -> SearchStrategy[Layout]:
    from conformance.strategies import aligned_layouts

    return aligned_layouts(dtype, shape)


def _grouped_cases(dtype: str, property: str) -> SearchStrategy[Case]:
    from conformance.strategies import group_cases

    return group_cases("grouped_mm", dtype, property)


def _scaled_cases(dtype: str, property: str) -> SearchStrategy[Case]:
    from conformance.strategies import scaled_cases

    return scaled_cases("scaled_mm", dtype, property)


OPS: tuple[Op, ...] = (
    _product("mm", "matrices", reference=true.mm, vjp=derivative.mm, shapes=_LINES),
    _product(
        "mv", "vector", reference=true.mm, vjp=derivative.mm, shapes=(((128, 128), (128,)), ((2048, 2048), (2048,)))
    ),
    _product("bmm", "batches", reference=true.mm, vjp=derivative.mm, shapes=(((4, 64, 64),) * 2, ((8, 128, 128),) * 2)),
    _product("dot", "vectors", reference=true.mm, vjp=derivative.mm, shapes=(((1 << 16,), (1 << 16,)),)),
    _product("matmul", "any", reference=true.mm, vjp=derivative.mm),
    _product("addmm", "matrices", reference=true.addmm, vjp=derivative.addmm, addend=True),
    _product("addmv", "vector", reference=true.addmm, vjp=derivative.addmm, addend=True),
    _product("baddbmm", "batches", reference=true.addmm, vjp=derivative.addmm, addend=True),
    _layer("linear", bias=False),
    _layer("linear.bias", bias=True),
    Op(
        name="grouped_mm",
        family=FAMILY,
        function="nn.functional.grouped_mm",
        dtypes=FLOATS,
        cases=_grouped_cases,
        reference=Reference(true.grouped_mm, "numpy"),
        bound=MultilinearBound(),
        properties=("forward", "backward"),
        kernels=("grouped_mm_*",),
        gradient=replace(_composed(derivative.grouped_mm), layouts=_aligned),
        promotes=(),
    ),
    Op(
        name="scaled_mm",
        family=FAMILY,
        function="nn.functional.scaled_mm",
        dtypes=("float8_e4m3fn",),
        cases=_scaled_cases,
        reference=Reference(true.scaled_mm, "numpy"),
        bound=MultilinearBound(scaled_by=("scale_a", "scale_b")),
        properties=("forward",),
        kernels=("scaled_mm_*",),
        promotes=(),
    ),
)
