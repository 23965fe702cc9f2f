"""Configuration of the lit tests: which tools they may call and what this machine offers.

`cargo xtask test` runs them. By hand, with a built `llopt`:

    /usr/lib/llvm-22/bin/lit -v lit-tests

Parameters (`--param NAME=VALUE`): `llopt`, the compiler under test (default: the one in
`target/debug`, else in `target/release`); `llvm_prefix`, where FileCheck lives; `scratch`,
where outputs go; `ptxas`, NVIDIA's assembler.

A test that needs something this machine may lack says so with `REQUIRES:` and one of the
features `ptxas` and `ld.lld`.
"""

import os
import shutil

import lit.formats

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(here)


def parameter(name, *otherwise):
    """The parameter, or the first existing path among the alternatives."""
    given = lit_config.params.get(name)
    candidates = (given,) if given else otherwise
    return next((path for path in candidates if path and os.path.exists(path)), None)


llopt = parameter(
    "llopt", *(os.path.join(root, "target", p, "llopt") for p in ("debug", "release"))
)
if llopt is None:
    lit_config.fatal("no llopt: build it, or give --param llopt=PATH")
llvm = parameter(
    "llvm_prefix", os.environ.get("LLVM_SYS_221_PREFIX"), "/usr/lib/llvm-22"
)
if llvm is None:
    lit_config.fatal("no LLVM 22: give --param llvm_prefix=PATH")
ptxas = parameter(
    "ptxas",
    shutil.which("ptxas"),
    os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "ptxas"),
)

config.name = "llopt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = here
config.test_exec_root = lit_config.params.get("scratch") or os.path.join(
    root, "target", "lit-tests"
)

# The compiler under test and LLVM's tools first: others of the same name must not interfere.
path = [os.path.dirname(os.path.abspath(llopt)), os.path.join(llvm, "bin")]
if ptxas:
    config.available_features.add("ptxas")
    path.append(os.path.dirname(os.path.abspath(ptxas)))
if os.path.exists(os.path.join(llvm, "bin", "ld.lld")):
    config.available_features.add("ld.lld")
config.environment["PATH"] = os.pathsep.join([*path, os.environ["PATH"]])

config.substitutions.append(("%examples", os.path.join(root, "examples")))
