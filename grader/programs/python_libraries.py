"""What a Python submission may use of the modules that it may import, and what it may not reach through them."""

from __future__ import annotations

import re

USABLE_OF_SYS = frozenset(
    {"argv", "byteorder", "exit", "float_info", "maxsize", "platform", "stderr", "stdin", "stdout", "version",
     "version_info"}
)  # fmt: skip
_OTHER_MODULES = frozenset(
    {"bltns", "builtins", "gc", "importlib", "inspect", "marshal", "multiprocessing", "os", "pickle", "posix", "runpy",
     "shutil", "socket", "subprocess", "sys", "tempfile", "threading"}
)  # fmt: skip
"""Forbidden modules that can be reached through an allowed module that imports them, as in `pathlib.os`."""
HIDDEN_MODULES = frozenset(
    {"ast", "atexit", "codecs", "copyreg", "fnmatch", "json", "keyword", "linecache", "logging", "np", "ntpath",
     "pkgutil", "platform", "posixpath", "re", "signal", "stdlib_re", "sysconfig", "traceback", "types", "uuid",
     "weakref", "zipimport"}
)  # fmt: skip
"""More modules that can be reached through allowed modules. A program's own objects may have these names too, so the
names are refused only as attributes of a module."""
_LEAVES_TRITON = frozenset(
    {"knobs", "launcher_cls", "load_binary", "nvsmi", "set_active", "reset_active", "compile", "cublas", "extern",
     "extern_elementwise", "_unsafe_update_src"}
)  # fmt: skip
_BY_TEXT = frozenset(
    {"attrgetter", "methodcaller", "Formatter", "vformat", "get_field", "get_type_hints", "ForwardRef",
     "singledispatch", "singledispatchmethod", "update_wrapper", "redirect_stdout", "redirect_stderr",
     "dispatch_table", "global_enum", "BooleanOptionalAction", "_actions", "_group_actions", "_add_action",
     "_option_string_actions", "_get_optional_actions", "_get_positional_actions", "_registry_get"}
)  # fmt: skip
WITH_ONE_ARGUMENT = frozenset(
    {"wraps", "parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args"}
)
"""Functions that look up attributes by text, in the objects that further arguments give them."""
FORBIDDEN_ATTRIBUTES = {
    **dict.fromkeys(("cffi", "ctypes", "ctypeslib", "f2py", "distutils"), "reaches beyond numpy's arrays"),
    **dict.fromkeys(_OTHER_MODULES, "is a module that may not be imported"),
    **dict.fromkeys(_BY_TEXT, "reaches attributes by text"),
    **dict.fromkeys(("ABCMeta", "EnumMeta", "EnumType", "Field", "make_dataclass"), "makes classes from text"),
    "obj": "shows the object that caused an error",
    **dict.fromkeys(("system", "popen", "Popen", "fork", "posix_spawn"), "starts other programs"),
    **dict.fromkeys(_LEAVES_TRITON, "changes or bypasses Triton"),
    **dict.fromkeys(("clock", "globaltimer"), "reads a clock in a kernel"),
    **dict.fromkeys(("allow_pickle", "load", "fromfunction"), "runs code from data"),
    **dict.fromkeys(
        ("f_back", "f_globals", "f_locals", "f_builtins", "gi_frame", "cr_frame", "ag_frame", "tb_frame", "tb_next"),
        "reads stack frames",
    ),
}
ATTRIBUTES_OF_KERNELS = frozenset({"JITFunction", "cache_hook", "fn", "pre_run_hooks", "run"})
"""Attributes of Triton's objects; changing one changes how kernels run."""
USABLE_PARTS: dict[str, frozenset[str]] = {
    "numpy.testing": frozenset(
        {"assert_allclose", "assert_almost_equal", "assert_array_almost_equal", "assert_array_equal",
         "assert_array_less", "assert_equal"}
    ),
    "triton": frozenset(
        {"CompilationError", "Config", "InterpreterError", "JITFunction", "OutOfResources",
         "TritonError", "__version__", "autotune", "cdiv", "constexpr_function", "heuristics", "jit", "language",
         "must_use_result", "next_power_of_2", "reinterpret", "runtime", "set_allocator", "testing"}
    ),
    "triton.language.extra": frozenset({"cuda", "libdevice"}),
    "triton.language.extra.cuda": frozenset(
        {"convert_custom_float8_sm70", "convert_custom_float8_sm80", "gdc_launch_dependents", "gdc_wait", "libdevice",
         "num_threads", "num_warps", "smid"}
    ),
    "triton.language.random": frozenset(
        {"philox", "rand", "rand4x", "randint", "randint4x", "randn", "randn4x"}
    ),
    "triton.runtime": frozenset({"Config", "JITFunction", "OutOfResources", "autotune", "driver", "heuristics"}),
    "triton.runtime.driver": frozenset({"active"}),
    "triton.runtime.driver.active": frozenset(
        {"get_active_torch_device", "get_current_device", "get_current_target", "utils"}
    ),
    "triton.runtime.driver.active.utils": frozenset({"get_device_properties"}),
    "triton.testing": frozenset(
        {"Benchmark", "assert_close", "do_bench", "do_bench_cudagraph", "get_dram_gbps", "get_max_simd_tflops",
         "get_max_tensorcore_tflops", "perf_report"}
    ),
}  # fmt: skip
"""The parts that may be used of modules through which a program could reach the compiler, caches or other programs.
Triton 3.6 and 3.9 have them."""
OPEN_MODULES = frozenset(
    {"triton.language", "triton.language.math", "triton.language.extra.libdevice",
     "triton.language.extra.cuda.libdevice"}
)  # fmt: skip
"""Modules of Triton of which everything may be used except `CLOSED_PARTS`."""
CLOSED_PARTS = frozenset({"core", "semantic", "standard", "target_info", "tl", "wraps"})
FORBIDDEN_OF_NUMPY = frozenset({"core", "lib", "ma", "matrixlib"})
"""Parts of numpy that run code from text, read pickles, or reach memory outside arrays."""
LIBRARY_KERNEL = re.compile(
    r"(?:cub|cublas|cudnn|cutlass|nvjet|sm\d\d|xmma)_|(?:ampere|maxwell|turing|volta)_\w*gemm|gemm(?:k1|SN)|gemv2|splitK"
)
"""Names of libraries' kernels. If a submission defined a function with such a name, the library's kernel would pass for
the submission's own."""
LOADERS_OF_NUMPY = frozenset({"allow_pickle", "load", "fromfunction"})
