"""Launching special functions: unary kernels under the names of PyTorch's functors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.devices.base import Unsupported
from metal_ops.launch._launcher import Launcher
from metal_ops.launch._views import View
from metal_ops.launch.unary import Launch, execute_with_parameter, plain


def _polygamma(launcher: Launcher, source: View, params: Mapping[str, Any]) -> View:
    """Orders 0 and 1 have kernels of their own."""
    order = params["n"]
    if order < 2:
        return plain("digamma" if order == 0 else "trigamma", "float")(launcher, source, params)
    if source.dtype.kind != "float":
        raise Unsupported(f"polygamma of order {order} on {source.dtype.name}: its launch is not implemented")
    return execute_with_parameter(launcher, "polygamma", source, "int", order)


_SAME_NAME = ("digamma", "erf", "erfc", "erfinv", "i0", "lgamma", "sinc")
_SPECIAL = ("entr", "erfcx", "i0e", "i1", "i1e", "spherical_bessel_j0")
_BESSEL = (
    "bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 "
    "modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1"
).split()

LAUNCHES: dict[str, Launch] = {
    **{name: plain(name, "float") for name in _SAME_NAME},
    **{f"special.{name}": plain(name, "float") for name in _SPECIAL},
    **{f"special.{name}": plain(f"{name}_forward", "float") for name in _BESSEL},
    "polygamma": _polygamma,
}
