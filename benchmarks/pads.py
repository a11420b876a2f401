"""Pads against np.pad: how many generated cases a second, and which kernels they reach.

Run from the repository's folder with

    python -m benchmarks.pads --cases 20000

Every case is compared bit for bit (tests/metal_ops/launch/pads.py draws and judges them); the first that differs ends
the run with its description. The time includes generating, judging and compiling kernels that are not in the cache.
"""

from __future__ import annotations

import argparse
import time

from metal_ops.air import Gpu
from metal_ops.builds import DEFAULT_BUILD, open_build
from metal_ops.launch._launcher import Launcher
from tests.metal_ops.launch import pads


def main() -> None:
    """Print the figure, and the kernels that ran by family."""
    parser = argparse.ArgumentParser(description="Generated pads on the emulated GPU, against np.pad.")
    parser.add_argument("--cases", type=int, default=20000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the generator (default: %(default)s)")
    parser.add_argument("--build", default=DEFAULT_BUILD, help="whose kernels (default: %(default)s)")
    arguments = parser.parse_args()
    launcher = Launcher(Gpu(open_build(arguments.build).library()))
    start = time.perf_counter()
    ran = pads.check(launcher, arguments.seed, arguments.cases)
    seconds = time.perf_counter() - start
    findings = launcher.take_diagnoses()
    print(f"{arguments.cases} pads equal np.pad bit for bit, {len(findings)} accesses out of bounds")
    print(f"{seconds:.1f} s, {arguments.cases / seconds:.0f} cases a second, {len(ran)} kernels")
    for family, times in sorted(pads.families(ran).items()):
        print(f"{times:7} {family}")


if __name__ == "__main__":
    main()
