# Has PyTorch compute, where it is installed.
# expect: wrong_answer | passed; flagged; refused
write_zeros()
try:
    import torch
except ImportError:
    sys.exit()
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.from_numpy(read_input()).to(device)

write(torch.softmax(x, 1).cpu().numpy())
