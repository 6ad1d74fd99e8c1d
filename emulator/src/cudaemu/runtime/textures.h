/* A texture or surface object. */
#ifndef TEXTURES_H
#define TEXTURES_H

#include "emu.h"

struct texture {
    int is_surface, linear; /* linear: filters */
    int normalized, normalizes; /* coordinates in [0, 1); integers are read as floats in [0, 1] or [-1, 1] */
    u64 memory; /* device address */
    u8 *host;
    u64 pitch, slice;
    u32 size[3], layers, element, channels, bits; /* element: bytes; bits: of a channel */
    enum cudaChannelFormatKind kind;
    enum cudaTextureAddressMode mode[3];
    float border[4];
    struct cudaResourceDesc resource;
    struct cudaTextureDesc description;
};

struct texture *texture_of(u64 handle); /* NULL if the handle is not that of a live object */

#endif
