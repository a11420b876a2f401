"""The host that executes kernels: its processor as LLVM sees it, code generation, and the math functions it lends.

Half-precision arithmetic of newer processors is left out, so that all x86-64 hosts compute halves the same way (through
float32, innocuous for single operations) and results do not depend on the machine.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import platform
import sys
from typing import Any

from metal_ops.air.lowering.elementary import NAMES, VECTOR_ABI, VECTOR_VARIANTS

_LIBRARY_NAMES = sorted(set(NAMES) - {"sinpi", "cospi", "tanpi", "rsqrt", "powr"})
_CALLBACKS: list[Any] = []
# Features that would change results between machines of one architecture.
_DISABLED = {"x86_64": ("avx512fp16",)}


@functools.cache
def _initialise() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def processor() -> str:
    """The processor of the target triple: "x86_64" or "arm64"/"aarch64"."""
    return str(_initialise().get_process_triple()).split("-")[0]


@functools.cache
def features() -> str:
    """The host's features in LLVM's notation, less those that would change results; part of the object cache's key."""
    names = _initialise().get_host_cpu_features()
    for name in _DISABLED.get(processor(), ()):
        names[name] = False
    return str(names.flatten())


def target_machine(level: int = 2) -> Any:
    """A new LLVM target machine for this host; each engine must own one of its own."""
    llvm = _initialise()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features(), opt=level, reloc="pic", codemodel="jitdefault", jit=True
    )


@functools.cache
def data_layout() -> str:
    """The host's data layout; LLVM's default would align 64-bit integers to 4 bytes and shift struct fields."""
    return str(target_machine().target_data)


@functools.cache
def machine_for_passes() -> Any:
    """A pass builder for running single passes."""
    llvm = _initialise()
    return llvm.create_pass_builder(_passes_machine(), llvm.create_pipeline_tuning_options(speed_level=0))


@functools.cache
def _passes_machine() -> Any:
    return target_machine()


@functools.cache
def _math_library() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("m") or None)


@functools.cache
def vector_library() -> Any:
    """glibc's libmvec if this host has it (x86-64 Linux), else None."""
    if sys.platform != "linux" or processor() != "x86_64":
        return None
    try:
        library = ctypes.CDLL("libmvec.so.1")
    except OSError:
        return None
    return library if all(hasattr(library, _variant("d", 8, name)) for name in VECTOR_VARIANTS) else None


def _variant(letter: str, count: int, function: str) -> str:
    return f"_ZGV{letter}N{count}v_{function}f"


def _address(library: ctypes.CDLL, name: str) -> int:
    return int(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0)


def _symbol(name: str, suffix: str) -> int:
    """The address of a libm function; exp10 has another name on macOS."""
    library = _math_library()
    for candidate in (f"{name}{suffix}", f"__{name}{suffix}"):
        if hasattr(library, candidate):
            return _address(library, candidate)
    raise OSError(f"the math library of this system has no {name}{suffix}")


@functools.cache
def provide_symbols() -> None:
    """Tell LLVM's loader where the functions are that emulated kernels call; once a process."""
    llvm = _initialise()
    for name in _LIBRARY_NAMES:
        llvm.add_symbol(f"air_rt_{name}", _symbol(name, ""))
        llvm.add_symbol(f"air_rt_{name}f", _symbol(name, "f"))
    library = vector_library()
    if library is not None:
        for name in VECTOR_VARIANTS:
            for letter, count in VECTOR_ABI.items():
                symbol = _variant(letter, count, name)
                llvm.add_symbol(symbol, _address(library, symbol))
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.c_double, ctypes.c_double)
    callback = prototype(_round)
    _CALLBACKS.append(callback)  # ctypes does not keep it alive
    llvm.add_symbol("air_rt_round", int(ctypes.cast(callback, ctypes.c_void_p).value or 0))


def _round(function: int, precision: int, x: float, y: float) -> int:
    from metal_ops.air.rounding import correctly_rounded

    return ctypes.c_int32(correctly_rounded(function, precision, x, y)).value


def optimise(ir: str, level: int) -> bytes:
    """Host object code of the IR text, at optimisation ``level`` (1 to 3). Raises RuntimeError for invalid IR."""
    llvm = _initialise()
    target = f'target datalayout = "{data_layout()}"\ntarget triple = "{llvm.get_process_triple()}"\n'
    module = llvm.parse_assembly(target + ir)
    module.verify()
    machine = target_machine(level)
    vectorised = level > 2
    # Kernels loop over the four elements of a thread: unrolled first, as LLVM would, what branches (erf, say) would
    # never be vectorised; kept for one round, the loops become vectors. Worth a factor of 3 for gelu.
    for unrolling in (False, True) if vectorised else (True,):
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = vectorised
        options.loop_unrolling = unrolling
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


def load(object_code: bytes) -> Any:
    """An engine that holds a fresh copy of ``object_code``; it must stay alive while its code may run."""
    llvm = _initialise()
    provide_symbols()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(object_code))
    engine.finalize_object()
    return engine


def describe() -> dict[str, str]:
    """What decides how kernels run here, for provenance: processor, its LLVM name and the math library."""
    return {
        "processor": processor(),
        "cpu": str(_initialise().get_host_cpu_name()),
        "libc": " ".join(platform.libc_ver()) or sys.platform,
    }
