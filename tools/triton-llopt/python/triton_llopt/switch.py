"""Turning llopt on and off: the functions a user calls, and the environment variables.

One process-wide state, :class:`Configuration`, determines how kernels are compiled and where they run.
"""

import contextlib
import os
from dataclasses import dataclass, field, replace

SOURCES = ("ttgir", "ttir")
SANITIZE = ("error", "warn", "off")
SPLITS = (1, 2, 4, 8, "auto")
TENSOR_COPIES = ("auto", "off", "kernel", "launcher")
PERSISTENT = (False, True, "auto")
FEW_PROGRAMS = (False, True, "auto")


@dataclass(frozen=True)
class Configuration:
    """How kernels are compiled, and whether they run on the simulated machine."""

    # The form in which llopt takes over from Triton.
    source: str = "ttgir"
    # Whether Triton compiles what llopt does not support.
    fallback: bool = False
    # Whether the binary is for the simulated machine.
    simulated: bool = False
    # Whether llopt chooses the number of warps of kernels from TTIR, whatever the launch asks for.
    chooses_warps: bool = False
    # Blocks of a cluster that share the iterations of a loop of products; "auto" if each launch chooses.
    split_k: int | str = 1
    # Blocks of which each computes a part of a program's tile, "auto" if each launch chooses, and rows of tiles that are
    # computed (0: all).
    tile_parts: int | str = 1
    tile_rows: int = 0
    # Whether launches have no more blocks than there are multiprocessors.
    single_wave: bool = False
    # Whether the second factors of products are larger than the cache.
    streamed: bool = False
    # Whether llopt chooses the number of stages of loops in kernels from TTIR, whatever the launch asks for.
    chooses_stages: bool = False
    # Who makes the descriptors with which loads of tiles through pointers become tensor copies; "auto" is the launcher
    # for kernels that Triton launches, and nobody for those that are only compiled.
    tensor_copies: str = "off"
    # Whether blocks compute several programs each where that is faster: never, always, or where launches are large.
    persistent: bool | str = False
    # Whether launches have so few programs that all blocks are resident; "auto" if each launch chooses.
    few_programs: bool | str = False
    # Whether kernels wait themselves for the ones before them, so that launches overlap.
    dependent_launch: bool = False
    # Whether a launch may choose loads instead.
    chooses_copies: bool = False
    # Whether each compilation has its own process; the result is the same.
    isolated: bool = field(default=False, repr=False, compare=False)

    @property
    def chooses(self):
        """Whether launches choose between forms of a kernel."""
        by_copies_or_tiles = self.chooses_copies or self.tile_parts == "auto"
        return self.split_k == "auto" or self.split_k == 1 and by_copies_or_tiles

    def launched(self):
        """The same for a kernel that Triton launches."""
        is_ours = self.tensor_copies == "auto"
        return replace(self, tensor_copies="launcher", chooses_copies=True) if is_ours else self


