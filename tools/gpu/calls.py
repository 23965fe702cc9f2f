"""Calls of the command llopt."""

import subprocess


class Refused(Exception):
    """llopt does not compile a kernel."""


def llopt(path, *arguments):
    """What the command prints; raises Refused with its message."""
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(" ".join(done.stderr.split())[:300])
    return done.stdout
