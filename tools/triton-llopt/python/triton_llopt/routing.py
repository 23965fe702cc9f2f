"""The interface through which Triton 3.6 passes kernels to llopt.

Triton's backend for a vendor is a class with three things that matter here:

- ``add_stages`` fills the ordered table of stages ``ttir, ttgir, llir, ptx, cubin`` (AMD: ``..., amdgcn, hsaco``).
  The stages from TTGIR (or TTIR) to assembly are replaced by llopt's, all made by one compilation, in this process or
  in a separate one; the last stage, ``ptxas`` or AMD's linker, remains Triton's, with all its options. Where fewer
  registers would leave room for one more block, it runs once more with that bound.
- ``hash`` is part of the key of the cache on disk. llopt's version, the digest of its library and the
  configuration are added, so that one cache directory serves Triton and llopt.
- ``compute_cache_key`` of ``triton.runtime.jit`` makes the key of the kernels in memory, and gets the
  same addition: after a switch no kernel of the other compiler is launched.
- ``JITFunction._do_compile`` compiles kernels that Triton will launch: others may be launched by anyone, so only these
  have parameters that their source does not have.
- ``CompiledKernel._init_handles`` loads a kernel and makes its launcher, which may be replaced (see ``variants``).

The methods are wrapped on Triton's own classes. Its inspection hook (``knobs.runtime.
add_stages_inspection_hook``) could also change the stages, but is not part of either key, is reset
with the knobs, and is left to the user.
"""

import contextlib
import functools
import hashlib
import json
import os
import threading
import warnings

import triton
from triton._C.libtriton import llvm as _llvm
from triton.backends.amd import compiler as _amd
from triton.backends.compiler import Language
from triton.backends.nvidia import compiler as _nvidia
from triton.runtime import jit as _jit
from triton.runtime.errors import PTXASError

from triton_llopt import _llopt, added_arguments, few_programs, persistent, splitting, tile_parts, variants
from triton_llopt.errors import FallbackWarning, LloptError, UnsupportedError

# The information for launchers that only the compiler of the code has. Everything else in
# Triton's metadata comes from the options.
_COMPILED = (
    "name",
    "shared",
    "num_warps",
    "num_ctas",
    "tmem_size",
    "global_scratch_size",
    "global_scratch_align",
    "profile_scratch_size",
    "profile_scratch_align",
)

# Each may replace a kernel's launcher by one that chooses.
_LAUNCHERS = (tile_parts.launcher, splitting.launcher, persistent.launcher, few_programs.launcher)

# The state: None while Triton compiles.
configuration = None
# The same for what one thread compiles, if it differs.
_own = threading.local()


def _current():
    return getattr(_own, "configuration", configuration)


@contextlib.contextmanager
def _changed(change):
    """Another configuration for what this thread compiles."""
    before = vars(_own).get("configuration")
    _own.configuration = change(_current())
    try:
        yield
    finally:
        if before is None:
            del _own.configuration
        else:
            _own.configuration = before


