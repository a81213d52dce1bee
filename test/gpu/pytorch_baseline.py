"""GPT-2 training steps and ceilings in PyTorch: what test/gpu/run is measured against.

The best that PyTorch has: torch.compile, fused attention, fused AdamW, bf16 under autocast
with f32 parameters, gradient clipping, no dropout. Prints a JSON object for every result, as soon
as it is there. Parts: copy, bytes/s; products, FLOP/s of the model's shapes, alone, with a bias and with
a bias and GELU, and of weight gradients that come out in bf16, as autocast has them, and in f32, if this
PyTorch has such products; attention, FLOP/s forward and backward of each backend; step, seconds and peak
memory, in each of the modes of torch.compile. Two of these replay CUDA graphs: reduce-overhead, max-autotune.

    pytorch_baseline.py [--batch 16] [--length 1024] [--layers 12] [--width 768] [--heads 12]
                        [--vocabulary 50304] [--steps 30] [--parts copy,products,attention,step]
                        [--modes default,reduce-overhead,max-autotune-no-cudagraphs,max-autotune]
"""
import argparse
import json
import statistics
import sys

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
for name, default in [("batch", 16), ("length", 1024), ("layers", 12), ("width", 768),
                      ("heads", 12), ("vocabulary", 50304), ("steps", 30)]:
    parser.add_argument("--" + name, type=int, default=default)
parser.add_argument("--parts", default="copy,products,attention,step")
parser.add_argument("--modes", default="default,reduce-overhead,max-autotune-no-cudagraphs,max-autotune")
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


def emit(**results):
    print(json.dumps(results), flush=True)


def measure_step():
    for mode in args.modes.split(","):
        torch._dynamo.reset()
        torch.cuda.empty_cache()
        emit(step={mode: measure_mode(mode)})


def measure_mode(mode):
    model = Model().to(device)
    compiled = torch.compile(model, mode=None if mode == "default" else mode)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    tokens, targets = (
        torch.randint(vocabulary, (batch, length), device=device) for _ in range(2)
    )

    def step():
        torch.compiler.cudagraph_mark_step_begin()  # What a graph wrote in the last one may go.
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
    emit(copy_bytes_per_second=2 * source.numel() * 4 / seconds(lambda: target.copy_(source), 20))


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device=device, dtype=dtype)


def measure_products():
    rows = batch * length
    shapes = {
        "square 8192": (8192, 8192, 8192),
        "attention in": (rows, 3 * width, width),
        "attention out": (rows, width, width),
        "mlp up": (rows, 4 * width, width),
        "mlp down": (rows, width, 4 * width),
        "head": (rows, vocabulary, width),
        "head, input gradient": (rows, width, vocabulary),
    }
    for name, (m, n, k) in shapes.items():
        a, b, bias = random(m, k), random(n, k), random(n)
        flops = 2 * m * n * k
        runs = {name: lambda: F.linear(a, b), name + ", bias": lambda: F.linear(a, b, bias)}
        if hasattr(torch, "_addmm_activation"):  # The library's epilogue, not a kernel behind it.
            runs[name + ", bias and GELU"] = lambda: torch._addmm_activation(
                bias, a, b.t(), use_gelu=True)
        for each, run in runs.items():
            try:
                emit(product_flops={each: flops / seconds(run, 20)})
            except RuntimeError as error:
                print(f"{each}: {error}", file=sys.stderr)
    for name, (m, n) in {"attention in": (width, 3 * width), "mlp up": (width, 4 * width),
                         "head": (vocabulary, width)}.items():
        a, b, flops = random(rows, m), random(rows, n), 2 * m * n * rows
        name += ", weight gradient"
        emit(product_flops={name + " in bf16": flops / seconds(lambda: a.t() @ b, 20)})
        try:
            emit(product_flops={name + " in f32": flops / seconds(
                lambda: torch.mm(a.t(), b, out_dtype=torch.float32), 20)})
        except (RuntimeError, TypeError) as error:
            print(f"{name} in f32: {error}", file=sys.stderr)


def measure_attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    for size in (width // heads, 128):
        shape = (batch, max(1, width // size), length, size)
        q, k, v = (random(*shape).requires_grad_() for _ in range(3))
        # Causal: half of the pairs.
        flops = 2 * 2 * shape[0] * shape[1] * length * length * size / 2
        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
            name = f"{backend.name.lower().removesuffix('_attention')} {size}"
            try:
                with sdpa_kernel(backend):
                    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                    gradient = torch.randn_like(out)
                    forward = seconds(
                        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), 20)
                    backward = seconds(lambda: torch.autograd.grad(
                        out, (q, k, v), gradient, retain_graph=True), 20)
            except RuntimeError as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            emit(attention_flops={name + " forward": flops / forward,
                                  name + " backward": 2.5 * flops / backward})


emit(torch=torch.__version__, gpu=torch.cuda.get_device_name(),
     shape={"batch": batch, "length": length, "layers": layers, "width": width, "heads": heads,
            "vocabulary": vocabulary})
PARTS = {"copy": measure_copy, "products": measure_products, "attention": measure_attention,
         "step": measure_step}
for part in args.parts.split(","):
    PARTS[part]()
