"""The lengths that prompts of vLLM's random data set have at a server of Llama 3, as a trace.

    python3 prompts.py TOKENIZER TOKENS REQUESTS OUTPUT_TOKENS SEED > OUT.csv

TOKENIZER has the ranks of Llama 3's byte pairs, one "BASE64 RANK" a line (tokenizer.model of Llama 3, as in the package
llama-models). Needs the package tiktoken.

vLLM's benchmark client of May 2025 (benchmarks/benchmark_dataset.py at v0.8.5, RandomDataset) makes a prompt of TOKENS
consecutive token ids, from a random one on, turns them into text and sends that. The server reads the text. Its pieces
join up in other ways, and broken UTF-8 has become U+FFFD: 8,000 ids are 8,364 tokens in the mean, 10,000 are 10,463.
The client counts 8,000 and 10,000."""

import base64
import random
import sys

import tiktoken

IDS = 128000
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
# what Hugging Face's decode joins (clean_up_tokenization_spaces, on for Llama 3)
JOINED = ((' .', '.'), (' ?', '?'), (' !', '!'), (' ,', ','), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"), (" 's", "'s"),
          (" 've", "'ve"), (" 're", "'re"))


def main(tokenizer, n_tokens, n_requests, n_out, seed):
    with open(tokenizer, encoding='ascii') as text:
        ranks = {base64.b64decode(token): int(rank) for token, rank in map(str.split, text)}
    llama = tiktoken.Encoding('llama-3', pat_str=SPLIT, mergeable_ranks=ranks, special_tokens={})
    draw = random.Random(int(seed))
    print('arrival_s,prompt_tokens,output_tokens')
    for i in range(int(n_requests)):
        first = draw.randrange(IDS)
        text = llama.decode([(first + i + k) % IDS for k in range(int(n_tokens))])
        for apart, joined in JOINED:
            text = text.replace(apart, joined)
        print(f'0,{1 + len(llama.encode(text, disallowed_special=()))},{n_out}')  # begin_of_text, and the text


main(*sys.argv[1:])
