"""The properties of a GPU: multiprocessors, clocks, memory, and the sizes that bound how many blocks an SM holds.

They are read from the driver (libcuda's cuDeviceGetAttribute, which makes no context and touches no GPU memory).
Without a GPU, those that follow from the architecture alone come from a table by compute capability.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

# CUdevice_attribute (cuda.h, CUDA 13.0)
_THREADS_PER_BLOCK, _SHARED_PER_BLOCK, _WARP, _REGISTERS_PER_BLOCK, _CLOCK_KHZ = 1, 8, 10, 12, 13
_SMS, _MEMORY_CLOCK_KHZ, _BUS_BITS, _L2_BYTES, _THREADS_PER_SM = 16, 36, 37, 38, 39
_MAJOR, _MINOR, _SHARED_PER_SM, _REGISTERS_PER_SM = 75, 76, 81, 82
_SHARED_OPTIN, _BLOCKS_PER_SM, _RESERVED_SHARED = 97, 106, 111


@dataclass(frozen=True)
class SmLimits:
    """The capacity of one SM of a compute capability. Sizes are in bytes; `reserved_shared` is the shared memory that
    CUDA reserves in every block."""

    compute_capability: tuple[int, int]
    registers: int
    registers_per_block: int
    threads: int
    threads_per_block: int
    blocks: int
    shared: int
    shared_per_block: int
    shared_per_block_optin: int
    reserved_shared: int
    warp: int = 32


@dataclass(frozen=True)
class GpuFacts:
    """The properties of one GPU. Clock rates are the highest that it can run at."""

    sms: int
    clock_mhz: float
    memory_clock_mhz: float
    bus_bits: int
    l2_bytes: int
    limits: SmLimits

    @property
    def bandwidth(self) -> float:
        """Bytes per second that the memory's pins can carry: bus width × clock × 2 transfers per clock."""
        return self.bus_bits / 8 * self.memory_clock_mhz * 1e6 * 2


_KIB = 1024
_TABLE = {
    capability: SmLimits(
        capability, 65536, 65536, threads, 1024, blocks, shared * _KIB, 48 * _KIB, optin * _KIB, reserved
    )
    for capability, threads, blocks, shared, optin, reserved in (
        ((7, 0), 2048, 32, 96, 96, 0),
        ((7, 5), 1024, 16, 64, 64, 0),
        ((8, 0), 2048, 32, 164, 163, 1024),
        ((8, 6), 1536, 16, 100, 99, 1024),
        ((8, 7), 1536, 16, 164, 163, 1024),
        ((8, 9), 1536, 24, 100, 99, 1024),
        ((9, 0), 2048, 32, 228, 227, 1024),
        ((10, 0), 2048, 32, 228, 227, 1024),
        ((12, 0), 1536, 24, 100, 99, 1024),
    )
}
"""CUDA C++ Programming Guide 13.0, "Compute Capabilities", table "Technical Specifications per Compute Capability".
The row 9.0 was compared with the values that an H200's driver reports (2026-11-21)."""


def known_limits(compute_capability: tuple[int, int]) -> SmLimits | None:
    """The limits of an architecture; None if the table lacks it."""
    return _TABLE.get(compute_capability)


def gpu_facts(uuid: str) -> GpuFacts | None:
    """The facts of the GPU with this UUID (GPU-…); None if the driver does not know it."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    if cuda.cuInit(0) != 0:
        return None
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    wanted = uuid.removeprefix("GPU-").replace("-", "").lower()
    for ordinal in range(count.value):
        device, found = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        if cuda.cuDeviceGet(ctypes.byref(device), ordinal) != 0:
            continue
        cuda.cuDeviceGetUuid_v2(found, device)
        if bytes(found).hex() == wanted:
            return _read(cuda, device)
    return None


def _read(cuda: ctypes.CDLL, device: ctypes.c_int) -> GpuFacts:
    def attribute(number: int) -> int:
        value = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device)
        return value.value

    return GpuFacts(
        sms=attribute(_SMS),
        clock_mhz=attribute(_CLOCK_KHZ) / 1e3,
        memory_clock_mhz=attribute(_MEMORY_CLOCK_KHZ) / 1e3,
        bus_bits=attribute(_BUS_BITS),
        l2_bytes=attribute(_L2_BYTES),
        limits=SmLimits(
            compute_capability=(attribute(_MAJOR), attribute(_MINOR)),
            registers=attribute(_REGISTERS_PER_SM),
            registers_per_block=attribute(_REGISTERS_PER_BLOCK),
            threads=attribute(_THREADS_PER_SM),
            threads_per_block=attribute(_THREADS_PER_BLOCK),
            blocks=attribute(_BLOCKS_PER_SM),
            shared=attribute(_SHARED_PER_SM),
            shared_per_block=attribute(_SHARED_PER_BLOCK),
            shared_per_block_optin=attribute(_SHARED_OPTIN),
            reserved_shared=attribute(_RESERVED_SHARED),
            warp=attribute(_WARP),
        ),
    )
