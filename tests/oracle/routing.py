#!/usr/bin/env python3
"""Random fleets and workloads, routed by inflight and by the rules of routers.py: the same replica for each request.

usage: routing.py INFLIGHT SOURCE [CONFIGS [ROUTER...]]

The rules are asked of what the run wrote down (requests.csv): when each request came, started, had its first token and
ended, and where. A request holds blocks for its whole length from its start on, and there is no prefix cache, so that
these times say all that a replica reports.
"""

import csv
import os
import random
import subprocess
import sys
import tempfile

import routers


def random_workload(rng):
    at, rows = 0, []
    for _ in range(rng.randint(20, 90)):
        at += rng.choice([0, 0, 1, 1, 5, 30])
        prompt, output = rng.randint(1, 80), rng.randint(1, 12)
        group = rng.choice(['', 1, 2, 3])
        shared = rng.randint(1, prompt) if group else ''
        rows.append((f'{at / 1000:.3f}', prompt, output, group, shared, rng.choice(['', '', 1, 2, 3])))
    return rows


def random_setting(rng, rule):
    setting = {'replicas': rng.choice([1, 2, 3, 5]), 'block_tokens': rng.choice([4, 16]), 'seed': rng.randint(0, 10 ** 6),
               'interval': rng.choice([0, 0, 10 ** 7, 10 ** 8]), 'delay': 0}
    setting['num_blocks'] = rng.choice([110, 200, 1000]) * 16 // setting['block_tokens'] // 4
    if setting['interval'] and rule is not routers.RotatingLeast:
        setting['delay'] = rng.choice([0, 5 * 10 ** 6, 25 * 10 ** 6])
    sets = rule.sets(rng)
    setting.update({key: float(value) if isinstance(value, float) else value for key, value in sets.items()
                    if key != 'block_tokens'})
    setting['block_tokens_of_router'] = sets.get('block_tokens', 0)
    return setting, sets


def fly(inflight, folder, rule, setting, sets, rows):
    trace = os.path.join(folder, 'trace.csv')
    with open(trace, 'w') as out:
        out.write('arrival_s,prompt_tokens,output_tokens,prefix_group,prefix_tokens,session\n')
        out.writelines(','.join(map(str, row)) + '\n' for row in rows)
    with open(os.path.join(folder, 'config.yaml'), 'w') as out:
        out.write(f'''workload: {{trace: {trace}, arrivals: {{process: trace, seed: {setting['seed']}}}}}
serving:
  batching: {{policy: mixed, max_seqs: 4}}
  order: fcfs
  admit: {{policy: reserve, for: declared}}
  preempt: tail
  max_model_len: 128
  kv: {{block_tokens: {setting['block_tokens']}, num_blocks: {setting['num_blocks']}, null_blocks: 0, prefix_cache: none}}
cost: {{model: linear, step_s: 0.003, prefill_token_s: 0.0001}}
cluster:
  replicas: {setting['replicas']}
  news: {{interval_s: {setting['interval'] / 1e9}, delay_s: {setting['delay'] / 1e9}}}
  router: {{policy: {rule.name}, {', '.join(f'{key}: {value}' for key, value in sets.items())}}}
''')
    done = subprocess.run([inflight, 'run', os.path.join(folder, 'config.yaml'), '--quiet', '-o',
                           os.path.join(folder, 'out')], capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f'{rule.name}: {done.stderr}')
    return read(os.path.join(folder, 'out', 'requests.csv'), rows)


def ns(text):
    return int(text.replace('.', ''))


def read(path, rows):
    """The requests in order of arrival."""
    with open(path) as text:
        written = sorted(csv.DictReader(text), key=lambda row: int(row['request_id']))
    requests, sessions = [], {'': 0}    # numbered as they come
    for row, (_, prompt, output, group, shared, session) in zip(written, rows):
        if row['status'] != 'finished':
            sys.exit(f'{path}: request {row["request_id"]} is {row["status"]}')
        requests.append(routers.Request(ns(row['arrival_s']), ns(row['first_scheduled_s']), ns(row['first_token_s']),
                                        ns(row['finish_s']), int(row['replica']), prompt, output, group, shared or 0,
                                        sessions.setdefault(session, len(sessions))))
    return requests


def compare(inflight, source, rule, number):
    rng = random.Random(f'{rule.name} {number}')
    setting, sets = random_setting(rng, rule)
    rows = random_workload(rng)
    with tempfile.TemporaryDirectory() as folder:
        requests = fly(inflight, folder, rule, setting, sets, rows)
    log = routers.Log(requests, setting)
    for i, request in enumerate(requests):
        expected = rule.pick(log, i)
        if request.replica != expected:
            sys.exit(f'{rule.name}, configuration {number}: request {i} went to replica {request.replica}, expected '
                     f'{expected}\n{setting}\n{rows[:i + 1]}')
    return len(requests)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    inflight, source = sys.argv[1:3]
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    os.environ['INFLIGHT_DATA'] = source
    for rule in routers.ROUTERS:
        if len(sys.argv) <= 4 or rule.name in sys.argv[4:]:
            n_requests = sum(compare(inflight, source, rule, number) for number in range(n))
            print(f'{rule.name}: {n_requests} requests of {n} fleets')


if __name__ == '__main__':
    main()
