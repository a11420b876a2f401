"""What each AIR intrinsic of a single thread means, as a table from name patterns to LLVM IR.

A row is a function that writes the definition of one declared intrinsic. Vector forms of elementwise intrinsics are
written once, generically, on top of the scalar form. Sources: Metal Shading Language specification 4, sections 6.3
(integer), 6.5 (math) and 8; what the specification leaves open is said where it is decided.
"""

from __future__ import annotations

from metal_ops.air.lowering.intrinsics import atomics, conversions, floats, integers
from metal_ops.air.lowering.intrinsics.table import TABLE, Definitions

__all__ = ["TABLE", "Definitions", "atomics", "conversions", "floats", "integers"]
