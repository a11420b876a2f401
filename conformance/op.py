"""What an op is to the suite: one block in a catalogue, from which everything else is derived."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from hypothesis.strategies import SearchStrategy
    from numpy.typing import NDArray

    from conformance.case import Case
    from conformance.layout import Layout

Params = Mapping[str, Any]
ReferenceKind = Literal["scipy", "numpy", "mpmath", "exact", "float64"]


ReferenceFunction: TypeAlias = "Callable[..., NDArray[Any]]"
"""The true value: takes the inputs upcast exactly (float64, complex128, int64, uint64 or bool) and the parameters."""


@dataclass(frozen=True)
class Reference:
    """A reference function and the library that makes it independent of the kernel under test."""

    function: ReferenceFunction
    kind: ReferenceKind


@dataclass(frozen=True)
class Computation:
    """One call as the oracle sees it: operands upcast exactly, parameters, the output's element type and the reference.

    ``inputs`` keep their logical shape; ``dtype`` is the name of the *output* element type and ``input_dtypes``
    those of the operands. ``common`` is the type that torch promotes the operands to before it computes, None where it
    promotes nothing; ``scalars`` names the parameters that are operands (Python numbers). For a gradient the first
    input is the incoming gradient, the second the saved result of the forward as the device rounded it, then the
    operands follow.
    """

    inputs: tuple[NDArray[Any], ...]
    input_dtypes: tuple[str, ...]
    params: Params
    dtype: str
    reference: ReferenceFunction
    common: str | None = None
    scalars: tuple[str, ...] = ()


@dataclass(frozen=True)
class Acceptance:
    """One way for an element to be right: any value within ``tolerance`` (absolute, per element) of ``value``.

    A NaN in ``value`` accepts any NaN; an infinity accepts only itself unless the tolerance is infinite. ``where``
    (bool, broadcastable) limits an alternative to the elements it exists for. ``reason`` says which rule grants it
    ("conforming", "operand flushed", "result flushed"...). ``signed_zero`` makes the sign of a zero ``value`` count.
    ``by_part`` judges the parts of a complex value each, where they are computed apart or not at all.
    """

    value: NDArray[Any]
    tolerance: NDArray[np.float64]
    reason: str
    where: NDArray[np.bool_] | None = None
    signed_zero: bool = False
    by_part: bool = False


class Bound(Protocol):
    """The error a right implementation may have. A bound is a function with a source, never a bare constant.

    ``name`` is short ("MSL 8.1: 4 ulp"), ``source`` says where it is from (specification section, paper, reason).
    ``accept`` returns the alternatives; the first is the conforming result, whose tolerance is the unit in which
    errors are reported. An element passes if any alternative accepts it.
    """

    @property
    def name(self) -> str:
        """What a report prints: "MSL 8.1: 4 ulp"."""
        ...

    @property
    def source(self) -> str:
        """Where the bound is from: a specification's section, a paper, a reason."""
        ...

    def accept(self, computation: Computation) -> list[Acceptance]:
        """List the ways to be right, the conforming result first."""
        ...


VectorJacobianProduct: TypeAlias = "Callable[..., tuple[NDArray[Any] | None, ...]]"
"""``vjp(gradient, result, *inputs, **params)`` gives the gradient of each input, in its shape; None if it has none.

``result`` is the forward's result as the device rounded and saved it, for the formulas that use it.
"""


@dataclass(frozen=True)
class Gradient:
    """The backward of an op: its vector-Jacobian product, the library that makes it independent, and the bound.

    ``documented`` has bounds in place of ``bound`` by the name of the device whose own documentation grants them.
    ``layouts(dtype, shape)`` is a strategy of the layouts that an incoming gradient may have; None if any.
    """

    vjp: VectorJacobianProduct
    kind: ReferenceKind
    bound: Bound
    documented: Mapping[str, Bound] = field(default_factory=dict)
    layouts: Callable[[str, tuple[int, ...]], SearchStrategy[Layout]] | None = None


