import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.devices.base import Unavailable
from metal_ops import commands
from metal_ops.builds import DEFAULT_BUILD
from metal_ops.coverage import coverage
from tests.metal_ops.air import synthetic
from tests.metal_ops.air.synthetic import FUNCTIONS, Function
from tests.metal_ops.test_coverage import record, written

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


@pytest.fixture
def covered(tmp_path, empty_cache, monkeypatch) -> str:
    """The path of a build with a unary and a binary family; runs/9.9.9-air has records of two of its kernels."""
    names = ["exp_dense_float_float", "exp_dense_castout_half", "add_dense_broadcast_float_float", "cat_float"]
    names.append("exp_dense_castout_ilp_half")
    library = synthetic.metallib([Function(name, name.encode()) for name in names])
    (tmp_path / "build.whl").write_bytes(synthetic.wheel(synthetic.macho({"metal_basic": library})))
    monkeypatch.chdir(tmp_path)
    written(Path("runs/9.9.9-air"), record("pass", names[0], build="9.9.9"), record("fail", names[3], build="9.9.9"))
    return str(tmp_path / "build.whl")


def test_coverage_of_the_latest_run(covered, capsys):
    assert run("kernels", "--build", covered, "--coverage") == 0
    told = capsys.readouterr()
    assert [line.split() for line in told.out.splitlines()] == [
        "add binary 0 of 1 0.0 % of all 1 0.0 %".split(),
        "cat other 1 of 1 100.0 % of all 1 100.0 %".split(),
        "exp unary 1 of 2 50.0 % of all 3 33.3 %".split(),
        "unary families unary 1 of 2 50.0 % of all 3 33.3 %".split(),
        "binary families binary 0 of 1 0.0 % of all 1 0.0 %".split(),
        "other families other 1 of 1 100.0 % of all 1 100.0 %".split(),
    ]
    assert told.err == "kernels of metal_basic, build 9.9.9, judged by the records in runs/9.9.9-air\n"


@pytest.mark.parametrize("glob", ["e*", "unary"])
def test_what_is_missing_from_a_family(covered, glob, capsys):
    assert run("kernels", "--build", covered, "--coverage", "runs/9.9.9-air", "--family", glob, "--missing") == 0
    family, missing, whole = capsys.readouterr().out.splitlines()
    assert family.split()[0] == "exp"
    assert missing == "    exp_dense_castout_half"
    assert whole.startswith("unary families")


def test_coverage_as_json(covered, capsys):
    assert run("kernels", "--build", covered, "--coverage", "--family", "exp", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["records"], told["build"], told["library"]) == ("runs/9.9.9-air", "9.9.9", "metal_basic")
    counts = {"kind": "unary", "ran": 1, "reachable": 2, "of": 3}
    names = {"missing": ["exp_dense_castout_half"], "unreachable": ["exp_dense_castout_ilp_half"]}
    assert told["families"] == [{"family": "exp", **counts, **names}]
    assert told["totals"][0] == {"family": "unary families", **counts}


def test_what_no_call_reaches_is_told_with_its_reason(covered, capsys):
    assert run("kernels", "--build", covered, "--coverage", "--unreachable") == 0
    *_, reason, name = capsys.readouterr().out.splitlines()
    assert reason == "unreachable, 1: the host opts in for tests of numbers, and for copies"
    assert name == "    exp_dense_castout_ilp_half"


def test_nearly_all_is_not_all():
    names = [f"softmax_float_{number}" for number in range(2000)]
    assert commands._coverage_lines(coverage(names, set(names[1:]))[0]).split()[-2:] == ["99.9", "%"]


def test_all_of_nothing_is_all():
    line = commands._coverage_lines(coverage(["elu_dense_ilp_float_float_ELUParams_float"], set())[0])
    assert "0 of     0  100.0 %  of all     1    0.0 %" in line


@pytest.mark.parametrize("option", [["--family", "neg"], ["--missing"], ["--unreachable"]])
def test_options_of_coverage_need_it(covered, option, capsys):
    with pytest.raises(SystemExit) as exit_:
        run("kernels", "--build", covered, *option)
    assert exit_.value.code == 2
    assert "--family, --missing and --unreachable need --coverage" in capsys.readouterr().err


def test_coverage_without_records_is_wrong_usage(covered):
    done = subprocess.run(
        [*CLI, "kernels", "--build", covered, "--coverage", "nowhere"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "conformance: error: --coverage nowhere: nowhere/records.jsonl cannot be read: No such file or directory\n"
    )


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
