#!/usr/bin/env python3
"""torch's SDPA, and FlashInfer where it is installed, on the rows of tests/gpu/bench_attn.

    bench_torch.py ROWS.csv OUT.csv

Q, K and V of a row are one set of buffers: FlashInfer reads K and V from pages of 16 tokens, SDPA the same numbers
side by side. Prints microseconds and the share of bench_attn's time. Exit 77 without torch or a GPU.
"""
import csv
import sys

try:
    import torch
except ImportError as missing:
    sys.exit(print(missing, file=sys.stderr) or 77)
if not torch.cuda.is_available():
    sys.exit(print("torch finds no GPU", file=sys.stderr) or 77)
try:
    import flashinfer
except ImportError:
    flashinfer = None

HEADS, KV_HEADS, DIM, PAGE = 32, 8, 128, 16


def least_us(run, runs=10):
    times = []
    for _ in range(runs + 1):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return min(times[1:])


def sdpa(q, k, v, n_new):
    """The last n_new tokens of each context attend to all before them."""
    batch, context = k.shape[:2]
    q, k, v = (x.view(batch, -1, x.shape[-2], DIM).transpose(1, 2) for x in (q, k, v))
    mask = None
    if 1 < n_new < context:
        mask = torch.ones(n_new, context, dtype=torch.bool, device="cuda").tril(context - n_new)
    return lambda: torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=n_new == context and n_new > 1, enable_gqa=True)


def paged(q, k, v, n_new):
    """FlashInfer on the same K and V, seen as pages."""
    batch, context = k.shape[:2]
    pages = context // PAGE
    kv = (k.view(-1, PAGE, KV_HEADS, DIM), v.view(-1, PAGE, KV_HEADS, DIM))
    indptr = torch.arange(batch + 1, dtype=torch.int32, device="cuda") * pages
    ids = torch.arange(batch * pages, dtype=torch.int32, device="cuda")
    last = torch.full((batch,), PAGE, dtype=torch.int32, device="cuda")
    space = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
    if n_new == 1:
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(space, "NHD", use_tensor_cores=True)
        wrapper.plan(indptr, ids, last, HEADS, KV_HEADS, DIM, PAGE, q_data_type=q.dtype)
    else:
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(space, "NHD")
        q_indptr = torch.arange(batch + 1, dtype=torch.int32, device="cuda") * n_new
        wrapper.plan(q_indptr, indptr, ids, last, HEADS, KV_HEADS, DIM, PAGE, causal=True)
    return lambda: wrapper.run(q.view(-1, HEADS, DIM), kv)


def times_of(row):
    batch, n_new, context = (int(row[key]) for key in ("batch", "new_tokens", "context"))
    shape = {"dtype": torch.bfloat16, "device": "cuda"}
    q = torch.randn(batch, n_new, HEADS, DIM, **shape)
    k, v = (torch.randn(batch, context, KV_HEADS, DIM, **shape) for _ in range(2))
    yield "torch SDPA", least_us(sdpa(q, k, v, n_new))
    if flashinfer:
        yield "FlashInfer", least_us(paged(q, k, v, n_new))


rows_path, out_path = sys.argv[1:]
with open(rows_path, newline="", encoding="utf-8") as lines:
    rows = [row for row in csv.DictReader(line for line in lines if not line.startswith("#"))
            if row["layout"] == "block" and row["kv"] == "bf16"]
with open(out_path, "w", newline="", encoding="utf-8") as out:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["kind", "batch", "new_tokens", "context", "who", "us", "of_ours"])
    for row in rows:
        for who, us in times_of(row):
            writer.writerow([row["kind"], row["batch"], row["new_tokens"], row["context"], who, f"{us:.2f}",
                             f"{us / float(row['us']):.3f}"])
            out.flush()
