"""Training steps of a Mixtral in Hugging Face's transformers: what step.cpp is
measured against where layers have experts.

Its own class with scaled dot-product attention, fused AdamW, gradient clipping and
gradients that are made anew in each step. EXPERTS is how it computes experts: `eager`,
one after another, or `grouped_mm`, which some versions have.

    transformers_step.py THREADS STEPS EXPERTS BATCH LENGTH LAYERS WIDTH INNER HEADS VOCABULARY NUMBER
"""
import sys
import time

import torch
import transformers

experts = sys.argv.pop(3)
threads, steps, batch, length, layers, width, inner, heads, vocabulary, number = map(int, sys.argv[1:])
torch.set_num_threads(threads)
torch.manual_seed(1)
config = transformers.MixtralConfig(
    vocab_size=vocabulary,
    hidden_size=width,
    intermediate_size=inner,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    num_key_value_heads=heads,
    num_local_experts=number,
    num_experts_per_tok=2,
    max_position_embeddings=length,
    use_cache=False,
    attn_implementation="sdpa",
)
try:
    model = transformers.MixtralForCausalLM(config)
    model.set_experts_implementation(experts)
except (AttributeError, ValueError) as error:
    if experts != "eager":
        sys.exit(f"transformers {transformers.__version__} has no experts by '{experts}': {error}")
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
least = float("inf")
for step in range(steps + 2):
    tokens, targets = torch.randint(vocabulary, (2, batch, length))
    start = time.perf_counter()
    logits = model(tokens).logits
    loss = torch.nn.functional.cross_entropy(logits.view(-1, vocabulary), targets.view(-1))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step > 1:  # Until then malloc still asks for memory.
        least = min(least, time.perf_counter() - start)
print(f"ms={least * 1e3:.2f} loss={loss.item():.4f} torch={torch.__version__} transformers={transformers.__version__}")
