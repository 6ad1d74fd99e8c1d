"""Random, well-defined CUDA programs that compute everything twice: on the device and on the host. See __main__.py."""
