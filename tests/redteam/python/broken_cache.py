# Leaves nonsense in Triton's cache in the build step: groups, metadata and kernels that cannot be read.
# expect: wrong_answer | runtime_error | no_output; refused
import os
import pathlib

write_zeros()
cache = pathlib.Path(os.environ["TRITON_CACHE_DIR"])
if BUILDING:
    for number, text in enumerate(
        ("{", "[]", '{"child_paths": 1}', '{"child_paths": {"../../x": "/etc/passwd"}}', "\0", "[" * 100000)
    ):
        folder = cache / f"nonsense{number}"
        folder.mkdir(parents=True)
        (folder / "__grp__x.json").write_text(text)
        (folder / "x.ptx").write_text(text)
