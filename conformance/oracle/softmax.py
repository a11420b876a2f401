"""The bound of softmax and log-softmax: an error analysis of a sum of exponentials, added up by many threads.

After Blanchard, Higham and Higham, "Accurately computing the log-sum-exp and softmax functions", IMA J. Numer. Anal. 41
(2021), with the height of the summation tree in place of the number of terms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from conformance.dtypes import dtype as dtype_of
from conformance.op import Acceptance, Computation
from conformance.oracle import msl
from conformance.oracle.operands import compute_type
from conformance.oracle.summation import HIGHER_ORDER, height
from conformance.oracle.units import Float64s, rounding_error, ulp

_ONE_PASS = 1024
"""Up to this length a row's one maximum is known when its terms are added; longer rows may be summed in chunks with
maxima of their own, whose sums are rescaled when they are joined."""


@dataclass(frozen=True)
class SoftmaxBound:
    """What a float32 computation of (log-)softmax along one dimension may err by, then one rounding to the result type.

    With e_j = exp(x_j - max), S = sum e_j, y = e / S, u = 2**-24 and k = 4 ulp for ``exp`` and ``log``:

    - the term e_j carries d_j = u |x_j - max| + 2 k u of relative error, and a subnormal one may be flushed;
    - S carries D = sum y_j d_j + h u, where h = ceil(n / 16) + 8 is the height of the summation tree, and for rows
      longer than 1024 log2(n) rescalings of (2 k + 1) u each;
    - softmax: y_i (d_i + D + 2 u); log-softmax: u |x_i - max| + D + k ulp(log S) + u |result|.

    ``dimension`` is the name of the parameter that gives the dimension.
    """

    logarithm: bool = False
    dimension: str = "dim"

    @property
    def name(self) -> str:
        """Say what kind of bound it is."""
        return "error analysis of " + ("log-softmax" if self.logarithm else "softmax")

    @property
    def source(self) -> str:
        """Give the paper."""
        return "Blanchard, Higham and Higham, IMA J. Numer. Anal. 41 (2021); exp and log: MSL table 8.1"

    def accept(self, computation: Computation) -> list[Acceptance]:
        """Accept what lies within the bound; NaN and infinities as the reference has them.

        Raises
        ------
        ValueError
            If the computation has not exactly one operand.
        """
        if len(computation.inputs) != 1:
            raise ValueError(f"the softmax bound judges ops with 1 operand; given: {len(computation.inputs)}")
        value = computation.reference(*computation.inputs, **computation.params)
        error = self._error(computation, value)
        if compute_type(computation.dtype) != computation.dtype:
            error = error + rounding_error(value, computation.dtype)
        return [Acceptance(value, error, "conforming")]

    def _error(self, computation: Computation, value: Float64s) -> Float64s:
        x = np.atleast_1d(computation.inputs[0])
        axis = int(computation.params[self.dimension])
        computed = dtype_of(compute_type(computation.dtype))
        u = 2.0**-computed.precision
        if x.size == 0:
            return np.zeros(value.shape)

        distance = np.abs(x - x.max(axis=axis, keepdims=True))
        exponentials = np.exp(-distance)
        total = exponentials.sum(axis=axis, keepdims=True)
        exp_limit, log_limit = msl.limit("exp"), msl.limit("log")
        of_term = u * np.where(np.isfinite(distance), distance, 0.0) + 2 * exp_limit * u
        length = x.shape[axis]
        of_total = (exponentials / total * of_term).sum(axis=axis, keepdims=True)
        of_total = of_total + u * _roundings(length, exp_limit) + length * computed.tiny
        if self.logarithm:
            error = u * distance + of_total + log_limit * ulp(np.log(total), computed.name) + u * np.abs(value)
        else:
            error = exponentials / total * (of_term + of_total + 2 * u) + computed.tiny
        return np.asarray(HIGHER_ORDER * error).reshape(value.shape)


def _roundings(length: int, exp_limit: float) -> float:
    """How many roundings a term of the sum passes through at most."""
    rescalings = np.log2(length) if length > _ONE_PASS else 0.0
    return float(height(length) + rescalings * (2 * exp_limit + 1))
