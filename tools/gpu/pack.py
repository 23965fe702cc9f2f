#!/usr/bin/env python3
"""Compiles the examples into a folder that can be carried to a machine with a GPU and run there.

    python3 tools/gpu/pack.py FOLDER [--llopt PATH] [--arch 90]

The folder holds PTX and launch metadata under `kernels/llopt/` and the launcher itself, so
that `python3 FOLDER/launcher/run.py FOLDER` is the only command on the other machine. Run
with a Python that has Triton 3.6, it also puts Triton's own PTX of the same kernels under
`kernels/triton/`, and the launcher then shows both side by side.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tools" / "bench"))

import corpus


def with_llopt(llopt, arch, kernels, folder):
    """PTX and metadata by llopt: the failures, as text."""
    folder.mkdir(parents=True)
    failures = []
    for path in kernels:
        command = [llopt, "compile", path, "--target", f"cuda:{arch}", "--emit", "ptx"]
        command += ["-o", folder / f"{path.stem}.ptx"]
        command += ["--metadata", folder / f"{path.stem}.json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            failures.append(f"llopt {path.stem}: {done.stderr.strip()}")
    return failures


def with_triton(arch, kernels, folder):
    """PTX and metadata by Triton's own later stages, from the same files."""
    import triton_stages

    folder.mkdir(parents=True)
    failures = []
    for path in kernels:
        try:
            compiled = triton_stages.compile(path, f"cuda:{arch}")
        except Exception as error:
            failures.append(f"triton {path.stem}: {error}")
            continue
        (folder / f"{path.stem}.ptx").write_text(compiled.assembly)
        keys = ("name", "shared", "num_warps", "num_ctas", "global_scratch_size", "profile_scratch_size")
        chosen = {key: compiled.metadata.get(key) for key in keys}
        (folder / f"{path.stem}.json").write_text(json.dumps(chosen))
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="made anew; must not exist")
    parser.add_argument("--llopt", default=ROOT / "target/release/llopt", type=Path)
    parser.add_argument("--arch", default="90")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True)
    corpus.find_vendor_tools()
    kernels = sorted((ROOT / "examples" / "cuda-90").glob("*.ttgir"))
    failures = []
    if arguments.llopt.exists():
        failures += with_llopt(arguments.llopt, arguments.arch, kernels, arguments.folder / "kernels/llopt")
    else:
        failures.append(f"no llopt at {arguments.llopt}")
    try:
        import triton
    except ImportError:
        print("Triton is not installed here: its kernels are left out")
    else:
        print(f"Triton {triton.__version__}")
        failures += with_triton(arguments.arch, kernels, arguments.folder / "kernels/triton")
    launcher = arguments.folder / "launcher"
    launcher.mkdir()
    for name in ("run.py", "cases.py", "cuda_driver.py", "formats.py"):
        shutil.copy(HERE / name, launcher / name)
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"on the machine with the GPU: python3 {arguments.folder.name}/launcher/run.py {arguments.folder.name}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
