"""The prefixes that the prompts of a recorded run of LMBenchmark share, as columns of a trace without any text.

    python3 prefixes.py RUN.json TOKENIZER RECORDED.csv.gz OUT.csv.gz
    python3 prefixes.py RUN.json TOKENIZER RECORDED.csv.gz WARM-UP.csv WARMUP.json

The second writes the requests that the benchmark sends before each run (sharegpt/warmup.json): the turn before the
first one of each conversation, in the group of that. Their answers are as long as was asked for.

RUN.json is the list of prompts of the benchmark (LMCache/LMBenchmark, sharegpt/run.json, Apache-2.0, gzipped or not):
row i of the recording sent its entry i. TOKENIZER has the ranks of Llama 3's byte pairs, one "BASE64 RANK" a line
(tokenizer.model of Llama 3, as in the package llama-models). Needs the package tiktoken.

Prompts go through Llama 3.1's chat template: 33 tokens before the text (begin_of_text, the system's header with its
two dates, the user's header), 5 behind it. The recording's prompt_tokens say so: text + 38 in 233 of 252 rows, one
more or less where the template trims blanks.

A prompt continues the latest earlier one of which it repeats the whole text but at most TAIL tokens: the last tokens of
a text may be others if more text follows. A conversation is a group; prefix_tokens of a prompt are the tokens that it
shares with the one before it or behind it, whichever is more."""

import base64
import csv
import gzip
import json
import sys

import tiktoken

BEFORE, TAIL = 33, 8
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")


def opened(path):
    return gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")


def encoder(path):
    with open(path, "rb") as file:
        pairs = [line.split() for line in file if line.strip()]
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    return tiktoken.Encoding("llama3", pat_str=SPLIT, mergeable_ranks=ranks, special_tokens={})


def common(a, b):
    n = 0
    for x, y in zip(a, b):
        if x != y:
            break
        n += 1
    return n


def conversations(prompts):
    """The group of each prompt, and how many tokens of its text it shares within the group."""
    group, shared, newest = [], [0] * len(prompts), {}
    for i, prompt in enumerate(prompts):
        found = [(n, j) for j in newest.values()
                 if (n := common(prompt, prompts[j])) >= max(len(prompts[j]) - TAIL, 1)]
        n, j = max(found, default=(0, None))
        group.append(len(set(group)) if j is None else group[j])
        newest[group[i]] = i
        if j is not None:
            shared[i], shared[j] = n, max(shared[j], n)
    return group, shared


def texts_of(path):
    with opened(path) as file:
        return json.load(file)


def write_warm_up(path, entries, encode, prompts, group):
    with open(path, "w", encoding="ascii") as file:
        file.write("prompt_tokens,output_tokens,prefix_group,prefix_tokens\n")
        for entry in entries:
            text = encode(entry["input"].strip())
            n, i = max((common(text, prompt), -i) for i, prompt in enumerate(prompts))
            if n < len(text) - TAIL:
                sys.exit(f"{path}: no prompt continues the one of {len(text)} tokens")
            file.write(f"{BEFORE + len(text) + 5},{entry['output_length']},{group[-i]},{BEFORE + n}\n")
    print(f"{path}: {len(entries)} prompts")


def main(run, tokenizer, recorded, out, warm_up=None):
    texts = [entry["input"] for entry in texts_of(run)]
    with opened(recorded) as file:
        rows = list(csv.DictReader(file))
    encode = encoder(tokenizer).encode
    prompts = [encode(text.strip()) for text in texts]
    off = [int(row["prompt_tokens"]) - len(prompt) - BEFORE - 5 for row, prompt in zip(rows, prompts)]
    if len(rows) != len(prompts) or max(map(abs, off)) > 1:
        sys.exit(f"{recorded}: its prompts are not those of {run}")
    group, shared = conversations(prompts)
    if warm_up:
        return write_warm_up(out, texts_of(warm_up), encode, prompts, group)
    with gzip.GzipFile(out, "wb", 9, mtime=0) as file:
        file.write(b"request_id,arrival_s,prompt_tokens,output_tokens,prefix_group,prefix_tokens\n")
        for i, row in enumerate(rows):
            n = min(BEFORE + shared[i], int(row["prompt_tokens"])) if shared[i] else 0
            file.write(f"{i},{row['launch_time']},{row['prompt_tokens']},{row['generation_tokens']},"
                       f"{group[i]},{n}\n".encode("ascii"))
    print(f"{out}: {len(set(group))} conversations, {sum(map(bool, shared))} of {len(rows)} prompts share a prefix")


if __name__ == "__main__":
    main(*sys.argv[1:])
