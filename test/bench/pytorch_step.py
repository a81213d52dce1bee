"""Training steps of GPT-2 in eager PyTorch: what step.cpp is measured against.

The best that PyTorch has without compiling: a tied head, scaled dot-product
attention, GELU in its tanh form, fused AdamW, gradient clipping, no dropout,
and gradients that are made anew in each step, not added to zeros (8 % of a step
of GPT-2 124M, 4 x 64 tokens). Versions before 2 have no such attention or AdamW:
there attention is its products and a softmax under one mask, and AdamW goes
from parameter to parameter, which took less time than `foreach`.

    pytorch_step.py THREADS STEPS PRECISION BATCH LENGTH LAYERS WIDTH HEADS VOCABULARY

PRECISION is fp32, or bf16: autocast, as PyTorch's users have it.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

precision = sys.argv.pop(3)
threads, steps, batch, length, layers, width, heads, vocabulary = map(int, sys.argv[1:])
torch.set_num_threads(threads)
torch.manual_seed(1)
has_attention = hasattr(F, "scaled_dot_product_attention")
mask = torch.ones(length, length, dtype=torch.bool).triu(1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_fc_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        rows = x.shape[:2]
        q, k, v = (
            part.view(*rows, heads, width // heads).transpose(1, 2)
            for part in self.c_attn(self.ln_1(x)).split(width, dim=2)
        )
        if has_attention:
            context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) / (width // heads) ** 0.5
            context = scores.masked_fill(mask, float("-inf")).softmax(dim=3) @ v
        x = x + self.c_proj(context.transpose(1, 2).reshape(*rows, width))
        return x + self.c_fc_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(length, width)
        self.h = nn.ModuleList(Block() for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight
        for block in self.h:
            x = block(x)
        logits = self.ln_f(x) @ self.wte.weight.T
        return F.cross_entropy(logits.view(-1, vocabulary), targets.view(-1))


model = Model()
try:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    kind = "fused"
except (TypeError, RuntimeError):  # Versions that have it for CUDA alone.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1)
    kind = "for each parameter"

least = float("inf")
for step in range(steps + 3):
    tokens, targets = torch.randint(vocabulary, (2, batch, length))
    start = time.perf_counter()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
        loss = model(tokens, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step > 2:  # Until then malloc still asks for memory.
        least = min(least, time.perf_counter() - start)
blas = torch.__config__.show().split("BLAS_INFO=")[-1].split(",")[0]
print(
    f"ms={least * 1e3:.2f} loss={loss.item():.4f} torch={torch.__version__} "
    f"blas={blas} adamw={kind}"
)
