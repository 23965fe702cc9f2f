"""The part of this package that Triton finds when it searches for backends (entry point ``triton.backends``).

It supports no target and no device. Triton queries every backend for its targets before it compiles anything; this
module then applies the environment variables.
"""
