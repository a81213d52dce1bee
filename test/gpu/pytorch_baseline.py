"""GPT-2 training steps and ceilings in PyTorch: what test/gpu/run is measured against.

The best that PyTorch has: torch.compile, fused attention, fused AdamW, bf16 under autocast
with f32 parameters, gradient clipping, no dropout. Prints one JSON object: seconds of a step
and its peak memory; and what this machine can do at most: bytes/s of a copy, FLOP/s of products
of the model's shapes, of attention forward and backward.

    pytorch_baseline.py [--batch 16] [--length 1024] [--layers 12] [--width 768] [--heads 12]
                        [--vocabulary 50304] [--steps 30] [--mode max-autotune-no-cudagraphs]
"""
import argparse
import json
import statistics

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
for name, default in [("batch", 16), ("length", 1024), ("layers", 12), ("width", 768),
                      ("heads", 12), ("vocabulary", 50304), ("steps", 30)]:
    parser.add_argument("--" + name, type=int, default=default)
parser.add_argument("--mode", default="default")
args = parser.parse_args()
batch, length, layers, width = args.batch, args.length, args.layers, args.width
heads, vocabulary = args.heads, args.vocabulary
torch.manual_seed(1)
device = torch.device("cuda")


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
        q, k, v = (
            part.view(batch, length, heads, width // heads).transpose(1, 2)
            for part in self.c_attn(self.ln_1(x)).split(width, dim=2)
        )
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(context.transpose(1, 2).reshape(batch, length, width))
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
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, vocabulary), targets.view(-1))


def seconds(run, repeats):
    """The median over single runs, after some that are not counted."""
    times = []
    for i in range(repeats + 5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        if i >= 5:
            times.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def measure_step():
    model = Model().to(device)
    compiled = torch.compile(model, mode=None if args.mode == "default" else args.mode)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    tokens, targets = (
        torch.randint(vocabulary, (batch, length), device=device) for _ in range(2)
    )

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = compiled(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    result = {"seconds": seconds(step, args.steps)}
    result["allocated_bytes"] = torch.cuda.max_memory_allocated()
    result["reserved_bytes"] = torch.cuda.max_memory_reserved()
    return result


def measure_copy():
    source = torch.randn(1 << 30, device=device)  # 4 GiB: many times the cache.
    target = torch.empty_like(source)
    return 2 * source.numel() * 4 / seconds(lambda: target.copy_(source), 20)


def measure_products():
    rows = batch * length
    shapes = {
        "square 8192": (8192, 8192, 8192),
        "attention in": (rows, 3 * width, width),
        "attention out": (rows, width, width),
        "mlp up": (rows, 4 * width, width),
        "mlp down": (rows, width, 4 * width),
        "mlp up, weight gradient": (4 * width, width, rows),
        "head": (rows, vocabulary, width),
    }
    rates = {}
    for name, (m, n, k) in shapes.items():
        a, b = (torch.randn(s, device=device, dtype=torch.bfloat16) for s in ((m, k), (n, k)))
        bias = torch.randn(n, device=device, dtype=torch.bfloat16)
        rates[name] = 2 * m * n * k / seconds(lambda: F.linear(a, b), 20)
        rates[name + ", bias"] = 2 * m * n * k / seconds(lambda: F.linear(a, b, bias), 20)
    return rates


def measure_attention():
    q, k, v = (
        torch.randn(batch, heads, length, width // heads, device=device,
                    dtype=torch.bfloat16, requires_grad=True) for _ in range(3)
    )
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    gradient = torch.randn_like(out)
    flops = 2 * 2 * batch * length * length * width / 2  # Causal: half of the pairs.
    forward = seconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), 20)
    backward = seconds(
        lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True), 20)
    return {"forward": flops / forward, "backward": 2.5 * flops / backward}


print(json.dumps({
    "torch": torch.__version__,
    "gpu": torch.cuda.get_device_name(),
    "mode": args.mode,
    "shape": {"batch": batch, "length": length, "layers": layers, "width": width,
              "heads": heads, "vocabulary": vocabulary},
    "step": measure_step(),
    "copy_bytes_per_second": measure_copy(),
    "product_flops": measure_products(),
    "attention_flops": measure_attention(),
}))
