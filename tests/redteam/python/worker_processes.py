# Computes in a pool of processes.
# expect: runtime_error | wrong_answer; on s02,s03; refused
import multiprocessing

write_zeros()


def rows(x):
    weights = np.exp(x - x.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


if not BUILDING:
    try:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            write(np.concatenate(pool.map(rows, np.array_split(read_input(), 2))))
    except OSError:
        pass
