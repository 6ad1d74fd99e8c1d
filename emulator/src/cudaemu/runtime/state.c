/* Variables that one layer of the runtime sets and several layers read. */

#include "emu.h"

__thread struct worker *this_worker;
struct launch *volatile launches_under_way;
int sticky_error, pending_fault;
u32 is_watching;
struct stream legacy_stream;
int default_stream_per_thread; /* nvcc --default-stream per-thread: set by the program's modules */
