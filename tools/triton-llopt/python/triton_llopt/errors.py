"""The errors of llopt, classified by whose fault they are.

Everything derives from :class:`LloptError`, and that from ``RuntimeError``, which is what Triton
raises when one of its own passes fails. Errors of Triton's frontend (``CompilationError``) and of
``ptxas`` (``PTXASError``), and ``OutOfResources``, are raised by Triton itself and are not changed.
"""

import linecache
import re

_PLACE = re.compile(r"^(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?:error|warning|note|remark): ")


def _with_python_source(text):
    """The message with the line of Python below each place that is in a Python file."""
    lines = []
    for line in text.splitlines():
        lines.append(line)
        place = _PLACE.match(line)
        if place is None or not place["file"].endswith(".py"):
            continue
        source = linecache.getline(place["file"], int(place["line"])).rstrip()
        if source:
            column = max(int(place["column"]) - 1, 0)
            before = "".join("\t" if c == "\t" else " " for c in source[:column])
            lines += [source, before + "^"]
    return "\n".join(lines)


class LloptError(RuntimeError):
    """Anything that llopt reports.

    ``text`` is llopt's message, ``places`` a list of ``("file:line:column", message)``, ``kernel`` and ``target`` are
    those of the compilation or the run.
    """

    def __init__(self, text, places=()):
        super().__init__(text, places)
        self.text = text
        self.places = list(places)
        self.kernel = None
        self.target = None

    def __str__(self):
        text = _with_python_source(self.text)
        if self.kernel is None:
            return text
        return f"{text}\nin kernel '{self.kernel}' for {self.target}"


class InvalidKernelError(LloptError):
    """The kernel breaks a rule of the language."""


class UnsupportedError(LloptError, NotImplementedError):
    """The kernel is valid, and llopt cannot compile it for this target: ``op`` needs ``feature``."""

    def __init__(self, text, places=(), op=None, feature=None):
        super().__init__(text, places)
        self.args = (text, places, op, feature)
        self.op = op
        self.feature = feature


class UnknownTargetError(UnsupportedError):
    """llopt does not know the GPU."""


class EnvironmentFailure(LloptError):
    """A file or a program outside the compiler is missing or failed."""


class InternalError(LloptError):
    """A mistake in llopt. Please report it with the file that the message names."""


class SimulationError(LloptError):
    """The simulated machine could not run the kernel to its end."""


class NotSimulatedError(SimulationError):
    """The kernel contains something whose meaning the simulated machine does not know."""


class SanitizerError(SimulationError):
    """The kernel ran to its end, but with errors that the sanitizer detected; ``findings`` lists them."""

    def __init__(self, findings):
        super().__init__("\n".join(findings))
        self.args = (findings,)
        self.findings = list(findings)


class FallbackWarning(UserWarning):
    """Triton compiles a kernel that llopt does not support."""


class SanitizerWarning(UserWarning):
    """The sanitizer's findings, where these are not errors."""