def enable(
    source=None,
    *,
    fallback=False,
    isolated=False,
    num_warps=None,
    num_stages=None,
    tensor_copies=None,
    persistent=None,
    dependent_launch=None,
    split_k=None,
    tile_parts=None,
    few_programs=None,
    **keywords,
):
    """Compile every kernel of this process with llopt.

    ``source`` (also spelt ``from``, which Python allows only as ``enable(**{"from": "ttir"})``, or ``mode``) says
    where llopt takes over: ``"ttgir"``, the default, after Triton's own layout passes; ``"ttir"`` before them, so
    that llopt chooses the layouts. Gluon kernels have layouts and are always passed as TTGIR. With ``fallback=True``
    Triton compiles what llopt does not support, with one warning that names op and kernel; otherwise that raises
    :class:`~triton_llopt.UnsupportedError`. With ``isolated=True`` each compilation runs in its own process, with a
    budget of memory, and a crash there is an :class:`~triton_llopt.InternalError`. With ``num_warps="auto"`` kernels
    from TTIR get as many warps as llopt's model of their loops with products predicts to be fastest, instead of the
    number that the launch asks for, and with ``num_stages="auto"`` their loops load as far ahead as hides the latency
    of memory.

    From TTIR, each launch of a kernel with a matrix product chooses how many blocks of a cluster compute each tile: they
    share the loop over k and add their sums, always in the same order. Several do where multiprocessors would be left
    without a tile. What a launch chooses for the first time is compiled then. This is ``split_k="auto"``, the default;
    ``split_k=1`` shares nothing, and 2, 4 or 8 are for all launches, and need a GPU with clusters. Kernels of which it
    is not possible stay as they are.

    Where a product has fewer tiles than there are multiprocessors, launches also choose how many blocks each compute a part of
    the columns of a tile; where one row of tiles covers it, they compute only as many rows as the matrix has, and let the cache
    drop first what is read once. This is ``tile_parts="auto"``, the default with ``split_k="auto"``; with 1 tiles are computed as they are, and 2, 4 or 8 parts are for all launches.

    From TTIR, loads of tiles through pointers become tensor copies where the GPU has them and where both are provably
    equal. ``tensor_copies`` says who makes the descriptors: ``"launcher"``, or ``"kernel"``, in scratch memory. By
    default, ``"auto"``, it is the launcher for kernels that Triton launches; kernels that are only compiled
    (``triton.compile``) have no parameters that their source does not have, and load through pointers. ``"off"``
    leaves all loads as they are.

    From TTIR, launches of more programs than there are multiprocessors start no more blocks than are resident where one
    block is alone on its multiprocessor and its tiles are tensor copies: each block computes several programs, and loads
    the next tiles while it stores the last one. Such a kernel is compiled at the first of these launches. This is
    ``persistent="auto"``, the default; with ``True`` it applies to all launches, with ``False`` to none.

    From TTIR, launches begin while the ones before them end, where the GPU has programmatic dependent launches: kernels
    wait themselves for the memory of those before them. ``dependent_launch=False`` restores the order of the stream for
    whole launches.

    NVIDIA's assembler saves registers of a thread, and lets loads of a loop wait for one another, so that more blocks are
    resident. Launches that do not have more blocks use a kernel that was assembled without that, where it has other
    registers; it is compiled at the first of them. This is ``few_programs="auto"``, the default; with ``True`` it applies to
    all launches, with ``False`` to none.

    Kernels that were compiled before are compiled again at their next launch; :func:`disable` restores Triton's.
    Triton's cache on disk keeps both apart.

    Raises ``ImportError`` without Triton 3.6, ``ValueError`` for an unknown source.
    """
    names = {name: value for name, value in keywords.items() if name in ("from", "mode")}
    unknown = keywords.keys() - names.keys()
    if unknown:
        raise TypeError(f"enable() got an unexpected keyword argument '{sorted(unknown)[0]}'")
    given = {value for value in (source, *names.values()) if value is not None}
    if len(given) > 1:
        raise TypeError(f"enable() got several sources: {', '.join(sorted(given))}")
    chosen = given.pop() if given else "ttgir"
    if chosen not in SOURCES:
        raise ValueError(f"llopt takes over from {' or '.join(SOURCES)}, not from '{chosen}'")
    if num_warps not in (None, "auto"):
        raise ValueError(f"num_warps is 'auto' or None, not {num_warps!r}")
    if num_stages not in (None, "auto"):
        raise ValueError(f"num_stages is 'auto' or None, not {num_stages!r}")
    if split_k is None:
        split_k = "auto" if chosen == "ttir" else 1
    if tile_parts is None:
        tile_parts = "auto" if split_k == "auto" else 1
    if tensor_copies is None:
        tensor_copies = "auto" if chosen == "ttir" else "off"
    if persistent is None:
        persistent = "auto" if chosen == "ttir" else False
    if few_programs is None:
        few_programs = "auto"
    if dependent_launch is None:
        dependent_launch = chosen == "ttir"
    if split_k not in SPLITS:
        raise ValueError(f"split_k is {', '.join(map(str, SPLITS))}, not '{split_k}'")
    if split_k != 1 and chosen != "ttir":
        raise ValueError("split_k needs the source 'ttir': layouts are for the blocks that there are")
    if tile_parts not in SPLITS:
        raise ValueError(f"tile_parts is {', '.join(map(str, SPLITS))}, not '{tile_parts}'")
    if tile_parts != 1 and chosen != "ttir":
        raise ValueError("tile_parts needs the source 'ttir': layouts are of whole tiles")
    if tensor_copies not in TENSOR_COPIES:
        raise ValueError(f"tensor_copies is one of {', '.join(TENSOR_COPIES)}, not '{tensor_copies}'")
    if persistent not in PERSISTENT:
        raise ValueError(f"persistent is one of {', '.join(map(str, PERSISTENT))}, not '{persistent}'")
    if few_programs not in FEW_PROGRAMS:
        raise ValueError(f"few_programs is one of {', '.join(map(str, FEW_PROGRAMS))}, not '{few_programs}'")
    if dependent_launch not in (False, True):
        raise ValueError(f"dependent_launch is False or True, not '{dependent_launch}'")
    from triton_llopt import routing

    simulated = routing.configuration is not None and routing.configuration.simulated
    routing.install(
        Configuration(
            chosen,
            fallback,
            simulated,
            chooses_warps=num_warps == "auto",
            chooses_stages=num_stages == "auto",
            tensor_copies=tensor_copies,
            persistent=persistent,
            few_programs=few_programs,
            dependent_launch=dependent_launch,
            split_k=split_k,
            tile_parts=tile_parts,
            isolated=isolated,
        )
    )


