#!/usr/bin/env python3
"""A server with a tokenizer: ids and counts are those that the packages `tokenizers` and `sentencepiece` gave the texts of
tests/tokenizers/fixtures, texts come back, answers count what they say, and the recording flies again.

usage: serve_tokenizer.py INFLIGHT FIXTURES
"""

import csv
import gzip
import json
import os
import sys

from serving import Server

TEXT = """
workload: {tokenizer: %s}
serving: {preset: vllm-v1-sync, max_model_len: 4096, kv: {num_blocks: 4000}}
cost: {model: linear, step_s: 0.001}
live: {limits: {in_flight: 256}%s}
"""


def serve(program, fixtures, name, live=''):
    return Server(program, TEXT % (os.path.join(fixtures, name), live and ', ' + live), '-q')


def ask(server, path, **body):
    status, _, text = server.post(path, body)
    return status, json.loads(text)


def golden(fixtures, name):
    """(text, ids) of each turn."""
    with open(os.path.join(fixtures, 'texts.json')) as file:
        turns = [turn['value'] for record in json.load(file) for turn in record['conversations']]
    with gzip.open(os.path.join(fixtures, name + '.csv.gz'), 'rt') as file:
        return list(zip(turns, ([int(i) for i in row['ids'].split()] for row in csv.DictReader(file))))


def texts(server, fixtures, name, comes_back):
    n = 0
    for text, ids in golden(fixtures, name):
        if not text:
            continue
        status, got = ask(server, '/tokenize', prompt=text, add_special_tokens=False)
        assert status == 200 and got['tokens'] == ids and got['count'] == len(ids), (name, text, got, ids)
        status, got = ask(server, '/detokenize', tokens=ids)
        assert status == 200 and (not comes_back or got['prompt'] == text), (name, text, got)
        usage = ask(server, '/v1/completions', prompt=text, max_tokens=1, add_special_tokens=False)[1]['usage']
        assert usage['prompt_tokens'] == len(ids), (usage, len(ids))
        n += 1
    print('ok', name, n, 'texts')


def answers(server, text):
    """Text, ids and usage of an answer say the same, streamed or not; the answer in a prompt has its ids, cached."""
    whole = ask(server, '/v1/completions', prompt=text, max_tokens=64, ignore_eos=True, return_token_ids=True,
                add_special_tokens=False)[1]
    choice, usage = whole['choices'][0], whole['usage']
    assert usage['completion_tokens'] == len(choice['token_ids']) == 64
    assert ask(server, '/tokenize', prompt=text + choice['text'], add_special_tokens=False)[1]['tokens'] == \
        choice['prompt_token_ids'] + choice['token_ids']
    again = ask(server, '/v1/completions', prompt=text + choice['text'], max_tokens=1, add_special_tokens=False)[1]['usage']
    n = usage['prompt_tokens'] + 64
    assert again['prompt_tokens'] == n and again['prompt_tokens_details']['cached_tokens'] >= (n - 1) // 16 * 16 - 16, again
    parts = server.stream({'prompt': text, 'max_tokens': 64, 'ignore_eos': True, 'return_token_ids': True,
                           'add_special_tokens': False})
    ids = [i for part in parts[:-1] for i in part['choices'][0]['token_ids']]
    said = ''.join(part['choices'][0]['text'] for part in parts[:-1])
    assert len(ids) == 64 and ask(server, '/detokenize', tokens=choice['prompt_token_ids'] + ids)[1]['prompt'] == text + said
    print('ok answers')


def chats(program, fixtures):
    messages = [{'role': 'system', 'content': 'Be brief.'},
                {'role': 'user', 'content': [{'type': 'text', 'text': 'hello'}, {'type': 'text', 'text': 'world'}]}]
    with serve(program, fixtures, 'qwen.json.gz') as server:
        written = ('<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhello\nworld<|im_end|>\n'
                   '<|im_start|>assistant\n')
        want = ask(server, '/tokenize', prompt=written, add_special_tokens=False)[1]
        got = ask(server, '/tokenize', messages=messages)[1]
        assert got == want, (got, want)
        chat = ask(server, '/v1/chat/completions', messages=messages, max_tokens=2)[1]
        assert chat['usage']['prompt_tokens'] == want['count'], chat
        names = ask(server, '/tokenize', prompt='a b\u00e9', return_token_strs=True, add_special_tokens=False)[1]
        assert ''.join(names['token_strs']) == 'a\u0120b\u00c3\u00a9', names
        assert ask(server, '/version')[0] == 405
    forms = ('chat: {begin: "<|begin_of_text|>", message: "[{role}]: {content}<|eot_id|>", turn: "[assistant]: "}')
    with serve(program, fixtures, 'llama3.json.gz', forms) as server:
        written = '<|begin_of_text|>[system]: Be brief.<|eot_id|>[user]: hello\nworld<|eot_id|>[assistant]: '
        want = ask(server, '/tokenize', prompt=written)[1]
        assert ask(server, '/tokenize', messages=messages)[1] == want and want['tokens'][0] == 1200, want
    with serve(program, fixtures, 'llama3.json.gz') as server:
        status, got = ask(server, '/v1/chat/completions', messages=messages)
        assert status == 400 and 'live.chat.message' in got['error']['message'], got
    print('ok chats')


