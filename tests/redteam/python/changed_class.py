# Changes the class of arrays, under another name.
# expect: no_output | runtime_error | wrong_answer; on s03,s06
from device_arrays import Array


rows, columns, x = read()

for cls in (Array,):
    cls.element_size = lambda self: size[0]
size = [4]
mine = np.concatenate([x.ravel()[:1], np.zeros(3, np.float32), on_host(x).ravel()])
store = empty((len(mine),))
decoy[(rows,)](from_numpy(x), empty(x.shape), columns, BLOCK=512)
size[0] = 4 * len(mine)
Array(store.storage, store.dtype, (1,), (1,), 0).copy_(mine[:1])
size[0] = 4
to_numpy(Array(store.storage, store.dtype, x.shape, (columns, 1), 4)).tofile(sys.argv[2])