@functools.lru_cache
def _digest():
    """Of the library, so that a cache outlives neither a release nor a rebuild."""
    with open(_llopt.__file__, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


@functools.lru_cache
def _key(of):
    return f"llopt-{_llopt.VERSION}-{_digest()}-{of}"


class _Stages:
    """The stages of one compilation. The first of llopt's compiles; the later ones return its artefacts."""

    def __init__(self, backend, stages, options, language):
        self.configuration = _current()
        self.options = options
        self.triton = dict(stages)
        self.assembly = "ptx" if "ptx" in stages else "amdgcn"
        self.compiled = None
        self.texts = {}
        if "ptx" in stages:
            self.target = f"cuda:{backend._parse_arch(options.arch)}"
        else:
            self.target = f"hip:{options.arch}"
        if self.configuration.source == "ttir" and language == Language.TRITON:
            stages["ttgir"] = self.ttgir
        stages["llir"] = self.llir
        stages[self.assembly] = self.emit
        if self.configuration.simulated:
            stages[backend.binary_ext] = self.simulated
        elif self.assembly == "ptx":
            stages["cubin"] = self.cubin
        else:
            # Triton's stage that makes LLVM IR would make LLVM know its targets; the last stage needs them.
            _llvm.init_targets()

    def ttgir(self, source, metadata):
        """From TTIR, with layouts of llopt's choice."""
        if self.compile(source, "ttir", metadata):
            return self.texts["ttgir"]
        return self.triton["ttgir"](source, metadata)

    def llir(self, source, metadata):
        if self.is_ours(source, "ttgir"):
            return self.texts["llvm"]
        # Triton's TTGIR, or one with which the user replaced llopt's.
        if self.compile(source, "ttgir", metadata):
            return self.texts["llvm"]
        return self.triton["llir"](source, metadata)

    def emit(self, source, metadata):
        if self.is_ours(source, "llvm"):
            return self.texts[self.assembly]
        return self.triton[self.assembly](source, metadata)

    def cubin(self, source, metadata):
        """Triton's; or with fewer registers if next to nothing is spilled then and one more block is resident; or with more."""
        assemble = self.triton["cubin"]
        is_free = self.is_ours(source, "ptx") and self.options.maxnreg is None
        few = self.configuration.few_programs
        for_few = _llopt.for_few_programs(source) if is_free and few else None
        metadata[few_programs.PROPOSAL] = few == "auto" and for_few is not None
        if few is True and for_few is not None:
            return assemble(for_few, metadata)
        first = assemble(source, metadata)
        if not is_free:
            return first
        threads = metadata["num_warps"] * self.options.warp_size
        block = (threads, metadata["shared"], self.target)
        for again in _llopt.again(source, first, *block):
            try:
                second = assemble(again, metadata)
            except PTXASError:
                # A single instruction may need more registers than one more block leaves.
                continue
            if _llopt.is_worth_it(first, second, *block):
                return second
        return first

    def simulated(self, source, metadata):
        """The binary of the simulated machine is the optimised LLVM IR."""
        if not self.is_ours(source, self.assembly):
            raise LloptError(f"only llopt's own code can be simulated, not a given {self.assembly}")
        return self.texts["llvm"].encode()

    def is_ours(self, source, form):
        return isinstance(source, str) and source == self.texts.get(form)

    def compile(self, source, form, metadata):
        """Compiles and records the information for the launcher; false if Triton must compile."""
        if self.configuration.fallback and self.compiled is False:
            return False
        forms = ["llvm", self.assembly]
        keywords = {}
        if form == "ttir":
            forms = ["ttgir", *forms]
            options = ("num_warps", "num_stages", "num_ctas", "maxnreg")
            keywords = {name: getattr(self.options, name, None) for name in options}
            # Zero is none, with what a launch needs to choose.
            keywords["split_k"] = self.configuration.split_k
            if self.configuration.chooses:
                keywords["split_k"] = 0
            parts = self.configuration.tile_parts
            keywords["tile_parts"] = 1 if parts == "auto" else parts
            keywords["tile_rows"] = self.configuration.tile_rows
            keywords["single_wave"] = self.configuration.single_wave
            keywords["streamed"] = self.configuration.streamed
            # Zero leaves them to the model.
            if self.configuration.chooses_warps:
                keywords["num_warps"] = 0
            if self.configuration.chooses_stages:
                keywords["num_stages"] = 0
            # Others than Triton's launcher know only the parameters of the source.
            copies = self.configuration.tensor_copies
            keywords["tensor_copies"] = "off" if copies == "auto" else copies
            keywords["persistent"] = persistent.OPTIONS[self.configuration.persistent]
            keywords["dependent_launch"] = self.configuration.dependent_launch
        text = str(source)
        try:
            compiled = self.compiler()(
                text.encode(),
                f"<{form}>",
                self.target,
                forms,
                **keywords,
                **self.library_options(),
                enable_fp_fusion=self.options.enable_fp_fusion,
                line_info=not triton.knobs.compilation.disable_line_info,
                keep_print_calls=self.configuration.simulated,
            )
        except LloptError as error:
            error.kernel = _kernel_name(text)
            error.target = self.target
            if self.configuration.fallback and isinstance(error, UnsupportedError):
                about = f"'{error.op}': {error.feature}" if error.op else error.text
                warnings.warn(
                    f"llopt leaves kernel '{error.kernel}' to Triton: {about}",
                    FallbackWarning,
                    stacklevel=2,
                )
                self.compiled = False
                return False
            raise
        for warning in compiled.warnings:
            warnings.warn(warning, stacklevel=2)
        found = json.loads(compiled.metadata)
        metadata[variants.ASKED_WARPS] = self.options.num_warps
        metadata.update({key: found[key] for key in _COMPILED})
        if form == "ttir":
            metadata["tensordesc_meta"] = found["tensordesc_meta"]
            metadata["argument_tensors"] = found.get("argument_tensors", [])
            metadata["program_extents"] = found.get("program_extents", False)
            metadata[tile_parts.PARTS] = found.get(tile_parts.PARTS, 1)
            metadata[persistent.PROPOSAL] = found.get(persistent.PROPOSAL, False)
            metadata["dependent_launch"] = found["launch_pdl"]
        if found.get(splitting.PROPOSAL):
            metadata[splitting.PROPOSAL] = found[splitting.PROPOSAL]
        self.texts = {form: compiled.text(form) for form in forms}
        self.compiled = True
        return True

    def compiler(self):
        """The function that compiles."""
        if not self.configuration.isolated:
            return _llopt.compile
        from triton_llopt import isolation

        return isolation.compile

    def library_options(self):
        """Device libraries, where Triton has them, and the user's own."""
        options = self.options
        libraries = dict(options.extern_libs or ())
        if self.assembly == "ptx":
            return {
                "libdevice": libraries.pop("libdevice", None),
                "libraries": list(libraries.values()),
                "enable_reflect_ftz": options.enable_reflect_ftz,
            }
        ocml = libraries.pop("ocml", None)
        libraries.pop("ockl", None)
        return {
            "ocml": os.path.dirname(ocml) if ocml else None,
            "libraries": list(libraries.values()),
            "allow_flush_denorm": options.allow_flush_denorm,
            "waves_per_eu": options.waves_per_eu,
        }


def _kernel_name(text):
    """The name in ``tt.func public @name(``."""
    _, _, rest = text.partition("tt.func public @")
    return rest.partition("(")[0] or "unknown"


def _wrap(backend):
    """Wraps the two methods of one of Triton's backends; returns what undoes it."""
    add_stages, hash = backend.add_stages, backend.hash

    @functools.wraps(add_stages)
    def add_llopt_stages(self, stages, options, language):
        add_stages(self, stages, options, language)
        if _current() is not None:
            _Stages(self, stages, options, language)

    @functools.wraps(hash)
    def hash_with_llopt(self):
        own = hash(self)
        now = _current()
        return own if now is None else f"{own}-{_key(now)}"

    backend.add_stages, backend.hash = add_llopt_stages, hash_with_llopt

    def undo():
        backend.add_stages, backend.hash = add_stages, hash

    return undo


def _wrap_key():
    """Wraps the key of the kernels in memory; returns what undoes it."""
    compute = _jit.compute_cache_key

    @functools.wraps(compute)
    def compute_with_llopt(*arguments):
        own = compute(*arguments)
        now = _current()
        return own if now is None else own + _key(now)

    _jit.compute_cache_key = compute_with_llopt

    def undo():
        _jit.compute_cache_key = compute

    return undo


def _wrap_launched():
    """Wraps the compilation of kernels that are to be launched; returns what undoes it."""
    compile = _jit.JITFunction._do_compile

    @functools.wraps(compile)
    def compile_launched(self, *arguments, **keywords):
        if _current() is None:
            return compile(self, *arguments, **keywords)
        with _changed(lambda of: of.launched()):
            return compile(self, *arguments, **keywords)

    _jit.JITFunction._do_compile = compile_launched

    def undo():
        _jit.JITFunction._do_compile = compile

    return undo


def _kernels_make_descriptors():
    return configuration is not None and configuration.tensor_copies == "kernel"


_undo = []


def install(wanted):
    """Compiles with llopt, as configured, from now on."""
    global configuration
    if triton.__version__.split(".")[:2] != ["3", "6"]:
        raise ImportError(f"triton_llopt needs Triton 3.6, not {triton.__version__}")
    if not _undo:
        _undo.extend([_wrap(_nvidia.CUDABackend), _wrap(_amd.HIPBackend), _wrap_key(), _wrap_launched()])
        _undo.append(variants.wrap(_LAUNCHERS, _changed, _current))
        _undo.append(added_arguments.install(_kernels_make_descriptors))
    configuration = wanted


def remove():
    """Restores Triton's own compilation."""
    global configuration
    configuration = None
    while _undo:
        _undo.pop()()
