"""Integers, predicates of vectors, and what a lane does alone with the matrices of its simdgroup."""

from __future__ import annotations

import re

from metal_ops.air.lowering import matrix
from metal_ops.air.lowering.intrinsics.table import Definitions, row
from metal_ops.air.lowering.text import Declaration


@row(r"air\.(min|max)\.([su])\.(i\d+)")
def _integer_extreme(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_ = declaration.result
    name = definitions.extern(type_, f"llvm.{match[2]}{match[1]}.{match[3]}", type_, type_)
    return [f"%r = call {type_} @{name}({type_} %a, {type_} %b)", f"ret {type_} %r"]


@row(r"air\.clamp\.([su])\.(i\d+)")
def _integer_clamp(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_ = declaration.result
    high = definitions.extern(type_, f"llvm.{match[1]}max.{match[2]}", type_, type_)
    low = definitions.extern(type_, f"llvm.{match[1]}min.{match[2]}", type_, type_)
    return [
        f"%m = call {type_} @{high}({type_} %a, {type_} %b)",
        f"%r = call {type_} @{low}({type_} %m, {type_} %c)",
        f"ret {type_} %r",
    ]


@row(r"air\.abs\.([su])\.(i\d+)")
def _integer_abs(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    type_ = declaration.result
    if match[1] == "u":
        return [f"ret {type_} %a"]
    name = definitions.extern(type_, f"llvm.abs.{match[2]}", type_, "i1")
    return [f"%r = call {type_} @{name}({type_} %a, i1 false)", f"ret {type_} %r"]


@row(r"air\.(clz|ctz|popcount)\.(i\d+)")
def _bit_count(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    """The count of zeros of 0 is the width (MSL 6.3), whatever the flag says."""
    type_ = declaration.result
    operation = {"clz": "ctlz", "ctz": "cttz", "popcount": "ctpop"}[match[1]]
    flags = () if operation == "ctpop" else ("i1",)
    name = definitions.extern(type_, f"llvm.{operation}.{match[2]}", type_, *flags)
    extra = ", i1 false" if flags else ""
    return [f"%r = call {type_} @{name}({type_} %a{extra})", f"ret {type_} %r"]


@row(r"air\.(all|any)\.v(\d)i1")
def _all_any(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    operation, count = ("and" if match[1] == "all" else "or"), int(match[2])
    vector = f"<{count} x i1>"
    name = definitions.extern("i1", f"llvm.vector.reduce.{operation}.v{count}i1", vector)
    return [f"%r = call i1 @{name}({vector} %a)", "ret i1 %r"]


@row(r"air\.get_simdgroup_size\.(i\d+)")
def _simdgroup_size(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    return [f"ret {declaration.result} 32"]


@row(r"air\.simdgroup_matrix_8x8_(load|store|init_filled|init_diag)\..*")
def _matrix(declaration: Declaration, match: re.Match[str], definitions: Definitions) -> list[str]:
    if match[1] == "load":
        return matrix.load(declaration)
    if match[1] == "store":
        return matrix.store(declaration)
    return matrix.filled(declaration, diagonal=match[1] == "init_diag")
