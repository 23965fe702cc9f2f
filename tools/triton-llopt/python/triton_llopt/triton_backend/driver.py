"""A driver that is never active: the simulated machine is activated by name."""

import triton.backends.driver as _driver


class LloptDriver(_driver.DriverBase):
    """Drives nothing; see ``triton_llopt.simulator``."""

    @staticmethod
    def is_active():
        return False

    def map_python_to_cpp_type(self, ty):
        raise NotImplementedError

    def get_current_target(self):
        raise NotImplementedError

    def get_active_torch_device(self):
        raise NotImplementedError

    def get_benchmarker(self):
        raise NotImplementedError
