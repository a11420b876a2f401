"""How a block of a catalogue says what its backward is, and which bound it is held to."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from typing import Literal

from conformance.op import Gradient, VectorJacobianProduct
from conformance.oracle import ByKind, Exact, InRange, Normwise, Rules, RunningError, SumBound

TIES: Literal["one", "split"] = "one" if tuple(map(int, version("torch").split(".")[:2])) < (2, 14) else "split"
"""Which operand has the gradient at a tie, or at a limit: a choice of the host torch, which 2.14 changed."""

_POLES = Rules(two_sided_poles=True, unruled=(float("inf"), float("-inf")))

_DERIVATIVES = "PyTorch's derivatives.yaml"

_COMPLEX = "no contract for complex functions; 16 u is the loosest limit MSL table 8.1 gives a real one (pow)"

_COMPOSED = InRange(Normwise(16.0, _COMPLEX, composed=True))


def composed(vjp: VectorJacobianProduct, rules: Rules | None = None) -> Gradient:
    """A backward that torch composes of ops: each step is rounded to the tensors' type."""
    real = RunningError(_DERIVATIVES, composed=True, rules=rules or Rules())
    return Gradient(vjp, "numpy", ByKind(real, _COMPOSED))


_CUDA_RSQRT = f"{_DERIVATIVES}; CUDA C++ Programming Guide, standard functions: rsqrtf, 2 ulp"


def by_root(vjp: VectorJacobianProduct) -> Gradient:
    """A composed backward with a reciprocal square root as a factor."""
    documented = ByKind(RunningError(_CUDA_RSQRT, composed=True, factor=2.0**-22), _COMPOSED)
    return replace(composed(vjp), documented={"cuda": documented})


_ATOMIC = (
    "PyTorch lists it as nondeterministic on CUDA (torch.use_deterministic_algorithms): atomic additions in any order, "
    "each rounded to the tensors' type (CUDA C++ Programming Guide, atomicAdd)"
)


def gathered(vjp: VectorJacobianProduct) -> Gradient:
    """A backward kernel that adds up, for each element of an operand, what came of it, mostly in one thread."""
    atomic = SumBound(_ATOMIC, composed=True, in_turn=True)
    return Gradient(vjp, "numpy", SumBound(in_turn=True), {"cuda": atomic})


def added(vjp: VectorJacobianProduct) -> Gradient:
    """A backward that torch composes of additions, in any order: each is rounded to the tensors' type."""
    return Gradient(vjp, "numpy", SumBound(_DERIVATIVES, composed=True))


def one_kernel(vjp: VectorJacobianProduct, rules: Rules | None = None) -> Gradient:
    """A backward that is one kernel, computed in float32 and rounded once."""
    real = RunningError(_DERIVATIVES, rules=rules or Rules())
    return Gradient(vjp, "numpy", ByKind(real, InRange(Normwise(16.0, _COMPLEX))))


def conditioned(vjp: VectorJacobianProduct) -> Gradient:
    """A composed backward by a function with poles, which has no contract: its step stands under the house rule."""
    return Gradient(vjp, "scipy", RunningError(_DERIVATIVES, composed=True, rules=_POLES))


def copied(vjp: VectorJacobianProduct) -> Gradient:
    """A backward that copies the incoming gradient, or a part of it."""
    return Gradient(vjp, "numpy", Exact("a copy of the incoming gradient, converted"))


def moved(vjp: VectorJacobianProduct) -> Gradient:
    """A backward that moves the incoming gradient, and adds what meets in one place."""
    return Gradient(vjp, "numpy", SumBound())
