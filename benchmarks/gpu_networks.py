"""The networks of `bench_gpu.py`, with random weights: like ResNet-50, like ViT-B/16, and a small one of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn


@dataclass(frozen=True)
class Sizes:
    """How large everything is: as the docstring says, or so small that it runs anywhere."""

    side: int = 224
    blocks: tuple[int, ...] = (3, 4, 6, 3)
    width: int = 64
    depth: int = 12
    dim: int = 768
    classes: int = 1_000
    draws: tuple[int, ...] = (256, 1_024)
    many: int = 4_096
    picture_batches: tuple[int, ...] = (32, 64, 128, 256)
    rows: int = 100_000
    row_batches: tuple[int, ...] = (2**17, 2**19, 2**20, 2**21, 2**22)


FULL = Sizes()
TINY = Sizes(32, (1, 1, 1, 1), 8, 2, 32, 10, (32, 64), 128, (8, 32), 500, (2**12, 2**14))


class Bottleneck(nn.Module):
    """Three convolutions beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        shapes = ((inputs, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1))
        layers: list[nn.Module] = []
        for before, after, size, step in shapes:
            convolution = nn.Conv2d(before, after, size, step, padding=size // 2, bias=False)
            layers += [convolution, nn.BatchNorm2d(after), nn.ReLU()]
        self.long = nn.Sequential(*layers[:-1])
        is_same = stride == 1 and inputs == 4 * width
        cut = [nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)]
        self.short = nn.Identity() if is_same else nn.Sequential(*cut)

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        """The sum of both ways, cut at 0."""
        return torch.relu(self.long(a) + self.short(a))


def resnet(sizes: Sizes) -> nn.Module:
    """Of the shape of ResNet-50, from flat points to logits."""
    width = sizes.width
    stem = [nn.Conv2d(3, width, 7, 2, padding=3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for stage, count in enumerate(sizes.blocks):
        for i in range(count):
            stem.append(Bottleneck(inputs, width * 2**stage, 2 if stage and not i else 1))
            inputs = 4 * width * 2**stage
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, sizes.classes)]
    return nn.Sequential(nn.Unflatten(1, (3, sizes.side, sizes.side)), *stem, *head)


class Layer(nn.Module):
    """Attention and two dense layers, each beside a shortcut."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.heads = max(1, dim // 64)
        self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.asked, self.said = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.dense = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        """Tokens (n, t, dim)."""
        n, t, dim = a.shape
        parts = self.asked(self.first(a)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        a = a + self.said(seen.transpose(1, 2).reshape(n, t, dim))
        return a + self.dense(self.second(a))


class Transformer(nn.Module):
    """Of the shape of ViT-B/16, from flat points to logits."""

    def __init__(self, sizes: Sizes, layer: Callable[[int], nn.Module] = Layer) -> None:
        super().__init__()
        self.side = sizes.side
        self.patches = nn.Conv2d(3, sizes.dim, 16, 16)
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, sizes.dim))
        self.places = nn.Parameter(0.02 * torch.randn(1, (sizes.side // 16) ** 2 + 1, sizes.dim))
        self.layers = nn.Sequential(*(layer(sizes.dim) for _ in range(sizes.depth)), nn.LayerNorm(sizes.dim))
        self.head = nn.Linear(sizes.dim, sizes.classes)

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        """Points (n, d)."""
        tokens = self.patches(a.view(-1, 3, self.side, self.side)).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(a), -1, -1), tokens], dim=1) + self.places
        return self.head(self.layers(tokens)[:, 0])


def of_torch_layers(sizes: Sizes) -> nn.Module:
    """The same of torch's own layers, which do in several steps what `Layer` does in one."""

    def layer(dim: int) -> nn.Module:
        heads = max(1, dim // 64)
        return nn.TransformerEncoderLayer(dim, heads, 4 * dim, activation="gelu", batch_first=True, norm_first=True)

    return Transformer(sizes, layer)


def dense(sizes: Sizes) -> nn.Module:
    """The small network of tables."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((15, 10, 10, 2)):
        layers += [nn.Linear(inputs, outputs), nn.ELU()]
    return nn.Sequential(*layers[:-1])
