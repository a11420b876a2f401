"""How a block of a catalogue becomes an op: defaults, cases and sweeps. Hypothesis is imported when cases are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isinf, isnan
from typing import TYPE_CHECKING, Any

from numpy import iinfo

from conformance.dtypes import dtype as dtype_of
from conformance.op import Bound, Gradient, Ladder, Op, Params, Reference
from metal_ops.catalogue._workloads import ROWS, alone, workloads

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from conformance.case import Case
    from conformance.strategies import Operand

FLOATS = ("float32", "float16", "bfloat16")
INTS = ("int64", "int32", "int16", "int8", "uint8")
BOOL = ("bool",)
COMPLEX = ("complex64",)
REAL = (*FLOATS, *INTS, *BOOL)
ANY = (*REAL, *COMPLEX)

UNSIGNED = ("uint16", "uint32", "uint64")

Domain = tuple[float, float] | None

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
    gradient: Gradient | None = None,
    also: Sequence[str] = (),
    documented: Mapping[str, Bound] | None = None,
) -> Op:
    """An op with one tensor, each element of the result depending on one element of the operand.

    Parameters
    ----------
    name, family, reference, bound, documented, dtypes
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
        ``swept(dtype)`` lists the parameters with which the exhaustive sweep is made; by default once, without any. The
        first of them, one for each of the functions in the kernels, are those of the property ``variants``.
    stratified
        Elements of the sweep of a type that is too wide to try whole.
    gradient
        Its backward; see :func:`composed` and :func:`one_kernel`.
    also
        Element types that only the property ``variants`` tries, beside those that come with ``dtypes``.
    """
    constant = dict(fixed or {})
    functors = (functor,) if isinstance(functor, str) else functor

    def cases(dtype: str, property: str) -> SearchStrategy[Case]:
        from hypothesis import strategies as st

        from conformance.strategies import elementwise_cases

        strategies: dict[str, SearchStrategy[Any]] = {key: st.just(value) for key, value in constant.items()}
        strategies |= params(dtype) if params else {}
        return elementwise_cases(name, dtype, property, params=strategies, domain=domain)

    def sweep(dtype: str) -> list[Case]:
        from conformance.case import exhaustive_case, stratified_cases

        described = dtype_of(dtype)
        if described.kind == "bool":
            return []
        variants = [{**constant, **given} for given in (swept(dtype) if swept else [{}])]
        if described.itemsize <= _SWEPT_WHOLE:
            return [exhaustive_case(name, dtype, variant) for variant in variants]
        return [case for variant in variants for case in stratified_cases(name, dtype, variant, count=stratified)]

    def climbed(dtype: str) -> Sequence[Params]:
        return swept(dtype)[: len(functors)] if swept else ({},)

    out = _with_out(function or name)
    return Op(
        name=name,
        family=family,
        function=function or name,
        dtypes=tuple(dtypes),
        cases=cases,
        reference=reference,
        bound=bound,
        properties=("forward", "exhaustive", "variants", "layout", *_provided(out), *_backward(gradient)),
        sweep=sweep,
        kernels=_kernels(functors),
        default_params=constant,
        gradient=gradient,
        out=out,
        ladder=Ladder(domains=(domain,), params=climbed, dtypes=_more(dtypes, also)),
        documented=documented or {},
    )


def binary(
    name: str,
    *,
    family: str,
    reference: Reference,
    bound: Bound,
    functor: str | tuple[str, ...],
    dtypes: Sequence[str] = FLOATS,
    others: Sequence[str] | None = None,
    function: str | None = None,
    number: str | None = "other",
    domains: tuple[Domain, Domain] = (None, None),
    divides: bool = False,
    whole: tuple[int, int] | None = None,
    avoid: Callable[[Case], bool] | None = None,
    fixed: Params | None = None,
    params: Callable[[str], Mapping[str, SearchStrategy[Any]]] | None = None,
    swept: Callable[[str], Sequence[Params]] | None = None,
    gradient: Gradient | None = None,
    also: Sequence[str] = (),
) -> Op:
    """An op with two operands that broadcast; for the parameters it shares see :func:`elementwise`.

    Parameters
    ----------
    others
        Element types that the second operand may have beside that of the first; by default those of ``dtypes``.
    number
        The keyword by which the second operand may be a Python number; None if it may not.
    domains
        The intervals in which the op is defined or interesting, one for each operand.
    divides
        Whether the second operand is a divisor, so that integers are not divided by zero.
    whole
        The least and the largest of the whole numbers that the second operand is made of; by default it has any.
    avoid
        Cases that are not drawn, because torch refuses them or they may end the process.
    swept
        ``swept(dtype)`` lists the parameters with which the property ``variants`` is checked; by default none.
    """
    allowed = tuple(dtypes if others is None else others)

    def operands(dtype: str) -> tuple[Operand, ...]:
        from conformance.strategies import Operand

        return Operand((dtype,), domains[0]), Operand((dtype, *allowed), domains[1], number, divides, whole)

    return _pointwise(
        name,
        operands,
        domains,
        family=family,
        reference=reference,
        bound=bound,
        functor=functor,
        dtypes=dtypes,
        function=function,
        mixed=others != (),
        more=_more(dtypes, also, bools=not divides),
        promotes=(0, 1, *([number] if number else [])),
        divisors=(1,) if divides else (),
        avoid=avoid,
        fixed=fixed,
        params=params,
        swept=swept,
        gradient=gradient,
    )


def ternary(
    name: str,
    *,
    family: str,
    reference: Reference,
    bound: Bound,
    functor: str,
    dtypes: Sequence[str] = FLOATS,
    others: Sequence[str] | None = None,
    function: str | None = None,
    domains: tuple[Domain, Domain, Domain] = (None, None, None),
    params: Callable[[str], Mapping[str, SearchStrategy[Any]]] | None = None,
    swept: Callable[[str], Sequence[Params]] | None = None,
    gradient: Gradient | None = None,
    also: Sequence[str] = (),
) -> Op:
    """An op with three operands that broadcast: ``others`` is of both the second and the third.

    All else is as in :func:`binary`.
    """
    allowed = tuple(dtypes if others is None else others)

    def operands(dtype: str) -> tuple[Operand, ...]:
        from conformance.strategies import Operand

        first, *rest = domains
        return Operand((dtype,), first), *(Operand((dtype, *allowed), domain) for domain in rest)

    return _pointwise(
        name,
        operands,
        domains,
        family=family,
        reference=reference,
        bound=bound,
        functor=functor,
        dtypes=dtypes,
        function=function,
        mixed=others != (),
        more=_more(dtypes, also),
        promotes=(0, 1, 2),
        params=params,
        swept=swept,
        gradient=gradient,
    )


def factor(keyword: str) -> Callable[[str], dict[str, SearchStrategy[Any]]]:
    """The parameter of this name as a factor: mostly 1, else a number of the operands' kind."""

    def params(dtype: str) -> dict[str, SearchStrategy[Any]]:
        from hypothesis import strategies as st

        from conformance.strategies import one_in

        numbers = [2, -1, 0, 3] if dtype_of(dtype).kind in ("int", "bool") else [2, -1, 0, 0.5, -1.25, 0.1]
        return {keyword: one_in(3, st.sampled_from(numbers), st.just(1))}

    return params


