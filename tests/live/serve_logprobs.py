#!/usr/bin/env python3
"""Probabilities of an engine's tokens. The model has 16 tokens, so that the 16 likeliest are all: their probabilities
add up to 1. Streamed or whole, as a completion or a chat, the same.

usage: serve_logprobs.py INFLIGHT
"""

import json
import math
import os
import sys
import tempfile

from serving import Server

SHAPE = {'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'hidden_size': 32, 'num_attention_heads': 2,
         'num_key_value_heads': 2, 'head_dim': 16, 'intermediate_size': 32, 'num_hidden_layers': 2, 'vocab_size': 16,
         'max_position_embeddings': 512, 'rms_norm_eps': 1e-5, 'hidden_act': 'silu', 'torch_dtype': 'float32',
         'tie_word_embeddings': False, 'rope_theta': 10000.0}
CONFIG = """
executor: cpu
model: %s
serving: {preset: %s, max_model_len: 256, kv: {num_blocks: 200}}
live: {limits: {in_flight: 64}}
%s"""


def adds_up(of_token, likeliest, is_first=True):
    """is_first: the token is the likeliest, as an engine samples."""
    assert len(likeliest) == 16 and abs(sum(map(math.exp, likeliest)) - 1) < 1e-5, likeliest
    assert of_token in likeliest and (not is_first or of_token == likeliest[0] == max(likeliest)), (of_token, likeliest)


def completions(server):
    asked = {'prompt': [3, 1, 4, 1, 5], 'max_tokens': 6, 'ignore_eos': True, 'logprobs': 16, 'return_token_ids': True}
    status, _, text = server.post('/v1/completions', asked)
    assert status == 200, text
    whole = json.loads(text)['choices'][0]
    weighed = whole['logprobs']
    assert list(weighed) == ['text_offset', 'token_logprobs', 'tokens', 'top_logprobs'], weighed
    assert ''.join(weighed['tokens']) == whole['text'] and len(weighed['tokens']) == 6
    assert weighed['text_offset'] == [4 * i for i in range(6)], weighed  # words of four letters
    for token, value, likeliest in zip(weighed['tokens'], weighed['token_logprobs'], weighed['top_logprobs']):
        adds_up(value, list(likeliest.values()))
        assert likeliest[token] == value
    parts = server.stream(asked)[:-1]
    assert all(len(part['choices'][0]['logprobs']['tokens']) == 1 for part in parts)
    for key in weighed:
        streamed = [part['choices'][0]['logprobs'][key][0] for part in parts]
        assert json.dumps(streamed) == json.dumps(weighed[key]), (key, streamed, weighed[key])
    few = json.loads(server.post('/v1/completions', {**asked, 'logprobs': 2})[2])['choices'][0]['logprobs']
    assert few['token_logprobs'] == weighed['token_logprobs'] and all(len(of) == 2 for of in few['top_logprobs']), few
    none = json.loads(server.post('/v1/completions', {**asked, 'logprobs': None})[2])['choices'][0]
    assert none['logprobs'] is None and none['token_ids'] == whole['token_ids']
    status, _, text = server.post('/v1/completions', {**asked, 'logprobs': 21})
    assert status == 400 and 'which is greater than max allowed: 20' in text.decode(), text


def beside(server):
    """Several answers, and requests that ask for none, in the same steps."""
    links = [server.send('POST', '/v1/completions', {'prompt': [2, 7, 1 + i], 'max_tokens': 40, 'ignore_eos': True,
                                                     'stream': True, 'logprobs': 16 if i % 2 else None, 'n': 1 + i % 3},
                         {'Connection': 'close'}) for i in range(6)]
    from serving import events, read_answer
    for i, link in enumerate(links):
        parts = events(read_answer(link)[2])[:-1]
        assert len(parts) == 40 * (1 + i % 3), len(parts)
        begun = set()
        for part in parts:
            weighed, index = part['choices'][0]['logprobs'], part['choices'][0]['index']
            assert (weighed is not None) == bool(i % 2)
            if weighed:
                # Answers beside the first begin with a token that is drawn.
                drawn = index > 0 and index not in begun
                adds_up(weighed['token_logprobs'][0], list(weighed['top_logprobs'][0].values()), not drawn)
            begun.add(index)


def chats(server):
    asked = {'messages': [{'role': 'user', 'content': 'hello'}], 'max_tokens': 3, 'ignore_eos': True, 'logprobs': True,
             'top_logprobs': 16}
    content = json.loads(server.post('/v1/chat/completions', asked)[2])['choices'][0]['logprobs']['content']
    assert len(content) == 3
    for one in content:
        assert list(one) == ['token', 'logprob', 'bytes', 'top_logprobs'] and bytes(one['bytes']).decode() == one['token']
        adds_up(one['logprob'], [other['logprob'] for other in one['top_logprobs']])
    streamed = [part['choices'][0]['logprobs'] for part in server.stream(asked, '/v1/chat/completions')[:-1]]
    assert streamed[0] is None and [part['content'][0] for part in streamed[1:]] == content, streamed
    alone = json.loads(server.post('/v1/chat/completions', {**asked, 'top_logprobs': None})[2])
    assert [one['logprob'] for one in alone['choices'][0]['logprobs']['content']] == [one['logprob'] for one in content]


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'config.json')
        with open(path, 'w') as file:
            json.dump(SHAPE, file)
        for preset, more in (('vllm-v1-sync', ''), ('vllm-v1', ''),
                             ('vllm-v1', 'deployment: {front_end: {token_s: 0.002}}\n')):
            with Server(sys.argv[1], CONFIG % (path, preset, more), '-q') as server:
                completions(server)
                beside(server)
                chats(server)
                assert server.stop() == 0, server.said()
            print('ok', preset, more.strip())


if __name__ == '__main__':
    main()