def _no_params(dtype: str) -> Sequence[Params]:
    return ({},)


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """What the cases that try every kernel variant of an elementwise op need to know; they are the engine's.

    Attributes
    ----------
    domains
        For each operand the interval in which the op is defined, None if it has no ends.
    params
        ``params(dtype)`` lists the parameters with which the ladder is climbed, once each.
    mixed
        Whether the operands' element types may differ.
    dtypes
        Element types beside those of the op with which it is climbed.
    divisors
        Positions of operands by which integers are divided: of them bools are True.
    avoid
        Cases that are left out, because torch refuses them.
    """

    domains: tuple[tuple[float, float] | None, ...] = (None,)
    params: Callable[[str], Sequence[Params]] = _no_params
    mixed: bool = True
    dtypes: tuple[str, ...] = ()
    divisors: tuple[int, ...] = ()
    avoid: Callable[[Case], bool] | None = None


@dataclass(frozen=True, kw_only=True)
class Op:
    """An operator under test.

    Attributes
    ----------
    name
        The public function without ``torch.`` or ``torch.nn.functional.``; variants after a dot.
    family
        The catalogue file it stands in; what ``--family`` selects.
    function
        The dotted path below ``torch`` that a torch device calls with the tensors, then the parameters by keyword.
    dtypes
        Element types of the first operand that the op is tested with.
    cases
        ``cases(dtype, property)`` is a Hypothesis strategy of cases. Imports Hypothesis only when called.
    sweep
        ``sweep(dtype)`` lists the exhaustive or stratified cases of the property ``exhaustive``; None if it has none.
    reference, bound
        What is true, and how far from it a right implementation may be.
    documented
        Bounds in place of ``bound`` by the name of the device whose own documentation grants them.
    properties
        The properties checked: ``forward``, ``exhaustive``, ``variants``, ``layout``, ``out``, ``backward``.
    kernels
        Globs of the Metal kernels that implement it; for readers and for coverage, never for dispatch.
    gradient
        What is true of its backward, and how far from it a right implementation may be; None if it has no backward.
    listed
        Whether the function takes its tensors as one list (``cat``).
    out
        The dotted path below ``torch`` of the function that also takes ``out=``, a tensor for its one result; None if
        there is none. The property ``out`` needs it.
    workloads
        ``workloads(dtype)`` lists the cases with which time and memory are measured, small to large; None for ops with
        a ladder, which have those of the engine, and for ops that are not measured.
    ladder
        How the cases of the property ``variants`` are made, for elementwise ops; None if it has none.
    promotes
        What takes part in type promotion: positions of tensors and names of scalar parameters. None: all tensors.
    inert
        Keywords of tensors that torch does not differentiate the op by.
    """

    name: str
    family: str
    function: str
    dtypes: tuple[str, ...]
    cases: Callable[[str, str], SearchStrategy[Case]]
    reference: Reference
    bound: Bound
    properties: tuple[str, ...] = ("forward",)
    sweep: Callable[[str], list[Case]] | None = None
    kernels: tuple[str, ...] = ()
    default_params: Params = field(default_factory=dict)
    gradient: Gradient | None = None
    listed: bool = False
    promotes: tuple[int | str, ...] | None = None
    out: str | None = None
    workloads: Callable[[str], list[Case]] | None = None
    ladder: Ladder | None = None
    documented: Mapping[str, Bound] = field(default_factory=dict)
    inert: tuple[str, ...] = ()

    def on(self, device: str) -> Op:
        """The op as a device is held to it: its own documentation's bounds count there."""
        op, gradient = self, self.gradient
        if device in self.documented:
            op = replace(op, bound=self.documented[device], documented={})
        if gradient is not None and device in gradient.documented:
            op = replace(op, gradient=replace(gradient, bound=gradient.documented[device], documented={}))
        return op