def frames(program, fixtures):
    """What the file says of tokens around a text; a character of several tokens comes whole."""
    with gzip.open(os.path.join(fixtures, 'llama3.json.gz'), 'rt') as file:
        made = json.load(file)
    made['post_processor'] = {'type': 'Sequence', 'processors': [
        {'type': 'ByteLevel', 'add_prefix_space': True, 'trim_offsets': False, 'use_regex': True},
        {'type': 'TemplateProcessing', 'single': [{'SpecialToken': {'id': 'B', 'type_id': 0}},
                                                  {'Sequence': {'id': 'A', 'type_id': 0}}],
         'pair': [], 'special_tokens': {'B': {'id': 'B', 'ids': [1200], 'tokens': ['B']}}}]}
    folder = os.path.join(os.environ.get('TMPDIR', '/tmp'), 'serve-tokenizer-%d' % os.getpid())
    os.makedirs(folder)
    path = os.path.join(folder, 'tokenizer.json')
    try:
        with open(path, 'w') as file:
            json.dump(made, file)
        with serve(program, folder, '') as server:
            plain = ask(server, '/tokenize', prompt='hello', add_special_tokens=False)[1]
            framed = ask(server, '/tokenize', prompt='hello')[1]
            assert framed['tokens'] == [1200] + plain['tokens'], (framed, plain)
            usage = ask(server, '/v1/completions', prompt='hello', max_tokens=1)[1]['usage']
            assert usage['prompt_tokens'] == framed['count'], usage
            status, got = ask(server, '/v1/completions', prompt=[1300], max_tokens=1)
            assert status == 400 and 'out of vocabulary' in got['error']['message'], got
            emoji = ask(server, '/tokenize', prompt='\U0001f600', add_special_tokens=False)[1]['tokens']
            assert len(emoji) > 1
            assert ask(server, '/detokenize', tokens=emoji)[1]['prompt'] == '\U0001f600'
            assert ask(server, '/detokenize', tokens=emoji[:-1])[1]['prompt'] == bytes(
                '\U0001f600'.encode()[:-1]).decode(errors='replace')
            assert ask(server, '/detokenize', tokens=[1200])[1]['prompt'] == '<|begin_of_text|>'
        made['post_processor'] = {'type': 'BertProcessing', 'sep': ['x', 1], 'cls': ['y', 2]}
        with open(path, 'w') as file:
            json.dump(made, file)
        try:
            serve(program, folder, '')
            raise SystemExit('a post_processor that is not known was taken')
        except AssertionError as error:
            assert 'post_processor is BertProcessing' in str(error), error
    finally:
        os.remove(path)
        os.rmdir(folder)
    print('ok frames')


def recording(program, fixtures):
    with serve(program, fixtures, 'qwen.json.gz') as server:
        for text in ('Tell me more.', 'Tell me more. And more.', 'Something else'):
            server.stream({'prompt': text * 20, 'max_tokens': 9})
        assert server.stop() == 0
        out = server.again()
        for name in ('steps.csv', 'requests.csv', 'summary.csv'):
            with open(os.path.join(out, name), 'rb') as file:
                assert file.read() == server.file(name), name
    print('ok the recording')


def main():
    program, fixtures = sys.argv[1], os.path.abspath(sys.argv[2])
    for name, file, comes_back in (('llama3', 'llama3.json.gz', True), ('gpt2', 'gpt2.json.gz', True),
                                   ('tekken', 'tekken.json.gz', True), ('spm-bpe', 'spm-bpe.model.gz', False)):
        with serve(program, fixtures, file, 'model_name: m') as server:
            texts(server, fixtures, name, comes_back)
            answers(server, 'Tell me more. ' * 40 + 'Now')
            if name == 'spm-bpe':  # drops blanks at the end of a text
                status, got = ask(server, '/v1/completions', prompt=' ', max_tokens=1, add_special_tokens=False)
                assert status == 400 or got['usage']['prompt_tokens'] > 0, got
    chats(program, fixtures)
    frames(program, fixtures)
    recording(program, fixtures)


if __name__ == '__main__':
    main()
