"""The image model of classify.py: three convolutions and a linear layer."""

from torch import nn


class Network(nn.Module):
    """32×32 images in, ten classes out."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.classes = nn.Linear(32 * 8 * 8, 10)

    def forward(self, images):
        return self.classes(self.features(images).flatten(1))
