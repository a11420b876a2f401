"""Launching special functions: unary kernels under the names of PyTorch's functors."""

from __future__ import annotations

from conformance.dtypes import dtype
from metal_ops.launch._launcher import Launch, Launcher
from metal_ops.launch._unary import unary, unary_with_number
from metal_ops.launch._views import View
from metal_ops.launch.unary import plain


def _polygamma(launcher: Launcher, order: int, source: View, *, out: View) -> None:
    """Orders 0 and 1 have kernels of their own."""
    if order < 2:
        unary(launcher, "digamma" if order == 0 else "trigamma", out, source)
    else:
        unary_with_number(launcher, "polygamma", out, source, order, dtype("int32"))


_SAME_NAME = ("entr", "erfcx", "i0e", "i1", "i1e", "spherical_bessel_j0")
_BESSEL = (
    "bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 "
    "modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1"
).split()

LAUNCHES: dict[str, Launch] = {
    **{f"special_{name}.out": plain(name) for name in _SAME_NAME},
    **{f"special_{name}.out": plain(f"{name}_forward") for name in _BESSEL},
    "polygamma.out": _polygamma,
}
