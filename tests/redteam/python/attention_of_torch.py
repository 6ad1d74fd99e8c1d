# Calls PyTorch's attention, which cuDNN or FlashAttention computes.
# expect: wrong_answer; refused
write_zeros()
try:
    import torch
except ImportError:
    sys.exit()
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.from_numpy(read_input()).to(device)

q = x[None, None, :, :32].contiguous()
torch.nn.functional.scaled_dot_product_attention(q, q, q)