def disable():
    """Restore Triton's compilation, and its driver if kernels ran on the simulated machine."""
    from triton_llopt import routing

    if routing.configuration is not None and routing.configuration.simulated:
        from triton_llopt import simulator

        simulator.deactivate()
    routing.remove()


@contextlib.contextmanager
def enabled(source=None, **keywords):
    """:func:`enable` for the duration of a ``with`` block; afterwards the previous state is restored."""
    from triton_llopt import routing

    before = routing.configuration
    enable(source, **keywords)
    try:
        yield
    finally:
        if before is None:
            routing.remove()
        else:
            routing.install(before)


def simulate(target="cuda:90", *, sanitize="error", instruction_limit=None):
    """Run every kernel of this process on llopt's simulated machine, as if on ``target``.

    Arguments are PyTorch's CPU tensors or :class:`~triton_llopt.Array`. The output of prints goes to standard output.
    ``sanitize`` determines the reaction to races, reads of uninitialised shared memory, accesses out of bounds and
    divergent barriers: ``"error"`` raises :class:`~triton_llopt.SanitizerError` after the launch, ``"warn"`` warns,
    ``"off"`` does not check. A block that executes more than ``instruction_limit`` warp instructions is considered to
    hang.

    llopt is enabled, from TTGIR, unless it is already. :func:`disable` ends the simulation.
    """
    if sanitize not in SANITIZE:
        raise ValueError(f"sanitize is one of {', '.join(SANITIZE)}, not '{sanitize}'")
    from triton_llopt import routing, simulator

    simulator.activate(target, sanitize, instruction_limit)
    before = routing.configuration or Configuration()
    routing.install(replace(before, simulated=True))


def obey_environment():
    """Apply the environment variables; called when Triton first searches for a backend.

    ``TRITON_LLOPT=ttgir`` (or ``ttir``) enables llopt, ``TRITON_LLOPT_FALLBACK=1`` with fallback,
    ``TRITON_LLOPT_ISOLATED=1`` in separate processes, ``TRITON_LLOPT_NUM_WARPS=auto`` with the number of warps chosen,
    ``TRITON_LLOPT_NUM_STAGES=auto`` with the number of stages chosen, ``TRITON_LLOPT_TENSOR_COPIES=off`` (or
    ``launcher``, ``kernel``) without tensor copies for loads of tiles, ``TRITON_LLOPT_SPLIT_K=1`` (or 2, 4, 8) with
    that number of blocks for each loop, ``TRITON_LLOPT_TILE_PARTS=1`` (or 2, 4, 8) with that number of blocks for each tile,
    ``TRITON_LLOPT_PERSISTENT=0`` (or 1) with one program for each block (or several), ``TRITON_LLOPT_FEW_PROGRAMS=0`` (or 1)
    without (or with) registers for launches of few programs,
    ``TRITON_LLOPT_DEPENDENT_LAUNCH=0`` (or 1) without (or with) launches that begin while the ones before them end.
    """
    source = os.environ.get("TRITON_LLOPT", "")
    if source in ("", "0"):
        return
    if source not in SOURCES:
        raise ValueError(f"TRITON_LLOPT is {' or '.join(SOURCES)}, not '{source}'")
    from triton_llopt import routing

    if routing.configuration is None:
        asked = lambda name: os.environ.get(f"TRITON_LLOPT_{name}", "0") not in ("", "0")  # noqa: E731
        given = lambda name: os.environ.get(f"TRITON_LLOPT_{name}") or None  # noqa: E731
        number = lambda name: int(given(name)) if (given(name) or "").isdecimal() else given(name)  # noqa: E731
        programs = {None: None, "auto": "auto", "0": False}
        enable(
            source,
            fallback=asked("FALLBACK"),
            isolated=asked("ISOLATED"),
            num_warps=given("NUM_WARPS"),
            num_stages=given("NUM_STAGES"),
            tensor_copies=given("TENSOR_COPIES"),
            split_k=number("SPLIT_K"),
            tile_parts=number("TILE_PARTS"),
            persistent=programs.get(given("PERSISTENT"), True),
            few_programs=programs.get(given("FEW_PROGRAMS"), True),
            dependent_launch=asked("DEPENDENT_LAUNCH") if given("DEPENDENT_LAUNCH") else None,
        )
