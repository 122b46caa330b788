#!/usr/bin/env python3
"""What a server records, simulated again, gives the files that the server wrote, byte for byte: with clients that go,
sessions, priorities, several answers, several pools and models, a front end, queue limits. After a kill what is there
is whole, and is the beginning of what the recording gives.

usage: serve_loopback.py INFLIGHT SETTING
"""

import csv
import json
import os
import random
import signal
import sys
import threading
import time

from serving import SIMPLE, Server

COST = 'cost: {model: linear, step_s: 0.004, prefill_token_s: 2e-6}\n'
SETTINGS = {
    'vllm': 'serving: {preset: vllm-v1-sync, max_model_len: 2048, kv: {num_blocks: 400}}\n' + COST,
    'async': 'serving: {preset: vllm-v1, max_model_len: 2048, kv: {num_blocks: 400}}\n' + COST,
    'sglang': 'serving: {preset: sglang, max_model_len: 2048, kv: {num_blocks: 6000}}\n' + COST,
    'fair': 'serving: {preset: vtc, max_model_len: 2048, kv: {num_blocks: 400}}\n' + COST,
    'priority': 'serving: {preset: vllm-v1-priority, max_model_len: 2048, kv: {num_blocks: 300}}\n' + COST,
    'door': 'serving: {preset: vllm-v1-sync, max_model_len: 2048, kv: {num_blocks: 400}, max_queued_reqs: 6}\n' + COST,
    'front': 'model: llama-2-7b\nhardware: a100-80gb-sxm\nserving: {preset: vllm-v1, max_model_len: 2048}\n'
             'deployment: {front_end: {request_s: 0.05, prompt_token_s: 2e-5, token_s: 0.01}}\n',
    'guesses': 'model: llama-3-8b\nhardware: h100-sxm\nserving: {preset: vllm-v1-eagle, max_model_len: 2048}\n',
    'handover': 'model: llama-2-7b\nhardware: a100-80gb-sxm\nserving: {max_model_len: 2048}\ncluster: {preset: vllm-nixl, '
                'links: {preset: rdma-200g}, pools: {p: {role: prefill, count: 1, serving: {preset: vllm-v1}}, '
                'd: {role: decode, count: 2, serving: {preset: vllm-v1}}}}\n',
    'pools': 'hardware: a100-80gb-sxm\nserving: {preset: vllm-v1, max_model_len: 2048}\ncluster: {preset: llm-d, pools: '
             '{a: {count: 2, model: llama-2-7b}, b: {count: 1, model: mistral-7b, serving: {preset: sglang}}}}\n',
}


def client(server, rng, models, statuses, several=True):
    """One request; one in four goes before it has its answer."""
    shared = list(range(200))
    ids = (shared if rng.random() < .6 else []) + [rng.randrange(30000) for _ in range(rng.randrange(1, 400))]
    body = {'prompt': ids if rng.random() < .7 else 'Tell me more, please. ' * rng.randrange(1, 40),
            'max_tokens': rng.randrange(1, 80), 'stream': True, 'n': rng.choice((1, 1, 1, 2)) if several else 1,
            'user': 'user %d' % rng.randrange(4), 'priority': rng.randrange(3),
            'session_id': 's"%d,' % rng.randrange(5), 'ignore_eos': rng.random() < .5}
    if models:
        body['model'] = rng.choice(models)
    with server.send('POST', '/v1/completions', body) as link:
        if rng.random() < .25:
            link.settimeout(rng.uniform(.001, .3))
        try:
            got = link.recv(200)
            statuses.append(got.split(b' ')[1] if got else b'-')
            while got and not got.endswith(b'0\r\n\r\n'):
                got = link.recv(1 << 16)
        except TimeoutError:
            statuses.append(b'gone')


def load(server, n, seed, models=(), several=True):
    rng, threads, statuses = random.Random(seed), [], []
    for i in range(n):
        threads.append(threading.Thread(target=client, args=(server, random.Random(rng.random()), models, statuses, several)))
        threads[-1].start()
        time.sleep(rng.expovariate(60))
    for thread in threads:
        thread.join()
    return statuses


def same(server, out, name):
    with open(os.path.join(out, name), 'rb') as file:
        again = file.read()
    live = server.file(name)
    assert live == again, '%s differs: %d and %d bytes' % (name, len(live), len(again))
    print('ok', name, len(live), 'bytes')


def loopback(program, setting):
    with Server(program, SETTINGS[setting], '-q') as server:
        models = [m['id'] for m in json.loads(server.ask('GET', '/v1/models')[2])['data']]
        several = setting != 'guesses'
        statuses = load(server, 120, 3, models if len(models) > 1 else (), several)
        # Some are under way as the server is told to end.
        threads = [threading.Thread(target=client, args=(server, random.Random(i), (), statuses, several))
                   for i in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(.05)
        assert server.stop() == 0, server.said()
        for thread in threads:
            thread.join()
        rows = list(csv.DictReader(server.file('requests.csv').decode().splitlines()))
        kinds = {row['status'] for row in rows}
        assert len(rows) >= 120 and {'finished', 'aborted'} <= kinds, (len(rows), kinds)
        assert setting != 'door' or ('shed' in kinds and b'503' in statuses), kinds
        out = server.again()
        for name in ('steps.csv', 'requests.csv', 'quantiles.csv', 'summary.csv'):
            same(server, out, name)


def killed(program):
    """SIGKILL: each file has whole rows, the first ones that the recording gives when it is flown again."""
    with Server(program, SETTINGS['vllm'], '-q') as server:
        threads = [threading.Thread(target=load, args=(server, 30, seed)) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        time.sleep(1.2)
        server.stop(signal.SIGKILL)
        for thread in threads:
            thread.join()
        for name in ('trace.csv', 'steps.csv', 'requests.csv'):
            assert server.file(name).endswith(b'\n'), name
        out = server.again()
        steps = server.file('steps.csv')
        with open(os.path.join(out, 'steps.csv'), 'rb') as file:
            again = file.read()
        assert steps.count(b'\n') > 20, steps
        # Clients that went as the server was killed are in no file: the last steps may know them.
        known = steps.split(b'\n')[:-1]
        with open(os.path.join(out, 'requests.csv')) as file:
            ends = {row.split(',')[1]: row for row in file}
        for row in server.file('requests.csv').decode().splitlines(True):
            assert ends[row.split(',')[1]] == row, row
        assert again.split(b'\n')[:len(known)] == known, 'the steps are not those of the recording'
        print('ok', len(known), 'steps before the kill')


def second_recording(program):
    """A folder keeps its recording."""
    with Server(program, SIMPLE, '-q') as server:
        import subprocess
        run = subprocess.run([program, 'serve', server.config, '--port', '0', '-o', server.out], capture_output=True,
                             text=True, timeout=60)
        assert run.returncode == 2 and 'one run at a time' in run.stderr, run
        server.stop()
        run = subprocess.run([program, 'serve', server.config, '--port', '0', '-o', server.out], capture_output=True,
                             text=True, timeout=60)
        assert run.returncode == 2 and 'is there already' in run.stderr, run
        print('ok a recording is not overwritten')


if __name__ == '__main__':
    what = sys.argv[2]
    if what == 'kill':
        killed(sys.argv[1])
        second_recording(sys.argv[1])
    else:
        loopback(sys.argv[1], what)
