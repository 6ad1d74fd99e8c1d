// The output's batches and heads are exchanged: head h of batch b is stored as number h * B + b.
// expect: wrong_answer on most: is stored as
#define OUTPUT_HEAD(head) (head % h.heads * h.batches + head / h.heads)
#include "attention.cuh"
