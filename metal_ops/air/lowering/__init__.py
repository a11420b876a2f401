"""From the AIR of one kernel to LLVM IR for the host: the stages in order.

1. ``text``: the printed module as data, without what means nothing for execution.
2. ``bfloat``: bfloat becomes integers and helpers.
3. ``division``: integer division that cannot trap. ``intrinsics`` and ``elementary``: a definition for everything
   declared; all helpers are inlined into the kernel.
4. ``lockstep``: meeting points that a kernel takes for granted.
5. ``bounds``: every access asks first (when judging). Before all others ``counting``, when work is counted.
6. ``coroutine``: threads that cooperate become resumable at their meeting points.
7. ``machine`` and ``scheduler``: the loops around the kernel; ``fp_mode``: flush-to-zero meanwhile.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from metal_ops.air.kernel import Signature
from metal_ops.air.lowering import (
    bfloat,
    bounds,
    coroutine,
    counting,
    division,
    elementary,
    fp_mode,
    lockstep,
    machine,
    matrix,
    scheduler,
)
from metal_ops.air.lowering.errors import LoweringError
from metal_ops.air.lowering.intrinsics import Definitions
from metal_ops.air.lowering.simdgroup import is_cooperative
from metal_ops.air.lowering.text import Declaration, Function, Module, parse

__all__ = ["LoweringError", "Options", "lower"]

# "preserve-sign" is flush to a signed zero; LLVM must know it, or it folds constants as if subnormals existed.
_ATTRIBUTES = """
attributes #0 = { alwaysinline nounwind "denormal-fp-math"="preserve-sign,preserve-sign" }
attributes #1 = { noinline nounwind "denormal-fp-math"="preserve-sign,preserve-sign" }
attributes #2 = { nounwind "denormal-fp-math"="preserve-sign,preserve-sign" }
attributes #3 = { nounwind uwtable "denormal-fp-math"="preserve-sign,preserve-sign" }
"""

# LLVM's own intrinsics that the table must define: bfloat is no float to LLVM here, and fmuladd always fuses (values
# printed by Macs were reproduced only so).
_RENAMED = re.compile(r"@llvm\.(\w+)\.((?:v\d+)?bf16)\b")


@dataclass(frozen=True)
class Options:
    """How a kernel is lowered.

    ``checked`` checks every access; ``exact`` rounds elementary functions correctly, else the platform's functions
    serve, with vector forms where ``vector_library``. ``counted`` counts how often each block runs. ``machine`` is the
    host's processor (start of its triple).
    """

    checked: bool
    exact: bool
    machine: str
    vector_library: bool = False
    counted: bool = False


def blocks(ir: str) -> list[counting.Work]:
    """What stands in each block of the printed AIR module, by the number under which a counted kernel counts it."""
    return counting.instrument(_read(ir))


def _read(ir: str) -> Module:
    return parse(matrix.narrow(_RENAMED.sub(r"@air.\1.\2", ir.replace("@llvm.fmuladd.", "@air.fma."))))


def lower(ir: str, signature: Signature, options: Options) -> str:
    """Lower the printed AIR module ``ir`` to host IR with the entry ``air.run`` (see ``machine``).

    Raises :class:`LoweringError` naming what is not implemented.
    """
    module = _read(ir)
    if options.counted:
        counting.instrument(module)
    for function in module.functions:
        division.guard(function)
    helpers = bfloat.lower(module)
    definitions = Definitions(options.exact, options.vector_library)
    meetings = {d.name: d for d in module.declarations if is_cooperative(d.name)}
    for declaration in module.declarations:
        if declaration.name not in meetings:
            definitions.need(declaration)
    kernel = module.function(signature.name)
    inlined = parse(_inlined(module, kernel, helpers, definitions, meetings))
    inlined.globals = [line for line in inlined.globals if not line.startswith("@air.tid ")]
    whole = inlined.function(signature.name)
    for old, new in zip(kernel.parameters, whole.parameters, strict=True):
        new.no_alias = old.no_alias and not options.checked
    if meetings and lockstep.enforce(whole):
        meetings.setdefault(lockstep.BARRIER.name, lockstep.BARRIER)
    if options.checked:
        for function in inlined.functions:
            bounds.instrument(function, inlined)
    return _finished(inlined, whole, signature, options, definitions, meetings)


def _inlined(
    module: Module,
    kernel: Function,
    helpers: list[str],
    definitions: Definitions,
    meetings: dict[str, Declaration],
) -> str:
    """The module printed again after every helper has been inlined into the kernel."""
    import llvmlite.binding as llvm

    from metal_ops.air.host import data_layout, machine_for_passes

    bodies = [f.render("internal", "#0") for f in module.functions if f is not kernel]
    declared = [f"declare {d.result} @{d.name}({', '.join(d.parameters)}) convergent" for d in meetings.values()]
    text = "\n".join(
        [
            f'target datalayout = "{data_layout()}"',
            *module.types,
            *module.globals,
            "@air.tid = external global i32",
            *bodies,
            kernel.render("", "#2"),
            *helpers,
            *_missing_helpers(helpers, definitions),
            *definitions.texts.values(),
            "declare float @rt.odd(double)" if "rt.odd" in "".join(definitions.texts.values()) else "",
            *declared,
            counting.DECLARATION,
            _ATTRIBUTES,
        ]
    )
    reference = llvm.parse_assembly(text)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    builder = machine_for_passes()
    passes.run(reference, builder)
    return str(reference)


def _missing_helpers(helpers: list[str], definitions: Definitions) -> list[str]:
    """The bfloat conversions that intrinsics call in a module whose own code has no bfloat arithmetic."""
    used, have = "\n".join(definitions.texts.values()), "\n".join(helpers)
    missing = []
    for make, name in ((bfloat.widen, "@bf.widen.1("), (bfloat.narrow, "@bf.narrow.1(")):
        if name in used and f"{name.split('(')[0]}(" not in have:
            missing.append(make(1))
    return missing


def _flat(text: str) -> str:
    """One address space: the host's. Metal's spaces have served the bounds checks by now."""
    text = re.sub(r" addrspace\(\d+\)", "", text).replace(" addrspacecast ", " bitcast ")
    return re.sub(r"(@llvm\.mem(?:cpy|move|set))((?:\.p\d+)+)", lambda m: m[1] + re.sub(r"\d+", "0", m[2]), text)


def _unaligned(line: str) -> str:
    """Views may start anywhere, so accesses through pointers promise no more than the host always grants."""
    if line.startswith("  store ") or " = load " in line:
        return re.sub(r", align \d+$", ", align 1", line) if " atomic " not in line else line
    return line


def _finished(
    module: Module,
    kernel: Function,
    signature: Signature,
    options: Options,
    definitions: Definitions,
    meetings: dict[str, Declaration],
) -> str:
    parts = machine.arguments(signature, kernel)
    recursive = [function for function in module.functions if function is not kernel]
    for function in recursive:
        _refuse_meetings(function, meetings)
    kernel.body = [_unaligned(line) for line in kernel.body]
    if meetings:
        cooperation = coroutine.transform(kernel, meetings)
        shared = scheduler.threadgroup_globals(module.globals)
        run = scheduler.cooperative_loop(parts, shared, checked=options.checked)
        body = [cooperation.text, cooperation.collectives, run]
    else:
        kernel.name = "air.kernel"
        numbered = options.checked or any("@air.tid" in line for line in kernel.body)
        body = [kernel.render("internal", "#0"), machine.grid_loop("air.kernel", parts, numbered=numbered)]
    body += [function.render("internal", "#2") for function in recursive]
    late = "\n".join(definitions.late.values())
    runtime = [machine.GLOBALS, fp_mode.floating_point_mode(options.machine)]
    if options.checked:
        runtime.append(bounds.RUNTIME)
    if options.counted:
        runtime.append(counting.RUNTIME)
    if "@rt." in late or "@rt.odd" in "".join(kernel.body):
        runtime.append(elementary.ROUNDING)
    if late:
        vectors = options.vector_library and not options.exact
        runtime.append(elementary.declarations(definitions.elementary, exact=options.exact, vector_library=vectors))
    declared = [
        f"declare {d.result} @{d.name}({', '.join(d.parameters)})"
        for d in module.declarations
        if d.name not in meetings and d.name not in definitions.late and d.name.startswith("llvm.")
    ]
    text = _flat("\n".join([*module.types, *module.globals, *declared, late, *body, *runtime]))
    return _once(text) + _ATTRIBUTES


def _refuse_meetings(function: Function, meetings: dict[str, Declaration]) -> None:
    """A function that calls itself cannot be inlined, so its threads could not meet inside it."""
    for line in function.body:
        if any(f"@{name}(" in line for name in meetings):
            raise LoweringError(f"recursive function {function.name} cooperates across threads")


def _once(text: str) -> str:
    """The module with each declaration kept once, and dropped where a definition stands."""
    names = set(re.findall(r"^define [^@]*@([\w.]+)\(", text, re.MULTILINE))
    lines = []
    for line in text.split("\n"):
        if line.startswith("declare "):
            name = re.search(r"@([\w.]+)\(", line)
            if name is None or name[1] in names:
                continue
            names.add(name[1])
        lines.append(line)
    return "\n".join(lines)
