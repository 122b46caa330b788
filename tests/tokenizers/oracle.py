"""Ids of `inflight trace tokens` against those of the Python packages `tokenizers`, `tiktoken` and `sentencepiece`, on texts that are drawn
anew for the seed. Usage: oracle.py INFLIGHT N_TEXTS SEED FAMILY|PATH...; exit 77: a package is missing."""
import base64
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unicodedata

try:
    import sentencepiece
    import tiktoken
    import tokenizers
    from tiktoken_ext import openai_public
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)
from texts import texts

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
FAMILIES = {"gpt2": "gpt2.json.gz", "llama3": "llama3.json.gz", "qwen": "qwen.json.gz", "deepseek": "deepseek.json.gz", "starcoder": "starcoder.json.gz",
            "prefix": "prefix.json.gz", "tekken": "tekken.json.gz", "unigram": "spm-unigram.model.gz", "bpe": "spm-bpe.model.gz",
            "r50k_base": "ranks.gz", "cl100k_base": "ranks.gz", "o200k_base": "ranks.gz"}


def unpacked(path):
    data = open(path, "rb").read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def encoder_of(name, data):
    if data[:1] == b"{":
        root = json.loads(data)
        if "model" in root:
            tokenizer = tokenizers.Tokenizer.from_str(data.decode())
            return lambda text: tokenizer.encode(text, add_special_tokens=False).ids
        config = root["config"]
        shift = config["default_num_special_tokens"]
        ranks = {base64.b64decode(t["token_bytes"]): t["rank"] for t in root["vocab"][: config["default_vocab_size"] - shift]}
        encoding = tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
        return lambda text: [shift + token for token in encoding.encode_ordinary(text)]
    if data[:1] == b"\n":
        return sentencepiece.SentencePieceProcessor(model_proto=data).encode
    ranks = {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in data.splitlines()}
    constructor = getattr(openai_public, name)
    openai_public.load_tiktoken_bpe = lambda *a, **k: {}
    encoding = tiktoken.Encoding(name, pat_str=constructor()["pat_str"], mergeable_ranks=ranks, special_tokens={})
    return encoding.encode_ordinary


def ours(inflight, path, samples):
    with tempfile.TemporaryDirectory() as folder:
        trace, out = os.path.join(folder, "texts.json"), os.path.join(folder, "ids.csv")
        with open(trace, "w") as file:
            json.dump([{"conversations": [{"from": "human", "value": sample}]} for sample in samples], file)
        subprocess.run([inflight, "trace", "tokens", trace, "--tokenizer", path, "--ids", "-o", out], check=True)
        rows = [line.rstrip("\n").split(",") for line in open(out)][1:]
    assert len(rows) == len(samples)
    return [[int(token) for token in row[3].split()] for row in rows]


def is_tie(processor, expected, found):
    """Of a unigram model: as many pieces, of the same total score, for the same text. Version 0.1.97 finds what Debian's does."""
    scores = [sum(processor.GetScore(token) for token in ids) for ids in (expected, found)]
    same_text = processor.Decode(expected) == processor.Decode(found)
    return len(expected) == len(found) and same_text and abs(scores[0] - scores[1]) < 1e-4


def check(inflight, samples, name):
    path = os.path.join(FIXTURES, FAMILIES[name]) if name in FAMILIES else name
    data = unpacked(path)
    encode = encoder_of(name, data)
    with tempfile.TemporaryDirectory() as folder:
        if name in FAMILIES and FAMILIES[name] == "ranks.gz":  # the name says how texts are split
            path = os.path.join(folder, name + ".tiktoken")
            open(path, "wb").write(data)
        found = ours(inflight, path, samples)
    wrong = [i for i, sample in enumerate(samples) if encode(sample) != found[i]]
    if data[:1] == b"\n" and wrong:
        processor = sentencepiece.SentencePieceProcessor(model_proto=data)
        ties = [i for i in wrong if is_tie(processor, encode(samples[i]), found[i])]
        wrong = [i for i in wrong if i not in ties]
        print(f"{name}: {len(ties)} texts have several best segmentations, of which versions of SentencePiece take different ones")
    n_tokens = sum(map(len, found))
    print(f"{name}: {len(samples)} texts, {n_tokens} tokens, {len(wrong)} differ")
    for i in wrong[:3]:
        expected = encode(samples[i])
        at = next((k for k, (a, b) in enumerate(zip(expected, found[i])) if a != b), min(len(expected), len(found[i])))
        print(f"  text {i}, token {at}: expected {expected[at:at + 6]}, found {found[i][at:at + 6]}: {samples[i][:200]!r}")
    return not wrong


def main():
    inflight, n, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if unicodedata.unidata_version != "14.0.0":
        print("skipped: Python knows Unicode", unicodedata.unidata_version, "and would draw letters that PCRE2 does not know")
        sys.exit(77)
    samples = texts(n, seed)
    right = [check(inflight, samples, name) for name in sys.argv[4:] or FAMILIES]
    sys.exit(not all(right))


if __name__ == "__main__":
    main()
