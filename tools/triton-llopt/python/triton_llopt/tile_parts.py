"""Kernels of which several blocks each compute a part of a program's tile (``tile_parts`` in their metadata).

The author's grid has one block for each program; a launch has that many times as many along x.
"""

# The key in a kernel's metadata.
PARTS = "tile_parts"


def launcher(kernel, settings, configuration):
    """The launcher of all parts; the kernel's own if a block computes a whole tile."""
    parts, launch = getattr(kernel.metadata, PARTS, None) or 1, kernel._run
    if parts == 1:
        return launch
    return lambda x, *rest: launch(x * parts, *rest)
