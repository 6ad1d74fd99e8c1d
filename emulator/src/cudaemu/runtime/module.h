/* The tables that the translator writes about a module: kernels, variables, functions, source locations. */
#ifndef MODULE_H
#define MODULE_H

#include "warp.h"

struct parameter_info { u32 offset, size; };

struct kernel_info {
    const char *name; /* mangled */
    device_function run;
    const struct parameter_info *parameters;
    u32 parameter_count, parameter_bytes;
    u32 static_shared;
    u32 dynamic_offset; /* where dynamic shared memory begins */
    u32 local_bytes;
    u32 registers;
    u32 max_threads; /* __launch_bounds__, or 0 */
    const struct shared_info *shared; /* variables in shared memory; of size 0 when dynamic */
    u32 shared_count;
    u32 cluster[3]; /* blocks of a cluster, by __cluster_dims__; or zeros */
    u32 triggers; /* executes griddepcontrol.launch_dependents */
    u32 floats;   /* whether it may compute with floating-point numbers */
};

struct shared_info { const char *name; u32 offset, size; };

struct relocation { u32 offset; const u64 *address; u64 addend; };

enum variable_space { VARIABLE_GLOBAL, VARIABLE_CONST, VARIABLE_MANAGED };

struct variable_info {
    const char *name;
    u64 size, align;
    int space;
    u64 *address;
    const u8 *data;
    const struct relocation *moves;
    u32 move_count;
};

/* `sizes` has the bytes of each parameter, then of each result: the rows that the function uses of its caller. */
struct function_info { const char *name; device_function run; u64 *address; const u32 *sizes; u32 size_count; };

/* What an instruction that is recorded does (translate/watching.py). Slots are NO_SLOT where there is none. */
struct watch_site { u32 operation, file, line, bytes, results[4], sources[4]; };

struct module_info {
    const struct kernel_info *kernels;
    u32 kernel_count;
    const struct variable_info *variables;
    u32 variable_count;
    const struct function_info *functions;
    u32 function_count;
    const struct site_info *sites; /* site_info.file is an index into files */
    u32 site_count;
    const char *const *files;
    u32 watched; /* built for --sanitize race,init: accesses go through shadow.c */
    const struct counting *counting; /* counters.h; NULL where nothing is counted */
    const struct watch_site *watch;
    u32 watch_count, watch_slots;
};

#endif
