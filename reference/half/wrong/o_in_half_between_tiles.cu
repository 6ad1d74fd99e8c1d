// O is rounded to half precision after every 16 keys, as if it were kept so between tiles.
// expect: wrong_answer on most: lost precision
#define SUM(x) (key % 16 == 15 ? in_half(x, type) : (x))
#include "attention.cuh"
