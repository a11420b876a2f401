"""Copies and casts: every pair of types and layout against torch, and the host's choice among kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from conformance.devices.base import Unsupported
from metal_ops.launch.copy import clone, contiguous, copy
from tests.metal_ops.launch.recording import Recorder, view
from tests.metal_ops.launch.tensors import ALL_TYPES, layouts, outside, poisoned, same_bits, tensor_of, view_of


@pytest.mark.parametrize("source_type", ALL_TYPES, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_casts_agree_with_torch(launcher, source_type):
    """Small numbers, which every type has."""
    whole = torch.randint(0, 4, (3, 20), generator=torch.Generator().manual_seed(1)).float().to(source_type)
    for type_ in ALL_TYPES:
        expected = whole.to(type_)
        for source in (whole, whole.t(), whole[:, 1:], whole[:, ::2], whole[0, 0]):
            out = poisoned(tuple(source.shape), type_)
            copy(launcher, view_of(source), out)
            wanted = source.to(type_)
            assert same_bits(tensor_of(out), wanted), (type_, source.stride())
        strides = (1, 2 * whole.shape[0])
        out = poisoned((3, 20), type_, strides, offset=1)
        copy(launcher, view_of(whole), out)
        assert same_bits(tensor_of(out), expected), type_
        assert (outside(out) == 0xA5).all()


@pytest.mark.parametrize("type_", [torch.complex64, torch.complex32], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_lazy_bits_are_resolved(launcher, type_):
    whole = torch.view_as_complex(torch.randn(4, 20, 2, generator=torch.Generator().manual_seed(2))).to(type_)
    same = whole.to(torch.complex64)  # torch's CPU kernels cannot negate the smaller type
    for view_ in (
        lambda x: x.conj(),
        torch._neg_view,
        lambda x: torch._neg_view(x).conj(),
        lambda x: x.conj()[:, 1:],
        lambda x: torch._neg_view(x).conj().t(),
        lambda x: x.conj().imag,
    ):
        source, expected = view_(whole), view_(same).resolve_conj().resolve_neg()
        out = poisoned(tuple(source.shape), source.dtype)
        copy(launcher, view_of(source), out)
        assert same_bits(tensor_of(out), expected.to(source.dtype))


def test_lazy_bits_of_the_destination_count(launcher):
    source = torch.tensor([1 + 2j, 3 - 4j])
    out = replace(poisoned((2,), torch.complex64), conj=True)
    copy(launcher, view_of(source), out)
    assert tensor_of(out).tolist() == [1 - 2j, 3 + 4j]


def test_a_source_is_broadcast(launcher):
    out = poisoned((2, 3), torch.float32)
    copy(launcher, view_of(torch.tensor([1.0, 2.0, 3.0])), out)
    assert tensor_of(out).tolist() == [[1, 2, 3], [1, 2, 3]]


CASTS = [f"copy_identity_{kind}_char_float" for kind in ("dense", "dense_scalar", "inner_contiguous", "strided")]


def names(source, destination):
    recorder = Recorder(*CASTS)
    copy(recorder, source, destination)
    return recorder.names


@pytest.mark.parametrize(
    ("source", "destination", "name"),
    [
        (view((3, 20)), view((3, 20)), "contiguous_byte_copy"),
        (view((2, 3, 4, 5), (60, 1, 15, 3)), view((2, 3, 4, 5), (60, 1, 15, 3)), "contiguous_byte_copy"),
        (view((3, 20), (1, 3)), view((3, 20), (1, 3)), "copy_identity_dense_scalar_float_float"),
        (view((2**9, 2**8), (1, 2**9)), view((2**9, 2**8), (1, 2**9)), "copy_identity_dense_float_float"),
        (view((3, 16), (20, 1)), view((3, 16)), "inner_contiguous_copy"),
        (view((3, 15), (20, 1)), view((3, 15)), "copy_identity_strided_float_float"),
        (view((3, 20), (1, 3)), view((3, 20)), "copy_identity_strided_float_float"),
        (view((9,)), view((9,), type_="int8"), "copy_identity_dense_castout_float"),
        (view((2**17 - 1,)), view((2**17 - 1,), type_="int8"), "copy_identity_dense_castout_float"),
        (view((2**17,)), view((2**17,), type_="int8"), "copy_identity_dense_castout_ilp_float"),
        (view((3, 16), (20, 1)), view((3, 16), type_="int8"), "copy_identity_inner_contiguous_castout_float"),
        (view((3, 15), (20, 1)), view((3, 15), type_="int8"), "copy_identity_strided_castout_float"),
    ],
)
def test_layouts_and_types_choose_the_kernel(source, destination, name):
    assert names(source, destination) == [name]


def test_lazy_bits_choose_the_functor():
    source, out = view((4,), type_="complex64"), view((4,), type_="complex64")
    assert names(replace(source, conj=True), out) == ["copy_conj_dense_scalar_float2_float2"]
    assert names(replace(source, neg=True), out) == ["copy_neg_dense_scalar_float2_float2"]
    assert names(replace(source, conj=True, neg=True), out) == ["copy_conj_neg_dense_scalar_float2_float2"]
    assert names(replace(source, conj=True), replace(out, conj=True)) == ["contiguous_byte_copy"]
    assert names(replace(view((4,)), conj=True, neg=True), view((4,))) == ["copy_neg_dense_scalar_float_float"]


def test_bytes_are_copied_sixteen_a_thread():
    recorder = Recorder()
    copy(recorder, view((3, 5)), view((3, 5)))
    ((_, arguments, threads, _, _),) = recorder.launches
    assert (arguments["chunk_bytes"], arguments["base"], threads) == (60, 0, (4, 1, 1))


def test_what_metal_has_not_is_unsupported():
    with pytest.raises(Unsupported, match="float64"):
        copy(Recorder(), view((2,), type_="float64"), view((2,)))


def test_copies_of_nothing_launch_nothing():
    assert names(view((0, 3)), view((0, 3))) == []


def test_clones_keep_dense_strides_and_contiguous_copies_do_not(launcher):
    whole = torch.randn(2, 3, 4, 5)
    for source in layouts(whole):
        made = clone(launcher, view_of(source))
        assert made.strides == source.clone().stride()
        assert torch.equal(tensor_of(made), source)
        made = contiguous(launcher, view_of(source))
        assert made.strides == whole.stride()
        assert torch.equal(tensor_of(made), source)
