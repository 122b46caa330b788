#!/usr/bin/env python3
"""Programs that others wrote, against `inflight serve`: what they count is what the server recorded.

usage: clients.py INFLIGHT ROOT [openai | vllm-bench | aiperf | guidellm | vllm-router | sglang-router]...

Without names all that are installed; a name that is not installed: exit 77. `vllm`, `aiperf`, `guidellm`,
`vllm-router` and `python3 -m sglang_router.launch_router` are looked for in PATH. The tokenizer is the small Qwen of
tests/tokenizers/fixtures, for both sides.
"""

import csv
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

from others import each, has_module
from serving import Server

CONFIG = """
workload: {tokenizer: %s}
serving: {preset: vllm-v1, max_model_len: 4096, kv: {num_blocks: 8000}}
cost: {model: linear, step_s: 0.004, prefill_token_s: 5e-6}
live: {model_name: m}
"""
TEMPLATE = ("{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
            "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
SHAPE = {'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'hidden_size': 64, 'num_attention_heads': 1,
         'num_key_value_heads': 1, 'intermediate_size': 64, 'num_hidden_layers': 1, 'vocab_size': 1210,
         'max_position_embeddings': 4096}
OFFLINE = {**os.environ, 'HF_HUB_OFFLINE': '1', 'VLLM_NO_USAGE_STATS': '1', 'DO_NOT_TRACK': '1'}


class Bench:
    """A server, a folder with its tokenizer for clients, and what the server recorded."""

    def __init__(self, program, root):
        self.program, self.fixture = program, os.path.join(root, 'tests/tokenizers/fixtures/qwen.json.gz')
        self.folder = tempfile.mkdtemp(prefix='clients-')
        self.tokenizer = os.path.join(self.folder, 'tokenizer')
        os.makedirs(self.tokenizer)
        with gzip.open(self.fixture, 'rb') as packed:
            self.put('tokenizer/tokenizer.json', packed.read().decode())
        self.put('tokenizer/config.json', json.dumps(SHAPE))
        self.put('tokenizer/tokenizer_config.json', json.dumps(
            {'tokenizer_class': 'PreTrainedTokenizerFast', 'eos_token': '<|endoftext|>', 'model_max_length': 4096,
             'chat_template': TEMPLATE}))

    def put(self, name, text):
        with open(os.path.join(self.folder, name), 'w') as file:
            file.write(text)
        return os.path.join(self.folder, name)

    def server(self):
        server = Server(self.program, CONFIG % self.fixture, '-q')
        server.url = 'http://127.0.0.1:%d' % server.port
        return server

    def run(self, *command, env=None):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=self.folder, env=env or OFFLINE)
        assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout


def recorded(server):
    """(prompt tokens, output tokens) of all that finished, sorted; the server ends."""
    assert server.stop() == 0, server.said()
    rows = list(csv.DictReader(server.file('requests.csv').decode().splitlines()))
    assert all(row['status'] == 'finished' for row in rows), [row['status'] for row in rows]
    return sorted((int(row['prompt_tokens']), int(row['output_tokens'])) for row in rows)


# ---- one program each ----

def openai(bench):
    import openai as api
    with bench.server() as server:
        client = api.OpenAI(base_url=server.url + '/v1', api_key='none', max_retries=0)
        assert [model.id for model in client.models.list()] == ['m']
        fixed = {'extra_body': {'ignore_eos': True}}
        whole = client.completions.create(model='m', prompt='Tell me more', max_tokens=8, **fixed)
        assert whole.usage.completion_tokens == 8 and whole.choices[0].finish_reason == 'length', whole
        parts = list(client.completions.create(model='m', prompt='Tell me', max_tokens=5, n=2, stream=True,
                                               stream_options={'include_usage': True}, **fixed))
        assert parts[-1].usage.completion_tokens == 10 and len(parts) == 11, parts
        messages = [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'hello'}]
        chat = client.chat.completions.create(model='m', messages=messages, max_completion_tokens=6, **fixed)
        said, usage = '', None
        for part in client.chat.completions.create(model='m', messages=messages, max_tokens=6, stream=True,
                                                   stream_options={'include_usage': True}, **fixed):
            usage = part.usage or usage
            said += (part.choices[0].delta.content or '') if part.choices else ''
        assert usage.prompt_tokens == chat.usage.prompt_tokens and usage.completion_tokens == 6 and said
        for wrong, kind in (({'model': 'none'}, api.NotFoundError), ({'max_tokens': 99999}, api.BadRequestError)):
            try:
                client.completions.create(**{'model': 'm', 'prompt': 'x', **wrong})
                raise AssertionError('%r was answered' % wrong)
            except kind as error:
                assert error.body['code'] == error.status_code
        with client.completions.create(model='m', prompt='x', max_tokens=4000, stream=True, **fixed) as stream:
            next(iter(stream))
        while json.loads(server.ask('GET', '/load')[2])['server_load'] > 0:
            time.sleep(0.05)
        assert server.stop() == 0
        assert server.file('requests.csv').count(b',aborted,') == 1


