from __future__ import annotations

import numpy as np
import pytest

from metal_ops.air.archive import ArchiveError
from metal_ops.air.kernel import Argument, Field, read_signature
from tests.metal_ops.air.modules import module

STRUCT = """
!air.kernel = !{!0}
!0 = !{ptr @"k<int>", !1, !2, !3, !9}
!1 = !{}
!2 = !{!4, !5, !8}
!3 = !{!"air.max_work_group_size", i32 256}
!4 = !{i32 0, !"air.buffer", !"air.location_index", i32 2, i32 1, !"air.read", !"air.address_space", i32 2, !"air.struct_type_info", !6, !"air.arg_type_size", i32 40, !"air.arg_type_align_size", i32 8, !"air.arg_type_name", !"Params<\\22x\\22>", !"air.arg_name", !"params"}
!5 = !{i32 1, !"air.thread_position_in_grid", !"air.arg_type_name", !"uint3", !"air.arg_name", !"tid"}
!6 = !{i32 0, i32 4, i32 0, !"uint", !"count", !"air.struct_type_info", !7, i32 8, i32 24, i32 0, !"metal::array", !"sizes", i32 32, i32 2, i32 3, !"half", !"weights"}
!7 = !{i32 0, i32 8, i32 3, !"long", !"__elems"}
!8 = !{i32 2, !"air.buffer", !"air.location_index", i32 0, i32 1, !"air.read_write", !"air.address_space", i32 1, !"air.arg_type_size", i32 4, !"air.arg_type_name", !"float", !"air.arg_name", !"output"}
!9 = !{!"air.other", i32 1}
"""  # noqa: E501 - a node of metadata is one line


def test_names_types_struct_fields_and_the_group_limit_are_read():
    signature = read_signature(STRUCT)
    assert (signature.name, signature.max_threads) == ("k<int>", 256)
    params, position, output = signature.arguments
    assert (params.name, params.location, params.address_space, params.writable, params.size) == (
        "params",
        2,
        2,
        False,
        40,
    )
    assert params.type_name == 'Params<"x">'
    assert [(f.name, f.offset, f.size, f.count) for f in params.fields] == [
        ("count", 0, 4, 0),
        ("sizes", 8, 24, 0),
        ("weights", 32, 2, 3),
    ]
    assert (position.kind, position.is_buffer) == ("thread_position_in_grid", False)
    assert (output.writable, output.is_buffer) == (True, True)


def test_a_struct_is_packed_by_field_name():
    packed = read_signature(STRUCT).argument("params").pack({"weights": [1, 2], "count": 7, "sizes": [-1, 2, 3]})
    assert packed[:4].view(np.uint32).tolist() == [7]
    assert packed[8:32].view(np.int64).tolist() == [-1, 2, 3]
    assert packed[32:38].view(np.float16).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"count": 1, "sizes": []}, r"missing fields \['weights'\]"),
        ({"count": 1, "sizes": [], "weights": [], "x": 1}, r"unknown fields \['x'\]"),
        ({"count": -1, "sizes": [], "weights": []}, "'params.count' takes uint32 from 0 to 4294967295, given -1"),
        ({"count": 1.5, "sizes": [], "weights": []}, "'params.count' takes uint32"),
        ({"count": 1, "sizes": [1, 2, 3, 4], "weights": []}, "'params.sizes' holds 3 of long, given 4"),
        ({"count": [1, 2], "sizes": [], "weights": []}, r"'params.count' of type uint takes 1 value\(s\), given 2"),
        (5, "'params' is a struct: give a mapping"),
    ],
)
def test_a_value_that_does_not_fit_is_named(value, message):
    with pytest.raises(ValueError, match=message):
        read_signature(STRUCT).argument("params").pack(value)


def test_scalars_and_vectors_are_packed_by_type():
    assert Argument("n", "buffer", "uint", size=4).pack(5).view(np.uint32).tolist() == [5]
    assert Argument("n", "buffer", "uint3", size=16).pack((1, 2, 3)).view(np.uint32).tolist() == [1, 2, 3, 0]
    assert Argument("n", "buffer", "bfloat", size=2).pack(1.0).view(np.uint16).tolist() == [0x3F80]
    with pytest.raises(ValueError, match="Metal type 'texture' is no scalar"):
        Argument("n", "buffer", "texture", size=4).pack(1)


@pytest.mark.parametrize("value", [None, "1", 1j, {}, [[1], [2, 3]], 10**400])
def test_what_is_no_number_is_refused_by_name(value):
    for type_name in ("float", "bfloat", "int"):
        with pytest.raises(ValueError, match="'n'"):
            Argument("n", "buffer", type_name, size=4).pack(value)


def test_an_unknown_argument_lists_those_there_are():
    with pytest.raises(ValueError, match=r"no argument 'x'; it has \['params', 'tid', 'output'\]"):
        read_signature(STRUCT).argument("x")


@pytest.mark.parametrize(
    "ir", ["", "!air.kernel = !{!0}", STRUCT.replace("i32 1, !", "!", 1).replace("!2 = ", "!99 = ")]
)
def test_a_module_without_readable_metadata_is_an_archive_error(ir):
    with pytest.raises(ArchiveError, match=r"air\.kernel"):
        read_signature(ir)


def test_nested_structs_are_packed():
    inner = Field("inner", "Inner", 4, 8, 0, (Field("a", "int", 0, 4, 0), Field("b", "float", 4, 4, 0)))
    argument = Argument("p", "buffer", "Outer", size=12, fields=(Field("n", "int", 0, 4, 0), inner))
    packed = argument.pack({"n": 1, "inner": {"a": 2, "b": 0.5}})
    assert packed[:8].view(np.int32).tolist() == [1, 2]
    assert packed[8:].view(np.float32).tolist() == [0.5]


def test_handwritten_modules_have_signatures_too():
    signature = read_signature(module("  ret void", {"a": "float"}, limit=64))
    assert [argument.name for argument in signature.arguments] == ["a", "gid"]
    assert signature.max_threads == 64
