"""Configuration of the lit tests: which tools they may call and what this machine offers.

`cargo xtask test` runs them. By hand, with a built `llopt`:

    /usr/lib/llvm-22/bin/lit -v lit-tests

Parameters (`--param NAME=VALUE`): `llopt`, the compiler under test (default: the one in
`target/debug`, else in `target/release`); `llvm_prefix`, where FileCheck lives; `scratch`,
where outputs go.

A test that needs something this machine may lack says so with `REQUIRES:` and one of the
features `ptxas`, `lld`, `libdevice` and `ocml`. They follow the environment variables that
`llopt` itself reads (`LLOPT_PTXAS`, `LLOPT_LLD`, `LLOPT_LIBDEVICE`, `LLOPT_OCML`); to have
what set-up installed: `eval "$(cargo xtask setup --environment)"`.

`%exact MADE EXPECTED` compares two files character by character; with `--param bless=1` it writes
what was made into the expected file instead.
"""

import os

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

config.name = "llopt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "expected"]
config.test_source_root = here
config.test_exec_root = lit_config.params.get("scratch") or os.path.join(
    root, "target", "lit-tests"
)

# The compiler under test and LLVM's tools first: others of the same name must not interfere.
path = [os.path.dirname(os.path.abspath(llopt)), os.path.join(llvm, "bin")]
config.environment["PATH"] = os.pathsep.join([*path, os.environ["PATH"]])

for feature in ("ptxas", "lld", "libdevice", "ocml"):
    variable = "LLOPT_" + feature.upper()
    if os.path.exists(os.environ.get(variable, "")):
        config.environment[variable] = os.environ[variable]
        config.available_features.add(feature)

config.substitutions.append(("%examples", os.path.join(root, "examples")))

exact = "cp" if lit_config.params.get("bless") else "diff -u"
config.substitutions.append(("%exact", exact))
