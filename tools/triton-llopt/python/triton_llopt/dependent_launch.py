"""Launches that begin while the ones before them end.

With ``enable("ttir", dependent_launch="auto")`` kernels wait themselves for the memory of the kernels before them, and then
let the next one start (CUDA's programmatic dependent launch). Whether a launch uses that is decided by its blocks: those
that start early go to where there is room while other blocks end. One block of a multiprocessor finds the same place in
any case, and of many blocks the ones that follow make up for an uneven start. A few for each multiprocessor do not.
"""

from triton_llopt import occupancy

# The key in a kernel's metadata, and its values.
OVERLAP = "dependent_launch"
OVERLAPS = {True: "all", "auto": "even"}
# So many times the blocks that are resident make up for an uneven start.
WAVES = 4
# Among the arguments of Triton's launcher.
_FUNCTION, _ALLOWED = 4, 6


def stay_even(blocks, of_multiprocessor, multiprocessors):
    """Whether blocks that start early are as even on the multiprocessors as others."""
    resident = of_multiprocessor * multiprocessors
    return of_multiprocessor == 1 or blocks <= multiprocessors or blocks >= WAVES * resident


def launcher(launch, metadata):
    """A launcher that allows overlaps where the kernel is made for them."""
    overlap = getattr(metadata, OVERLAP, None)
    if overlap is None or metadata.launch_cooperative_grid:
        return launch
    known = {}

    def launch_early(*arguments):
        x, y, z, function = *arguments[:3], arguments[_FUNCTION]
        if overlap == "even":
            if function not in known:
                known[function] = occupancy.of_multiprocessor(function, metadata), occupancy.multiprocessors()
            if not stay_even(x * y * z * metadata.num_ctas, *known[function]):
                return launch(*arguments)
        return launch(*arguments[:_ALLOWED], True, *arguments[_ALLOWED + 1 :])

    return launch_early
