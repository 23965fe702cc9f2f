"""Calls of the command llopt."""

import re
import subprocess


class Refused(Exception):
    """llopt does not compile a kernel."""


def llopt(path, *arguments):
    """What the command prints; raises Refused with its message."""
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(" ".join(done.stderr.split())[:300])
    return done.stdout


def objections(path, *arguments):
    """The numbers of the messages in which ptxas objects to code that the command assembles."""
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"warning: ptxas (C\d+)", done.stderr)))
