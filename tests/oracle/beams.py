#!/usr/bin/env python3
"""Beam search against tables of sets: used, shared and token slots of every step, request by request.

    beams.py INFLIGHT SOURCE
"""
import csv
import os
import random
import subprocess
import sys
import tempfile

MASK = (1 << 64) - 1
BEAM = 13  # what the draws are for


def mix(x):
    """SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014)."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def draw(seed, request, index):
    x = mix(seed)
    for part in (BEAM, request, index):
        x = mix(x ^ part)
    return x


def parent(seed, fork_frac, request, n_out, seq, n_seqs):
    index = (n_out << 16 | seq) << 1
    if ((draw(seed, request, index) >> 12) + 0.5) / 2**52 >= fork_frac:
        return seq
    return draw(seed, request, index | 1) % n_seqs


def steps_of(request, prompt, output, n_seqs, block, seed, fork_frac):
    """Used blocks, blocks saved, slots that hold a token while each step runs."""
    n_made = (prompt + block - 1) // block
    yield n_made, 0, prompt
    tables = [list(range(n_made)) for _ in range(n_seqs)]
    for n_out in range(1, output):
        parents = [parent(seed, fork_frac, request, n_out, s, n_seqs) for s in range(n_seqs)]
        tables = [list(tables[p]) for p in parents]
        n_tokens = prompt + n_out - 1  # computed
        written = set()
        for table in tables:
            if n_tokens % block == 0:
                table.append(n_made)
                n_made += 1
            elif table[-1] in written:
                table[-1] = n_made
                n_made += 1
            written.add(table[-1])
        slots = {}
        for table in tables:
            for i, b in enumerate(table):
                slots[b] = min(block, n_tokens + 1 - i * block)
        yield len(slots), sum(map(len, tables)) - len(slots), sum(slots.values())


def check(inflight, block, fork_frac, seed):
    dice = random.Random(seed)
    requests = [(dice.randint(1, 40), dice.randint(1, 60), dice.randint(2, 6)) for _ in range(40)]
    with open("trace.csv", "w") as trace:
        trace.write("arrival_s,prompt_tokens,output_tokens,samples\n")
        for i, (prompt, output, n_seqs) in enumerate(requests):
            trace.write(f"{1000 * i},{prompt},{output},{n_seqs}\n")
    with open("config.yaml", "w") as config:
        config.write(
            "workload:\n  trace: trace.csv\n"
            f"  beams: {{search: true, fork_frac: {fork_frac}, seed: {seed}}}\n"
            "serving:\n  preset: vllm-paper\n  max_model_len: 128\n"
            f"  kv: {{num_blocks: 2000, block_tokens: {block}}}\n"
            "cost: {model: linear, step_s: 1}\noutput: {dir: out, steps: true}\n"
        )
    subprocess.run([inflight, "run", "config.yaml", "--quiet"], check=True)
    rows = list(csv.DictReader(open("out/steps.csv")))
    expected = [
        step
        for i, (prompt, output, n_seqs) in enumerate(requests)
        for step in steps_of(i, prompt, output, n_seqs, block, seed, fork_frac)
    ]
    found = [
        tuple(int(row[c]) for c in ("kv_used_blocks", "kv_shared_blocks", "kv_token_slots"))
        for row in rows
    ]
    for i, pair in enumerate(zip(expected, found)):
        if pair[0] != pair[1]:
            sys.exit(f"seed {seed}, blocks of {block}, step {i}: expected {pair[0]}, found {pair[1]}")
    if len(expected) != len(found):
        sys.exit(f"seed {seed}: expected {len(expected)} steps, found {len(found)}")
    return len(found)


def main():
    inflight = os.path.abspath(sys.argv[1])
    os.environ["INFLIGHT_DATA"] = os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        n = 0
        for seed in range(1, 13):
            for block in (1, 4, 16):
                n += check(inflight, block, (0, 0.1, 0.5, 1)[seed % 4], seed)
        print(f"{n} steps of beam searches agree")
        os.chdir("/")


main()
