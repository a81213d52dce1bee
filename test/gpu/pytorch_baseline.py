"""Training steps and ceilings in PyTorch: what test/gpu/run is measured against.

The best that PyTorch has: torch.compile, fused attention, fused AdamW, bf16 under autocast
with f32 parameters, gradient clipping, no dropout. Prints a JSON object for every result, as soon
as it is there. Models: gpt2, of 124M unless options say otherwise, and llama, of the shape of Llama 3.2
1B: RMSNorm, SwiGLU, RoPE, heads of keys that several of queries share, a tied table, and activations
that stay bf16 between layers. Parts: copy, bytes/s; products, FLOP/s of the model's shapes, alone, with a
bias and with a bias and GELU, and of weight gradients that come out in bf16, as autocast has them, and in
f32, if this PyTorch has such products; attention, FLOP/s forward and backward of each backend, heads of 64
and of 128 columns, 1024 to 8192 tokens; step, seconds and peak memory, in each of the modes of
torch.compile; parameters, how many the model has. Two of the modes replay CUDA graphs: reduce-overhead,
max-autotune. A part or a mode that breaks keeps no other from being measured.

    pytorch_baseline.py [--model gpt2] [--batch 16] [--length 1024] [--layers 12] [--width 768] [--heads 12]
                        [--kv-heads 8] [--inner 8192] [--vocabulary 50304] [--steps 30]
                        [--parts copy,products,attention,step,parameters]
                        [--modes reduce-overhead,default,max-autotune-no-cudagraphs,max-autotune]
                        [--device cuda]
"""
import argparse
import contextlib
import json
import statistics
import sys
import time
import traceback

import torch
from torch import nn
from torch.nn import functional as F

SHAPES = {
    "gpt2": {"batch": 16, "length": 1024, "layers": 12, "width": 768, "heads": 12, "kv_heads": 12,
             "inner": 3072, "vocabulary": 50304},
    "llama": {"batch": 4, "length": 4096, "layers": 16, "width": 2048, "heads": 32, "kv_heads": 8,
              "inner": 8192, "vocabulary": 128256},
}
parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=SHAPES, default="gpt2")
for name in SHAPES["gpt2"]:
    parser.add_argument("--" + name.replace("_", "-"), type=int)
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--parts", default="copy,products,attention,step")
parser.add_argument("--modes", default="reduce-overhead,default,max-autotune-no-cudagraphs,max-autotune")
parser.add_argument("--device", default="cuda")
args = parser.parse_args()
shape = {name: getattr(args, name) or size for name, size in SHAPES[args.model].items()}
batch, length, layers, width = (shape[name] for name in ("batch", "length", "layers", "width"))
heads, kv_heads, inner, vocabulary = (
    shape[name] for name in ("heads", "kv_heads", "inner", "vocabulary"))
columns = width // heads
torch.manual_seed(1)
device = torch.device(args.device)
has_gpu = device.type == "cuda"


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, inner)
        self.c_fc_proj = nn.Linear(inner, width)

    def forward(self, x):
        q, k, v = (
            part.view(batch, length, heads, columns).transpose(1, 2)
            for part in self.c_attn(self.ln_1(x)).split(width, dim=2)
        )
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(context.transpose(1, 2).reshape(batch, length, width))
        return x + self.c_fc_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


def initialize(model):
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(length, width)
        self.h = nn.ModuleList(Block() for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        initialize(self)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, vocabulary), targets.view(-1))


