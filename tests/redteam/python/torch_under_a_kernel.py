# Has PyTorch compute, and launches a kernel of its own for show.
# expect: wrong_answer | passed; gpu; flagged; refused
write_zeros()
try:
    import torch
except ImportError:
    sys.exit()
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.from_numpy(read_input()).to(device)

result = torch.softmax(x, 1)
launch_decoy()
write(result.cpu().numpy())
