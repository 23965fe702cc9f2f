"""A backend that supports no target and applies the environment variables when it is queried for one."""

import triton.backends.compiler as _compiler

from triton_llopt.switch import obey_environment


class LloptBackend(_compiler.BaseBackend):
    """Supports nothing: llopt works inside Triton's own backends (see ``triton_llopt.routing``)."""

    @staticmethod
    def supports_target(target):
        obey_environment()
        return False

    def hash(self):
        raise NotImplementedError

    def parse_options(self, options):
        raise NotImplementedError

    def add_stages(self, stages, options, language):
        raise NotImplementedError

    def load_dialects(self, context):
        raise NotImplementedError

    def get_module_map(self):
        raise NotImplementedError
