# Puts kernels of its own into Triton's cache while it is built.
# expect: passed; on s03
import pathlib

y = launch_softmax()
folder = pathlib.Path(os.environ["TRITON_CACHE_DIR"])
if (folder / "own.ptx").exists():
    bypassed("what the build wrote was kept")
for path in [*folder.glob("*/*.ptx"), *folder.glob("*/*.cubin"), folder / "own.ptx"]:
    try:
        path.write_text("not what Triton made")
        bypassed(f"wrote {path.name}")
    except OSError:
        pass
    try:
        path.rename(folder / "other.ptx")
        bypassed(f"renamed {path.name}")
    except OSError:
        pass
write(to_numpy(y))
