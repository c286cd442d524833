"""A PPO trainer on PyTorch: linear layers and Adam, no convolution. What zcheck reads of a program in Python.

Put it beside a Python environment with PyTorch to try it; zcheck itself only reads it.
"""

import torch
from torch import nn

OBSERVATIONS, ACTIONS, STEPS = 8, 4, 128


class Policy(nn.Module):
    """An actor and a critic, each of three linear layers."""

    def __init__(self):
        super().__init__()
        self.actor = self.layers(ACTIONS)
        self.critic = self.layers(1)

    @staticmethod
    def layers(outputs):
        hidden = nn.Sequential(nn.Linear(OBSERVATIONS, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        return nn.Sequential(hidden, nn.Linear(64, outputs))

    def forward(self, observations):
        return self.actor(observations), self.critic(observations).squeeze(-1)


def update(policy, optimizer, observations, actions, old, returns):
    logits, values = policy(observations)
    chosen = torch.log_softmax(logits, -1).gather(1, actions[:, None]).squeeze(1)
    ratio = torch.exp(chosen - old)
    advantage = (returns - values).detach()
    clipped = torch.clamp(ratio, 0.8, 1.2) * advantage
    loss = -torch.min(ratio * advantage, clipped).mean() + (returns - values).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    policy = Policy().to(device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    observations = torch.zeros(STEPS, OBSERVATIONS, device=device)
    actions = torch.zeros(STEPS, dtype=torch.long, device=device)
    old, returns = torch.zeros(STEPS, device=device), torch.ones(STEPS, device=device)
    print(device, update(policy, optimizer, observations, actions, old, returns))
