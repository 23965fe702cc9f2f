"""What Triton finds of this package when it looks for backends (entry point ``triton.backends``).

It claims no target and no device. It is there because Triton asks every backend which target it
supports before it compiles anything, which is the moment to do as the environment variables say.
"""
