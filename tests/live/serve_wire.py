#!/usr/bin/env python3
"""Answers have the form of vLLM's: the keys in their order, the kinds of their values, and what is fixed, such as the
words of errors. Against captures of vLLM 0.32.0, tests/live/wire/serve-vllm-0.32.txt.

usage: serve_wire.py INFLIGHT CAPTURES
"""

import json
import re
import sys

from serving import Server

CONFIG = """
serving: {preset: vllm-v1-sync, max_model_len: 2048, kv: {num_blocks: 4000}}
cost: {model: linear, step_s: 0.001}
live: {model_name: m}
"""

# What is the same in every answer of the kind.
FIXED = {'object', 'finish_reason', 'index', 'role', 'type', 'param', 'code', 'message', 'detail', 'completion_tokens',
         'stop_reason', 'logprobs'}


def captures(path):
    found = {}
    with open(path) as file:
        for part in file.read().split('### ')[1:]:
            name, status, body = part.split('\n', 2)
            found[name] = (int(status), body.strip())
    return found


def shape(value, key=''):
    """Numbers and texts as kinds, but for those that are fixed."""
    if isinstance(value, dict):
        return {k: shape(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [shape(v) for v in value]
    if key in FIXED and not isinstance(value, dict):
        return value
    if value is None or isinstance(value, bool):
        return value
    return 'number' if isinstance(value, (int, float)) else 'text'


def shapes(body):
    if not body.startswith('data: '):
        return [shape(json.loads(body))]
    return [line[6:] if line == 'data: [DONE]' else shape(json.loads(line[6:]))
            for line in re.split(r'\n\n+', body.strip())]


def compare(name, want, got):
    want_status, want_body = want
    assert got[0] == want_status, (name, got)
    want_shapes, got_shapes = shapes(want_body), shapes(got[2].decode())
    assert len(want_shapes) == len(got_shapes), (name, len(want_shapes), len(got_shapes), got[2])
    for i, (one, other) in enumerate(zip(want_shapes, got_shapes)):
        # json.dumps keeps the order of the keys
        assert json.dumps(one) == json.dumps(other), '%s, %d:\n%s\n%s' % (name, i, json.dumps(one), json.dumps(other))
    print('ok', name)


def sorted_choices(got):
    """Answers of a step come in the order of the answers, those of vLLM an answer at a time."""
    parts = [part for part in got[2].decode().split('\n\n') if part]
    parts[:-1] = sorted(parts[:-1], key=lambda part: json.loads(part[6:])['choices'][0]['index'])
    return got[0], got[1], '\n\n'.join(parts).encode()


def main():
    want = captures(sys.argv[2])
    fixed = {'ignore_eos': True, 'model': 'm'}
    usage = {'stream': True, 'stream_options': {'include_usage': True}}
    with Server(sys.argv[1], CONFIG, '-q') as server:
        chat = {'messages': [{'role': 'user', 'content': 'hello'}], 'max_tokens': 3, **fixed}
        asked = {
            'models': lambda: server.ask('GET', '/v1/models'),
            'completion': lambda: server.post('/v1/completions', {'prompt': [1], 'max_tokens': 1, 'best_of': 2, **fixed}),
            'completion-stream-usage': lambda: server.post(
                '/v1/completions', {'prompt': 'hello', 'max_tokens': 3, **usage, **fixed}),
            'completion-n2': lambda: server.post(
                '/v1/completions', {'prompt': 'hello', 'max_tokens': 2, 'n': 2, **fixed}),
            'completion-n2-stream': lambda: sorted_choices(server.post(
                '/v1/completions', {'prompt': 'hello', 'max_tokens': 2, 'n': 2, 'stream': True, **fixed})),
            'chat-stream': lambda: server.post('/v1/chat/completions', {**chat, **usage}),
            'chat': lambda: server.post('/v1/chat/completions', chat),
            'too-long': lambda: server.post('/v1/completions', {'model': 'm', 'prompt': 'x', 'max_tokens': 5000}),
            'no-model': lambda: server.post('/v1/completions', {'model': 'nope', 'prompt': 'x'}),
            'no-json': lambda: server.post('/v1/completions', b'{"model":}'),
            'negative': lambda: server.post('/v1/completions', {'model': 'm', 'prompt': 'x', 'max_tokens': -1}),
            'wrong-type': lambda: server.post('/v1/completions', {'model': 'm', 'prompt': 'x', 'max_tokens': 'x'}),
            'no-content-type': lambda: server.post('/v1/completions', {'prompt': 'x'}, {'Content-Type': 'text/plain'}),
            'empty-prompt': lambda: server.post('/v1/completions', {'model': 'm', 'prompt': ''}),
            'no-path': lambda: server.ask('GET', '/nothing'),
            'no-method': lambda: server.ask('GET', '/v1/completions'),
        }
        assert set(asked) == set(want), set(asked) ^ set(want)
        for name, ask in asked.items():
            compare(name, want[name], ask())
        answer = server.ask('GET', '/v1/completions')
        assert answer[1]['allow'] == 'POST', answer
        answer = server.post('/v1/completions', {'prompt': [5] * 9, 'max_tokens': 4, **usage, **fixed})
        assert answer[1]['content-type'] == 'text/event-stream; charset=utf-8', answer
        continuous(server)
        identities(server)
        logprobs(server)


def continuous(server):
    got = server.stream({'prompt': [7, 8, 9], 'max_tokens': 5, 'ignore_eos': True, 'return_token_ids': True,
                         'stream_options': {'include_usage': True, 'continuous_usage_stats': True}})
    assert [e['usage']['completion_tokens'] for e in got[:-1]] == [1, 2, 3, 4, 5, 5], got
    assert all(e['usage']['prompt_tokens'] == 3 for e in got[:-1]), got
    assert got[0]['choices'][0]['prompt_token_ids'] == [7, 8, 9] and got[1]['choices'][0]['prompt_token_ids'] is None
    assert all(len(e['choices'][0]['token_ids']) == 1 for e in got[:-2]), got
    print('ok continuous usage')


def logprobs(server):
    """None are known: the words of vLLM 0.32 (sampling_params.py and protocol.py, beside max_logprobs 0)."""
    def refused(path, **body):
        status, _, text = server.post(path, {'prompt': 'x', 'messages': [{'role': 'user', 'content': 'x'}], **body})
        return status, json.loads(text).get('error', {}).get('message', '')
    completions, chat = '/v1/completions', '/v1/chat/completions'
    for path, body, words in (
            (completions, {'logprobs': 3}, 'Requested sample logprobs of 3, which is greater than max allowed: 0'),
            (completions, {'logprobs': 0}, 'sample logprobs are not available here'),
            (completions, {'logprobs': -2}, '`logprobs` must be a positive value or -1.'),
            (completions, {'prompt_logprobs': 1}, 'Requested prompt logprobs of 1, which is greater than max allowed: 0'),
            (chat, {'logprobs': True, 'top_logprobs': 5}, 'Requested sample logprobs of 5, which is greater'),
            (chat, {'top_logprobs': 5}, 'when using `top_logprobs`, `logprobs` must be set to true.')):
        status, said = refused(path, **body)
        assert status == 400 and said.startswith(words), (body, status, said)
    for path, body in ((completions, {'logprobs': None}), (chat, {'logprobs': False, 'top_logprobs': 0})):
        assert refused(path, max_tokens=1, **body)[0] == 200, body
    print('ok logprobs')


def identities(server):
    """An answer that comes back in a prompt counts the tokens that it had; ids are those that were given out."""
    status, _, body = server.post('/v1/completions', {'prompt': 'four', 'max_tokens': 9, 'ignore_eos': True,
                                                      'return_token_ids': True})
    choice = json.loads(body)['choices'][0]
    counted = json.loads(server.post('/tokenize', {'prompt': choice['text']})[2])
    assert status == 200 and counted['count'] == 9 and counted['tokens'] == choice['token_ids'], (counted, choice)
    text = json.loads(server.post('/detokenize', {'tokens': choice['token_ids']})[2])
    assert text['prompt'] == choice['text'], (text, choice)
    usage = json.loads(server.post('/v1/completions', {'prompt': 'x' * 17, 'max_tokens': 1})[2])['usage']
    assert usage['prompt_tokens'] == 5, usage
    status, _, body = server.post('/v1/completions', {'prompt': ['aaaa', 'bbbbbbbb', [1, 2, 3]], 'max_tokens': 2, 'n': 2,
                                                      'ignore_eos': True})
    answer = json.loads(body)
    assert [c['index'] for c in answer['choices']] == [0, 1, 2, 3, 4, 5], answer
    assert answer['usage'] == {**answer['usage'], 'prompt_tokens': 6, 'completion_tokens': 12}, answer
    status, headers, body = server.post('/v1/completions', {'prompt': 'x', 'max_tokens': 1}, {'X-Request-Id': 'abc'})
    assert json.loads(body)['id'] == 'cmpl-abc', body
    print('ok identities')


if __name__ == '__main__':
    main()
