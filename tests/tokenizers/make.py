"""Makes the fixtures: small tokenizers with the splits of the large ones, trained on inflight's own pages, and the ids that the
Python packages `tokenizers`, `tiktoken` and `sentencepiece` give some texts. Usage: python3 make.py FOLDER"""
import base64
import glob
import gzip
import io
import json
import os
import random
import sys
import tempfile

import sentencepiece
import tiktoken
from sentencepiece import sentencepiece_model_pb2
from tiktoken_ext import openai_public
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from texts import ALPHABETS, texts

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace("{1,3}", "")
DEEPSEEK = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""]
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
          r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def corpus():
    rng = random.Random(1)
    lines = []
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))) + [os.path.join(ROOT, "README.md")]:
        lines += open(path, encoding="utf-8").read().split("\n")
    for alphabet in ALPHABETS:  # words that repeat, so that there is something to merge
        words = ["".join(rng.choice(alphabet) for _ in range(rng.randint(2, 5))) for _ in range(40)]
        lines += [" ".join(rng.choice(words) for _ in range(12)) for _ in range(60)]
    return lines


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level(use_regex=False, prefix=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)


def train(lines, pre, normalizer=None, size=1200, ignore_merges=False, added=()):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    for token in added:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return tokenizer


def special(content, **flags):
    return AddedToken(content, special=True, normalized=False, **flags)


def families(lines):
    yield "gpt2", train(lines, byte_level(True), added=[special("<|endoftext|>")])
    yield "llama3", train(lines, pre_tokenizers.Sequence([split(LLAMA3), byte_level()]), ignore_merges=True,
                          added=[special("<|begin_of_text|>"), special("<|eot_id|>"), special("<|eot_id|>x")])
    yield "qwen", train(lines, pre_tokenizers.Sequence([split(QWEN), byte_level()]), normalizers.NFC(),
                        added=[special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>"), AddedToken("<|tool|>", normalized=True),
                               AddedToken("\u1e69tool", normalized=True)])
    yield "deepseek", train(lines, pre_tokenizers.Sequence([split(p) for p in DEEPSEEK] + [byte_level()]), normalizers.Sequence([]))
    yield "starcoder", train(lines, pre_tokenizers.Sequence([pre_tokenizers.Digits(True), byte_level(True)]), added=[special("<|endoftext|>")])
    yield "prefix", train(lines, byte_level(True, True), added=[special("<mask>", lstrip=True), special("</s>", rstrip=True)])


def ranks_of(tokenizer):
    letters = {c: b for b, c in letters_of_bytes().items()}
    ranks = {}
    for word, _ in sorted(tokenizer.get_vocab(False).items(), key=lambda item: item[1]):
        ranks.setdefault(bytes(letters[c] for c in word), len(ranks))
    return ranks


def letters_of_bytes():
    own = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    letters, n = {b: chr(b) for b in own}, 0
    for byte in range(256):
        if byte not in letters:
            letters[byte] = chr(256 + n)
            n += 1
    return letters


def put(path, data):
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as out:
        out.write(data)


def spm(lines, kind, vocab_size=1200, byte_fallback=True, character_coverage=0.999, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, model_type=kind, vocab_size=vocab_size, minloglevel=2,
                                             character_coverage=character_coverage, byte_fallback=byte_fallback, **options)
    return model.getvalue()


def with_runs(model):
    """Its last pieces of two letters are runs of blanks now, with one score below all others, as Llama 2's and Mistral's are."""
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model)
    merged = [piece for piece in proto.pieces if piece.type == piece.NORMAL and len(piece.piece) > 1]
    for piece, n in zip(merged[-6:], (2, 3, 4, 5, 8, 16)):
        piece.piece, piece.score = n * "\u2581", -1e9
    return proto.SerializeToString()


def variants(lines):
    """Models of SentencePiece that keep blanks and know no bytes, that fold letters, that have symbols of their own, that have runs of blanks."""
    keeps = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    small = {"vocab_size": 600, "byte_fallback": False, "character_coverage": 0.98}
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.writelines(f"{letter:X}\t{letter + 32:X}\n" for letter in range(ord("A"), ord("Z") + 1))
        rules.flush()
        yield "kept", spm(lines, "unigram", **small, **keeps)
        yield "folded", spm(lines, "bpe", normalization_rule_tsv=rules.name, remove_extra_whitespaces=False, **small)
        yield "symbols", spm(lines, "unigram", user_defined_symbols=["the", "<x>", "re"], **small, **keeps)
        yield "symbols-bpe", spm(lines, "bpe", user_defined_symbols=["the", "<x>", "re"], **small, **keeps)
        yield "runs", with_runs(spm(lines, "bpe", **keeps))


def write_golden(folder, name, samples, encode):
    lines = ["record,turn,tokens,ids\n"]
    for i, sample in enumerate(samples):
        ids = encode(sample)
        lines.append(f"{i // 2 + 1},{i % 2},{len(ids)},{' '.join(map(str, ids))}\n")
    put(os.path.join(folder, name + ".csv.gz"), "".join(lines).encode())


def sharegpt(samples):
    return [{"id": str(i), "conversations": [{"from": "human", "value": samples[i]}, {"from": "gpt", "value": samples[i + 1]}]}
            for i in range(0, len(samples), 2)]


def main(folder):
    lines = corpus()
    samples = texts(60, 7)
    with open(os.path.join(folder, "texts.json"), "w") as out:
        json.dump(sharegpt(samples), out, indent=0)
    for name, tokenizer in families(lines):
        put(os.path.join(folder, name + ".json.gz"), tokenizer.to_str().encode())
        write_golden(folder, name, samples, lambda text: tokenizer.encode(text, add_special_tokens=False).ids)
        if name == "qwen":
            ranks = ranks_of(tokenizer)
    openai = {name: getattr(openai_public, name) for name in ("r50k_base", "cl100k_base", "o200k_base")}
    openai_public.load_tiktoken_bpe = lambda *a, **k: {}
    put(os.path.join(folder, "ranks.gz"), b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
    for name, constructor in openai.items():
        encoding = tiktoken.Encoding(name, pat_str=constructor()["pat_str"], mergeable_ranks=ranks, special_tokens={})
        write_golden(folder, name, samples, encoding.encode_ordinary)
    encoding = tiktoken.Encoding("tekken", pat_str=TEKKEN, mergeable_ranks=ranks, special_tokens={})
    tekken = {"config": {"pattern": TEKKEN, "num_vocab_tokens": len(ranks), "default_vocab_size": len(ranks) + 10,
                         "default_num_special_tokens": 10, "version": "v3"},
              "vocab": [{"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None} for token, rank in ranks.items()]}
    put(os.path.join(folder, "tekken.json.gz"), json.dumps(tekken).encode())
    write_golden(folder, "tekken", samples, lambda text: [10 + token for token in encoding.encode_ordinary(text)])
    for kind in ("unigram", "bpe"):
        model = spm(lines, kind, **({"normalization_rule_name": "identity", "remove_extra_whitespaces": False} if kind == "bpe" else {}))
        put(os.path.join(folder, "spm-" + kind + ".model.gz"), model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        write_golden(folder, "spm-" + kind, samples, processor.encode)
    for name, model in variants(lines):
        put(os.path.join(folder, "spm-" + name + ".model.gz"), model)


if __name__ == "__main__":
    main(sys.argv[1])
