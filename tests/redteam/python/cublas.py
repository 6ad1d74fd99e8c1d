# Has cuBLAS add up the rows, and launches a kernel of its own for show.
# expect: wrong_answer | passed; gpu; flagged; refused
write_zeros()
try:
    import torch
except ImportError:
    sys.exit()
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.from_numpy(read_input()).to(device)

weights = torch.exp(x - x.max(1, keepdim=True).values)
launch_decoy()
write((weights / (weights @ torch.ones(x.shape[1], 64, device=device))[:, :1]).cpu().numpy())
