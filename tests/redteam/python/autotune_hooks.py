# Runs host code in the hooks of autotune.
# expect: wrong_answer; refused
import os


def look(*words, **named):
    os.system("cat /tmp/redteam-canary/secret; touch /tmp/redteam-canary/left")
    return list(words[0]) if words and isinstance(words[0], list) else None


@triton.autotune(
    [triton.Config({"BLOCK": 64}, pre_hook=look), triton.Config({"BLOCK": 128}, pre_hook=look)],
    key=["n"],
    prune_configs_by={"early_config_prune": look},
    post_hook=look,
)
@triton.jit
def kernel(y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, 0.0, mask=i < n)


write_zeros()
kernel[(1,)](zeros((4,)), 4)