class RMSNorm(nn.Module):
    """In f32, and its result of the type of what it reads."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        exact = x.float()
        normal = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + 1e-5)
        return (normal * self.weight).to(x.dtype)


def turn(x, cos, sin):
    """x of [batch, heads, length, columns]; pairs are columns i and i + columns / 2."""
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


class LlamaBlock(nn.Module):
    def __init__(self):
        super().__init__()

        def linear(inputs, outputs):
            return nn.Linear(inputs, outputs, bias=False)

        self.input_layernorm = RMSNorm()
        self.qkv_proj = linear(width, (heads + 2 * kv_heads) * columns)
        self.o_proj = linear(heads * columns, width)
        self.post_attention_layernorm = RMSNorm()
        self.gate_up_proj = linear(width, 2 * inner)
        self.down_proj = linear(inner, width)

    def forward(self, x, cos, sin):
        q, k, v = (
            part.view(batch, length, -1, columns).transpose(1, 2)
            for part in self.qkv_proj(self.input_layernorm(x)).split(
                [heads * columns, kv_heads * columns, kv_heads * columns], dim=2)
        )
        context = F.scaled_dot_product_attention(
            turn(q, cos, sin), turn(k, cos, sin), v, is_causal=True, enable_gqa=True)
        x = x + self.o_proj(context.transpose(1, 2).reshape(batch, length, heads * columns))
        gate, up = self.gate_up_proj(self.post_attention_layernorm(x)).chunk(2, dim=2)
        return x + self.down_proj(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaBlock() for _ in range(layers))
        self.norm = RMSNorm()
        initialize(self)
        frequencies = 500000.0 ** (-torch.arange(0, columns, 2) / columns)
        angles = torch.outer(torch.arange(length), frequencies).repeat(1, 2)
        for name, table in ("cos", angles.cos()), ("sin", angles.sin()):
            self.register_buffer(name, table.bfloat16(), persistent=False)

    def forward(self, tokens, targets):
        x = self.embed_tokens(tokens).bfloat16()
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        logits = F.linear(self.norm(x), self.embed_tokens.weight)
        return F.cross_entropy(logits.view(-1, vocabulary), targets.view(-1))


MODELS = {"gpt2": GPT2, "llama": Llama}


def seconds(run, repeats):
    """The median over single runs, after some that are not counted."""
    times = []
    for i in range(repeats + 5):
        if has_gpu:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            took = begin.elapsed_time(end) * 1e-3
        else:
            begin = time.perf_counter()
            run()
            took = time.perf_counter() - begin
        if i >= 5:
            times.append(took)
    return statistics.median(times)


def emit(**results):
    print(json.dumps(results), flush=True)


@contextlib.contextmanager
def surviving(what):
    """What breaks within it is said, and counts for the status at the end."""
    global status
    try:
        yield
    except Exception:
        status = 1
        print(f"{what}: {traceback.format_exc().strip()[-600:]}", file=sys.stderr, flush=True)


def measure_step():
    for mode in args.modes.split(","):
        torch._dynamo.reset()
        if has_gpu:
            torch.cuda.empty_cache()
        with surviving(f"step, {mode}"):
            emit(step={args.model: {mode: measure_mode(mode)}})


def measure_mode(mode):
    model = MODELS[args.model]().to(device)
    # On a CPU, where this file is only tried, nothing is compiled.
    compiled = torch.compile(model, mode=None if mode == "default" else mode) if has_gpu else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    tokens, targets = (
        torch.randint(vocabulary, (batch, length), device=device) for _ in range(2)
    )
    losses = []

    def step():
        torch.compiler.cudagraph_mark_step_begin()  # What a graph wrote in the last one may go.
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = compiled(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    for _ in range(3):
        losses.append(step().item())
    if has_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    result = {"seconds": seconds(step, args.steps), "losses": losses}
    if has_gpu:
        result["allocated_bytes"] = torch.cuda.max_memory_allocated()
        result["reserved_bytes"] = torch.cuda.max_memory_reserved()
    return result


def measure_parameters():
    with torch.device("meta"):
        emit(parameters=sum(each.numel() for each in MODELS[args.model]().parameters()))


def measure_copy():
    source = torch.randn(1 << 30, device=device)  # 4 GiB: many times the cache.
    target = torch.empty_like(source)
    emit(copy_bytes_per_second=2 * source.numel() * 4 / seconds(lambda: target.copy_(source), 20))


def random(*sizes, dtype=torch.bfloat16):
    return torch.randn(*sizes, device=device, dtype=dtype)


def shapes_of_products():
    """m, n and k of the model's GEMMs, by name; and m and n of gradients of weights."""
    rows = batch * length
    if args.model == "gpt2":
        forward = {
            "square 8192": (8192, 8192, 8192),
            "attention in": (rows, 3 * width, width),
            "attention out": (rows, width, width),
            "mlp up": (rows, inner, width),
            "mlp down": (rows, width, inner),
            "head": (rows, vocabulary, width),
            "head, input gradient": (rows, width, vocabulary),
        }
        return forward, {"attention in": (width, 3 * width), "mlp up": (width, inner),
                         "head": (vocabulary, width)}
    forward = {
        "llama attention in": (rows, (heads + 2 * kv_heads) * columns, width),
        "llama attention out": (rows, width, heads * columns),
        "llama gate and up": (rows, 2 * inner, width),
        "llama down": (rows, width, inner),
        "llama head": (rows, vocabulary, width),
    }
    return forward, {"llama gate and up": (2 * inner, width), "llama head": (vocabulary, width)}


