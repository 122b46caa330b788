#!/usr/bin/env python3
"""The times of Hugging Face transformers' generate with SDPA attention, on this machine's GPU.

    transformers_generate.py MODEL.yaml BATCHES.csv OUT.csv

MODEL.yaml is a file of configs/models; its weights are random and bf16. BATCHES.csv has the columns
batch, prompt_tokens, output_tokens (tests/gpu/fly writes one); OUT.csv has them too, and the seconds
from the first prompt token to the last output token, the second run of two. Exit 77 where torch,
transformers or a GPU is missing.
"""
import csv
import sys
import time

try:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
except ImportError as missing:
    sys.exit(print(missing, file=sys.stderr) or 77)
if not torch.cuda.is_available():
    sys.exit(print("torch finds no GPU", file=sys.stderr) or 77)


def shape_of(path):
    """The flat `key: value` lines of a model file."""
    with open(path, encoding="utf-8") as lines:
        pairs = [line.split("#")[0].split(":", 1) for line in lines if ":" in line]
    return {key.strip(): int(value) for key, value in pairs if value.strip().isdigit()}


def model_of(shape):
    config = LlamaConfig(
        vocab_size=shape["vocab"], hidden_size=shape["d_model"], intermediate_size=shape["d_ffn"],
        num_hidden_layers=shape["layers"], num_attention_heads=shape["n_q_heads"],
        num_key_value_heads=shape.get("n_kv_heads", shape["n_q_heads"]),
        max_position_embeddings=shape["max_model_len"], bos_token_id=None, eos_token_id=None,
        pad_token_id=None, attn_implementation="sdpa")
    torch.set_default_dtype(torch.bfloat16)
    torch.manual_seed(1)
    with torch.device("cuda"):
        return LlamaForCausalLM(config).eval()


def seconds_of(model, batch, n_prompt, n_output):
    tokens = torch.randint(model.config.vocab_size, (batch, n_prompt), device="cuda")
    for _ in range(2):  # the first warms up
        torch.cuda.synchronize()
        start = time.perf_counter()
        out = model.generate(tokens, attention_mask=torch.ones_like(tokens), do_sample=False,
                             max_new_tokens=n_output, pad_token_id=0)
        torch.cuda.synchronize()
        lasted = time.perf_counter() - start
    assert out.shape == (batch, n_prompt + n_output), out.shape
    return lasted


model_path, batches_path, out_path = sys.argv[1:]
model = model_of(shape_of(model_path))
columns = ("batch", "prompt_tokens", "output_tokens")
with open(batches_path, newline="", encoding="utf-8") as batches, torch.inference_mode():
    rows = [tuple(int(row[column]) for column in columns) for row in csv.DictReader(batches)]
    lines = [(*row, f"{seconds_of(model, *row):.6f}") for row in rows]
with open(out_path, "w", newline="", encoding="utf-8") as out:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([(*columns, "seconds"), *lines])
