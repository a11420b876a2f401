import argparse
import hashlib
import json
import subprocess
import sys

import pytest

from conformance.devices.base import Unavailable
from metal_ops import commands
from metal_ops.builds import DEFAULT_BUILD
from tests.metal_ops.air import synthetic
from tests.metal_ops.air.synthetic import FUNCTIONS, Function

CLI = [sys.executable, "-c", "import sys; from conformance.cli import main; sys.exit(main())"]


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="conformance")
    subparsers = parser.add_subparsers(required=True)
    commands.kernels(subparsers)
    commands.builds(subparsers)
    parsed = parser.parse_args(arguments)
    code: int = parsed.run(parsed)
    return code


@pytest.fixture
def build(tmp_path, empty_cache) -> str:
    """The path of a build: metal_basic with four kernels and a function that is none, metal_40 with two kernels."""
    basic = synthetic.metallib([*FUNCTIONS, Function("visible", b"code", kind=4)])
    forty = synthetic.metallib([Function(f.name, f.bitcode, versions=(2, 8, 4, 0)) for f in FUNCTIONS[:2]])
    path = tmp_path / "build.whl"
    path.write_bytes(synthetic.wheel(synthetic.macho({"metal_basic": basic, "metal_40": forty})))
    return str(path)


def test_kernels_of_both_libraries(build, capsys):
    assert run("kernels", "--build", build) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        *(["metal_basic", str(len(function.bitcode)), function.name] for function in FUNCTIONS),
        *(["metal_40", str(len(function.bitcode)), function.name] for function in FUNCTIONS[:2]),
    ]


def test_kernels_that_match_in_one_library_as_json(build, capsys):
    assert run("kernels", "--build", build, "--match", "kernel_[1-3]_*", "--library", "metal_40", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "name": "kernel_1_float",
            "library": "metal_40",
            "sha256": hashlib.sha256(FUNCTIONS[1].bitcode).hexdigest(),
            "size": len(FUNCTIONS[1].bitcode),
            "air": "2.8",
            "language": "4.0",
        }
    ]


@pytest.mark.parametrize(("options", "output"), [([], ""), (["--json"], "[]\n")])
def test_no_kernel_matches(options, output, build, capsys):
    assert run("kernels", "--build", build, "--match", "KERNEL*", *options) == 0
    assert capsys.readouterr().out == output


def test_a_library_that_is_not_there_is_wrong_usage(build, capsys):
    with pytest.raises(SystemExit) as exit_:
        run("kernels", "--build", build, "--library", "metal_99")
    assert exit_.value.code == 2
    assert "'metal_99' is not one of metal_basic, metal_40" in capsys.readouterr().err


def test_the_default_build_is_asked_for(empty_cache, no_index):
    with pytest.raises(Unavailable, match=f"torch {DEFAULT_BUILD} is not cached"):
        run("kernels")


def test_builds_that_are_cached(build, capsys):
    assert run("builds") == 0
    assert capsys.readouterr().out == ""
    assert run("kernels", "--build", build) == 0
    capsys.readouterr()
    assert run("builds") == 0
    assert capsys.readouterr().out.split()[:2] == ["9.9.9", "wheel"]
    assert run("builds", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["file_name"] == "build.whl"
    assert listed["libraries"] == ["metal_basic", "metal_40"]
    assert set(listed) == {"version", "sha256", "source", "file_name", "git_version", "libraries"}


def test_builds_are_fetched(empty_cache, no_index, capsys):
    (no_index / "torch-9.9.9-cp311-cp311-macosx_14_0_arm64.whl").write_bytes(synthetic.wheel())
    assert run("builds", "--fetch", "9.9.9") == 0
    assert capsys.readouterr().out.startswith("9.9.9 ")


def test_the_command_line_says_what_is_missing_on_one_line_and_exits_with_3(empty_cache, no_index):
    for arguments in (["kernels"], ["builds", "--fetch", "9.9.9"], ["kernels", "--build", "no such file"]):
        done = subprocess.run([*CLI, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 3, done.stderr
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert "Traceback" not in done.stderr


def test_a_reader_may_stop_reading(build):
    process = subprocess.Popen(
        [*CLI, "kernels", "--build", build], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    process.stdout.close()
    _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")


def test_listing_kernels_loads_nothing_heavy(build):
    code = f"""if True:
        import sys
        from conformance.cli import main
        sys.argv[1:] = ["kernels", "--build", {build!r}]
        main()
        heavy = {{"torch", "numpy", "scipy", "mpmath", "hypothesis", "llvmlite", "pytest"}} & set(sys.modules)
        sys.exit(f"loaded {{heavy}}" if heavy else 0)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
