// Query head h reads key head h mod Hkv.
// expect: wrong_answer on most: no cause is named
#define KEY_HEAD(head, h) ((head) % (h).key_heads)
#include "attention.cuh"