def measure_products():
    rows = batch * length
    forward, weights = shapes_of_products()
    for name, (m, n, k) in forward.items():
        a, b, bias = random(m, k), random(n, k), random(n)
        flops = 2 * m * n * k
        runs = {name: lambda: F.linear(a, b)}
        if args.model == "gpt2":
            runs[name + ", bias"] = lambda: F.linear(a, b, bias)
            if hasattr(torch, "_addmm_activation"):  # The library's epilogue, not a kernel behind it.
                runs[name + ", bias and GELU"] = lambda: torch._addmm_activation(
                    bias, a, b.t(), use_gelu=True)
        for each, run in runs.items():
            with surviving(each):
                emit(product_flops={each: flops / seconds(run, 20)})
    for name, (m, n) in weights.items():
        a, b, flops = random(rows, m), random(rows, n), 2 * m * n * rows
        name += ", weight gradient"
        with surviving(name + " in bf16"):
            emit(product_flops={name + " in bf16": flops / seconds(lambda: a.t() @ b, 20)})
        with surviving(name + " in f32"):
            emit(product_flops={name + " in f32": flops / seconds(
                lambda: torch.mm(a.t(), b, out_dtype=torch.float32), 20)})


def measure_attention():
    """As FlashAttention is published: 16384 tokens, and heads of 2048 columns together; causal, so
    half of the pairs count, and backward as two and a half times forward."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    for size in (64, 128):
        for tokens in (1024, 2048, 4096, 8192):
            sizes = (16384 // tokens, 2048 // size, tokens, size)
            q, k, v = (random(*sizes).requires_grad_() for _ in range(3))
            flops = 2 * 2 * sizes[0] * sizes[1] * tokens * tokens * size / 2
            for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
                name = f"{backend.name.lower().removesuffix('_attention')} {size} x {tokens}"
                with surviving(name):
                    with sdpa_kernel(backend):
                        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                        gradient = torch.randn_like(out)
                        forward = seconds(
                            lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), 20)
                        backward = seconds(lambda: torch.autograd.grad(
                            out, (q, k, v), gradient, retain_graph=True), 20)
                    emit(attention_flops={name + " forward": flops / forward,
                                          name + " backward": 2.5 * flops / backward})


status = 0
emit(torch=torch.__version__, gpu=torch.cuda.get_device_name() if has_gpu else "none",
     shapes={args.model: shape})
PARTS = {"copy": measure_copy, "products": measure_products, "attention": measure_attention,
         "step": measure_step, "parameters": measure_parameters}
for part in args.parts.split(","):
    with surviving(part):
        PARTS[part]()
sys.exit(status)