def fitting_numbers(dtype: str) -> SearchStrategy[Any]:
    """Numbers to combine with a tensor of ``dtype`` that lie in its range; others are an error on some devices."""
    from conformance.strategies import numbers

    described = dtype_of(dtype)

    def fits(number: float) -> bool:
        if described.kind == "bool":
            return True
        if described.kind == "int":
            limits = iinfo(described.numpy)
            return bool(limits.min <= number <= limits.max)
        return abs(number) <= described.max or isnan(number) or (isinf(number) and described.has_infinity)

    return numbers(dtype).filter(fits)


def _pointwise(
    name: str,
    operands: Callable[[str], tuple[Operand, ...]],
    domains: tuple[Domain, ...],
    *,
    family: str,
    reference: Reference,
    bound: Bound,
    functor: str | tuple[str, ...],
    dtypes: Sequence[str],
    function: str | None,
    mixed: bool,
    more: tuple[str, ...],
    promotes: tuple[int | str, ...],
    divisors: tuple[int, ...] = (),
    avoid: Callable[[Case], bool] | None = None,
    fixed: Params | None = None,
    params: Callable[[str], Mapping[str, SearchStrategy[Any]]] | None = None,
    swept: Callable[[str], Sequence[Params]] | None = None,
    gradient: Gradient | None = None,
) -> Op:
    """An op with ``operands(dtype)``; ``mixed`` and ``more`` are its ladder's types."""
    constant = dict(fixed or {})

    def cases(dtype: str, property: str) -> SearchStrategy[Case]:
        from hypothesis import strategies as st

        from conformance.strategies import elementwise_cases

        strategies: dict[str, SearchStrategy[Any]] = {key: st.just(value) for key, value in constant.items()}
        strategies |= params(dtype) if params else {}
        drawn = elementwise_cases(name, dtype, property, operands=operands(dtype), params=strategies)
        return drawn if avoid is None else drawn.filter(lambda case: not avoid(case))

    out = _with_out(function or name)
    climbed = swept or (lambda dtype: ({},))
    return Op(
        name=name,
        family=family,
        function=function or name,
        dtypes=tuple(dtypes),
        cases=cases,
        reference=reference,
        bound=bound,
        properties=("forward", "variants", "layout", *_provided(out), *_backward(gradient)),
        kernels=_kernels((functor,) if isinstance(functor, str) else functor),
        default_params=constant,
        gradient=gradient,
        out=out,
        ladder=Ladder(domains=domains, params=climbed, mixed=mixed, dtypes=more, divisors=divisors, avoid=avoid),
        promotes=promotes,
    )


