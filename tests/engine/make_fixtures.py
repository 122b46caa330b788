#!/usr/bin/env python3
"""Makes tests/engine/fixtures: tiny checkpoints with random weights, and what Hugging Face
transformers computes from them.

    pip install torch transformers safetensors
    python3 tests/engine/make_fixtures.py

Each folder holds config.json and safetensors as transformers saves them, and expected.safetensors:
`tokens` [n] and `logits` [n][vocab], the logits behind every token, computed in fp32. Made with
torch 2.15 and transformers 5.23 on a CPU.
"""
import json
import math
import pathlib
import shutil

import torch
from safetensors.torch import save_file
from transformers import (AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config,
                          Qwen3Config)

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
N_TOKENS = 80
SMALL = dict(vocab_size=64, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
             num_attention_heads=4, max_position_embeddings=256, bos_token_id=None,
             eos_token_id=None, pad_token_id=None)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=32)

# name, configuration, type of the weights, greatest size of a shard
MODELS = [
    ("llama", LlamaConfig(**SMALL, num_key_value_heads=2, rope_parameters=LLAMA3), torch.float32,
     "20KB"),
    ("llama-tied", LlamaConfig(**SMALL, num_key_value_heads=4, tie_word_embeddings=True,
                               attention_bias=True, mlp_bias=True), torch.bfloat16, "1GB"),
    ("qwen2", Qwen2Config(**SMALL, num_key_value_heads=2), torch.float16, "1GB"),
    ("qwen3", Qwen3Config(**SMALL, num_key_value_heads=2, head_dim=16), torch.bfloat16, "1GB"),
    ("mistral", MistralConfig(**SMALL, num_key_value_heads=1, sliding_window=24), torch.float32,
     "1GB"),
]


def randomize(model, generator):
    """Scales weights for activations of order one, with norms and biases that change the logits."""
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        if "norm" in name:
            weight.data = 1 + 0.3 * noise
        elif weight.dim() == 1:
            weight.data = 0.5 * noise
        elif "embed" in name:
            weight.data = noise
        else:
            weight.data = noise / math.sqrt(weight.shape[1])


def write_as_version_4(folder):
    """One fixture spells positions as transformers 4 did."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope
    path.write_text(json.dumps(config, indent=2) + "\n")


def make(name, config, dtype, shard):
    generator = torch.Generator().manual_seed(len(name))
    folder = FIXTURES / name
    shutil.rmtree(folder, ignore_errors=True)
    model = AutoModelForCausalLM.from_config(config)
    randomize(model, generator)
    model.tie_weights()
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    (folder / "generation_config.json").unlink(missing_ok=True)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                 attn_implementation="eager").eval()
    tokens = torch.randint(config.vocab_size, (N_TOKENS,), generator=generator)
    with torch.no_grad():
        logits = model(tokens[None]).logits[0].float()
    save_file({"tokens": tokens.float(), "logits": logits.contiguous()},
              folder / "expected.safetensors")
    if name == "llama":
        write_as_version_4(folder)


for model in MODELS:
    make(*model)
