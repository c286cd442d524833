"""An image classifier on PyTorch: its network, in network.py, convolves."""

import torch
from network import Network

if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.no_grad():
        print(Network().to(device)(torch.zeros(1, 3, 32, 32, device=device)).argmax().item())