def _backward(gradient: Gradient | None) -> tuple[str, ...]:
    return ("backward",) if gradient is not None else ()


def _provided(out: str | None) -> tuple[str, ...]:
    return ("out",) if out is not None else ()


_NO_OUT = ("rsub", "nn.functional.logsigmoid")
"""Functions without ``out=``, or with one that torch has no rules for."""


def _with_out(function: str) -> str | None:
    """The path of the function that takes ``out=``: of an activation it is the aten overload, methods have none."""
    if function in _NO_OUT:
        return None
    module, _, name = function.rpartition(".")
    if module == "nn.functional":
        return f"ops.aten.{name}.out"
    return function if module in ("", "special") else None


def _more(dtypes: Sequence[str], also: Sequence[str], *, bools: bool = True) -> tuple[str, ...]:
    """Element types beside ``dtypes`` of which kernels may exist: each kind comes with its rarer members.

    Without ``bools`` for ops that have no quotient by False.
    """
    found = [*also, *(("complex32",) if "complex64" in dtypes else ()), *(BOOL if bools and "uint8" in dtypes else ())]
    return tuple(name for name in dict.fromkeys(found) if name not in dtypes)


def row_reduction(
    name: str, *, family: str, reference: Reference, bound: Bound, kernels: Sequence[str], gradient: Gradient
) -> Op:
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
        properties=("forward", "backward"),
        kernels=tuple(kernels),
        gradient=gradient,
        workloads=workloads(name, alone(ROWS), {"dim": -1}),
    )


def _kernels(functors: tuple[str, ...]) -> tuple[str, ...]:
    layouts = ("dense", "strided", "inner_contiguous")
    return tuple(f"{functor}_{layout}_*" for functor in functors for layout in layouts)