def vllm_bench(bench):
    with bench.server() as server:
        bench.run('vllm', 'bench', 'serve', '--backend', 'vllm', '--base-url', server.url, '--model', 'm', '--tokenizer',
                  bench.tokenizer, '--dataset-name', 'random', '--random-input-len', '100', '--random-output-len', '20',
                  '--num-prompts', '40', '--num-warmups', '0', '--request-rate', '20', '--ignore-eos', '--save-result',
                  '--save-detailed', '--result-filename', 'r.json')
        with open(os.path.join(bench.folder, 'r.json')) as file:
            result = json.load(file)
        rows = recorded(server)
    assert result['completed'] == 40 and len(rows) in (40, 41), len(rows)  # one to see whether the server answers
    counted = sorted(zip(result['input_lens'], result['output_lens']))
    left = list(rows)
    for row in counted:
        left.remove(row)


def aiperf(bench):
    trace = bench.put('t.jsonl', ''.join(json.dumps(
        {'timestamp': 100 * i, 'input_length': 200 + 40 * i, 'output_length': 5 + i, 'hash_ids': [i]}) + '\n' for i in range(4)))
    with bench.server() as server:
        bench.run('aiperf', 'profile', '-m', 'm', '--url', server.url[7:], '--endpoint-type', 'completions',
                  '--streaming', '--tokenizer', bench.tokenizer, '--input-file', trace, '--custom-dataset-type',
                  'mooncake_trace', '--fixed-schedule', '--artifact-dir', os.path.join(bench.folder, 'aiperf'),
                  '--extra-inputs', 'ignore_eos:true', '--ui', 'none',
                  env={key: value for key, value in OFFLINE.items() if key != 'HF_HUB_OFFLINE'})
        rows = recorded(server)
    assert rows == [(200 + 40 * i, 5 + i) for i in range(4)], rows


def guidellm(bench):
    out = os.path.join(bench.folder, 'g.json')
    with bench.server() as server:
        bench.run('guidellm', 'run', '--backend', 'kind=openai_http,target=%s,model=m' % server.url, '--profile',
                  'kind=constant,rate=5', '--constraint', 'kind=max_requests,count=8', '--tokenizer',
                  'kind=huggingface_auto,model=' + bench.tokenizer, '--data',
                  'kind=synthetic_text,prompt_tokens=64,output_tokens=8', '--output', 'kind=json,path=' + out,
                  '--disable-console-interactive')
        assert server.stop() == 0
        rows = list(csv.DictReader(server.file('requests.csv').decode().splitlines()))
    done = [row for row in rows if row['status'] == 'finished']
    assert len(done) >= 8 and {row['output_tokens'] for row in done} == {'8'}, rows


def behind_router(bench, command, port):
    """A router in front of two servers: in turn each has half of the requests. What a router that goes by caches sends
    where is its own business."""
    for policy in ('round_robin', 'cache_aware'):
        counts = routed(bench, [*command, '--policy', policy, '--port', str(port)])
        assert sum(counts) == 30 and (policy != 'round_robin' or counts == [15, 15]), (policy, counts)
        print('  ', policy, counts)


def routed(bench, command):
    with bench.server() as one, bench.server() as other:
        log = open(os.path.join(bench.folder, 'router.log'), 'w')
        router = subprocess.Popen([*command, '--worker-urls', one.url, other.url, '--host', '127.0.0.1'], stdout=log,
                                  stderr=log, cwd=bench.folder, env=OFFLINE)
        try:
            url = 'http://127.0.0.1:' + command[-1]
            until = time.monotonic() + 120
            while not answers(url + '/v1/models'):
                assert time.monotonic() < until and router.poll() is None, open(log.name).read()[-3000:]
                time.sleep(0.2)
            for i in range(30):
                prompt = '%d of all, told once more. ' % (i % 6) * 30 + 'And %d' % i
                asked = {'model': 'm', 'prompt': prompt, 'max_tokens': 5, 'ignore_eos': True, 'stream': i % 2 == 0}
                request = urllib.request.Request(url + '/v1/completions', json.dumps(asked).encode(),
                                                 {'Content-Type': 'application/json'})
                with urllib.request.urlopen(request, timeout=60) as answer:
                    text = answer.read()
                assert text.count(b'data: ') == 6 if asked['stream'] else json.loads(text)['usage'], text
        finally:
            router.terminate()
            router.wait(timeout=60)
            log.close()
        return [len(recorded(server)) for server in (one, other)]


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def vllm_router(bench):
    behind_router(bench, ['vllm-router'], 18220)


def sglang_router(bench):
    behind_router(bench, [sys.executable, '-m', 'sglang_router.launch_router', '--prometheus-port', '29111'], 18221)


CLIENTS = {'openai': (openai, lambda: has_module('openai')),
           'vllm-bench': (vllm_bench, lambda: shutil.which('vllm')),
           'aiperf': (aiperf, lambda: shutil.which('aiperf')),
           'guidellm': (guidellm, lambda: shutil.which('guidellm')),
           'vllm-router': (vllm_router, lambda: shutil.which('vllm-router')),
           'sglang-router': (sglang_router, lambda: has_module('sglang_router'))}


def fly(program, root, test):
    bench = Bench(program, root)
    test(bench)
    shutil.rmtree(bench.folder, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(each(CLIENTS, fly))
