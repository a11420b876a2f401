"""How a block of a catalogue becomes an op: defaults, cases and sweeps. Hypothesis is imported when cases are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from conformance.dtypes import dtype as dtype_of
from conformance.op import Bound, Op, Params, Reference

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case

FLOATS = ("float32", "float16", "bfloat16")
INTS = ("int64", "int32", "int16", "int8", "uint8")
BOOL = ("bool",)
COMPLEX = ("complex64",)
REAL = (*FLOATS, *INTS, *BOOL)
ANY = (*REAL, *COMPLEX)

_SWEPT_WHOLE = 2
"""Bytes up to which every bit pattern of a type is tried."""


def elementwise(
    name: str,
    *,
    family: str,
    reference: Reference,
    bound: Bound,
    functor: str | tuple[str, ...],
    dtypes: Sequence[str] = FLOATS,
    function: str | None = None,
    domain: tuple[float, float] | None = None,
    fixed: Params | None = None,
    params: Callable[[str], Mapping[str, SearchStrategy[Any]]] | None = None,
    swept: Callable[[str], Sequence[Params]] | None = None,
    stratified: int = 1 << 17,
) -> Op:
    """An op with one tensor, each element of the result depending on one element of the operand.

    Parameters
    ----------
    name, family, reference, bound, dtypes
        As :class:`~conformance.op.Op` has them.
    functor
        What PyTorch calls the function (or functions) in its kernels: they are named ``<functor>_dense_...``,
        ``_strided_...`` and ``_inner_contiguous_...``.
    function
        The path below ``torch``; by default the name.
    domain
        The interval in which the op is defined or interesting; cases prefer it and leave it as well.
    fixed
        Parameters that are part of the op (a variant), passed in every case.
    params
        ``params(dtype)`` gives a strategy for each parameter that is drawn.
    swept
        ``swept(dtype)`` lists the parameters with which the exhaustive sweep is made; by default once, without any.
    stratified
        Elements of the sweep of a type that is too wide to try whole.
    """
    constant = dict(fixed or {})

    def cases(dtype: str, property: str) -> SearchStrategy[Case]:
        from hypothesis import strategies as st

        from conformance.strategies import unary_cases

        strategies: dict[str, SearchStrategy[Any]] = {key: st.just(value) for key, value in constant.items()}
        strategies |= params(dtype) if params else {}
        return unary_cases(name, dtype, property, params=strategies, domain=domain)

    def sweep(dtype: str) -> list[Case]:
        from conformance.case import exhaustive_case, stratified_cases

        described = dtype_of(dtype)
        if described.kind == "bool":
            return []
        variants = [{**constant, **given} for given in (swept(dtype) if swept else [{}])]
        if described.itemsize <= _SWEPT_WHOLE:
            return [exhaustive_case(name, dtype, variant) for variant in variants]
        return [case for variant in variants for case in stratified_cases(name, dtype, variant, count=stratified)]

    return Op(
        name=name,
        family=family,
        function=function or name,
        dtypes=tuple(dtypes),
        cases=cases,
        reference=reference,
        bound=bound,
        properties=("forward", "exhaustive", "layout"),
        sweep=sweep,
        kernels=_kernels((functor,) if isinstance(functor, str) else functor),
        default_params=constant,
    )


def row_reduction(name: str, *, family: str, reference: Reference, bound: Bound, kernels: Sequence[str]) -> Op:
    """An op that works along one dimension, given by the parameter ``dim``, and keeps the shape.

    Another layout may take another kernel with another order of summation, so the bits need not be equal: there is no
    property ``layout``. Its cases draw layouts all the same.
    """

    def cases(dtype: str, property: str) -> SearchStrategy[Case]:
        from conformance.strategies import reduction_cases

        return reduction_cases(name, dtype, property)

    return Op(
        name=name,
        family=family,
        function=name,
        dtypes=FLOATS,
        cases=cases,
        reference=reference,
        bound=bound,
        properties=("forward",),
        kernels=tuple(kernels),
    )


def _kernels(functors: tuple[str, ...]) -> tuple[str, ...]:
    layouts = ("dense", "strided", "inner_contiguous")
    return tuple(f"{functor}_{layout}_*" for functor in functors for layout in layouts)
