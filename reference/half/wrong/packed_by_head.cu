// Layout 1 is read as [B, N, H, 3, d].
// expect: wrong_answer on most: no cause is named
#define PACKED_SLOT(heads, head, slot) (3 * (head) + (slot))
#include "attention.cuh"
