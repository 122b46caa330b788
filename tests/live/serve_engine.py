#!/usr/bin/env python3
"""Clients of an engine: requests come and leave while it computes. A prompt has the same tokens alone, beside others and
beside a client that goes; the recording flies again on the engine.

usage: serve_engine.py INFLIGHT
"""

import csv
import json
import os
import sys
import tempfile
import threading
import time

from serve_logprobs import SHAPE
from serving import Server

CONFIG = """
executor: cpu
model: %s
serving: {preset: %s, max_model_len: 2048, kv: {num_blocks: 9000}}
live: {limits: {in_flight: 64}}
"""
ASKED = {'max_tokens': 40, 'ignore_eos': True, 'return_token_ids': True}


def ids_of(server, prompt):
    parts = server.stream({**ASKED, 'prompt': prompt})[:-1]
    return [i for part in parts for i in part['choices'][0]['token_ids']]


def leave(server):
    """A client that goes with 2,000 tokens to come."""
    link = server.send('POST', '/v1/completions', {'prompt': [7, 7, 7], 'max_tokens': 2000, 'ignore_eos': True,
                                                   'stream': True})
    link.recv(100)
    link.close()


def serve(program, model, preset):
    prompts = [[(3 * i + k * k) % 16 for k in range(5 + 9 * i)] for i in range(4)]
    with Server(program, CONFIG % (model, preset), '-q') as server:
        alone = [ids_of(server, prompt) for prompt in prompts]
        assert all(len(ids) == 40 for ids in alone) and len({tuple(ids) for ids in alone}) > 1, alone
        beside = [None] * len(prompts)

        def ask(i):
            beside[i] = ids_of(server, prompts[i])

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(prompts))]
        threads += [threading.Thread(target=leave, args=(server,)) for _ in range(3)]
        for thread in threads:
            thread.start()
            time.sleep(0.01)
        for thread in threads:
            thread.join()
        assert beside == alone, (beside, alone)
        until = time.monotonic() + 60
        while json.loads(server.ask('GET', '/load')[2])['server_load'] > 0:
            assert time.monotonic() < until, 'a request of a client that has gone goes on'
            time.sleep(0.05)
        assert server.stop() == 0, server.said()
        rows = list(csv.DictReader(server.file('requests.csv').decode().splitlines()))
        kinds = [(row['status'], row['prompt_tokens']) for row in rows]
        assert kinds.count(('aborted', '3')) == 3 and len(rows) == 11, kinds
        assert all(int(row['output_tokens']) < 2000 for row in rows), rows
        with open(os.path.join(server.again(), 'requests.csv')) as file:
            again = list(csv.DictReader(file))
        whole = [sorted((int(row['request_id']), row['prompt_tokens'], row['output_tokens']) for row in of
                        if row['status'] == 'finished' and row['prompt_tokens'] != '3') for of in (rows, again)]
        assert whole[0] == whole[1] and len(again) == len(rows), whole
    print('ok', preset)


def main():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'config.json'), 'w') as file:
            json.dump({**SHAPE, 'max_position_embeddings': 2048}, file)
        for preset in ('vllm-v1-sync', 'vllm-v1', 'sglang'):
            serve(sys.argv[1], os.path.join(folder, 'config.json'), preset)


if __name__ == '__main__':
    main()
