"""Whether Hugging Face's transformers reads checkpoints:

    transformers_reads.py CHECKPOINT...

Each is loaded by its own class in f32. No weight may be missing, left over or of
another shape; each has the bits of the file; and the loss of the same tokens is the
same for all checkpoints, which are those of one model on several meshes. Prints a
line for each.
"""
import sys

import torch
import transformers
from safetensors.torch import load_file

losses = []
for folder in sys.argv[1:]:
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    wrong = {kind: keys for kind, keys in info.items() if keys}
    if wrong:
        sys.exit(f"{folder}: {wrong}")
    weights = model.state_dict()
    read = load_file(f"{folder}/model.safetensors")
    for name, tensor in read.items():
        own = weights[name if name in weights else f"transformer.{name}"]
        if not torch.equal(own, tensor):
            sys.exit(f"{folder}: {name} differs")
    tokens = torch.arange(24).reshape(2, 12) * 7 % model.config.vocab_size
    with torch.no_grad():
        losses.append(model.eval()(tokens, labels=tokens).loss.item())
    print(f"{folder}: {type(model).__name__}, {len(read)} tensors, loss {losses[-1]:.9f}")
if len(set(losses)) != 1:
    sys.exit("losses differ")
