#!/usr/bin/env python3
"""Random clusters under Mooncake's Conductor, and its rule told again from what the runs wrote down.

usage: conductor.py INFLIGHT SOURCE [CLUSTERS]

Without a prefix cache Algorithm 1 (arXiv 2407.00079) is the least sum of the prefills that a replica has not done; the decode replica
is the one with the fewest tokens of prompts; and a request is rejected by what decodes then. All of it follows from when requests
came, had their first token and ended (requests.csv). Times are ns.
"""

import csv
import os
import random
import subprocess
import sys
import tempfile

from routing import ns


def random_cluster(rng):
    return {'prefills': rng.randint(1, 4), 'decodes': rng.randint(1, 4), 'reject': rng.choice(['none', 'early', 'predicted']),
            'prefill_token': rng.choice([50000, 100000, 200000]), 'square': rng.choice([0, 1000]), 'step': 10 ** 7,
            'decode_token': rng.choice([10000, 100000]), 'ttft': rng.choice([10 ** 7, 3 * 10 ** 7, 10 ** 9]),
            'tbt': rng.choice([12 * 10 ** 6, 20 * 10 ** 6]), 'decode': rng.choice([5 * 10 ** 7, 2 * 10 ** 8])}


def random_rows(rng):
    at, rows = 0, []
    for _ in range(rng.randint(20, 80)):
        at += rng.choice([0, 1, 1, 5, 30])
        rows.append((at * 10 ** 6 + 137, rng.randint(1, 120), rng.randint(1, 12)))
    return rows


def fly(inflight, folder, c, rows):
    with open(os.path.join(folder, 'trace.csv'), 'w') as out:
        out.write('arrival_s,prompt_tokens,output_tokens\n')
        out.writelines(f'{at / 1e9:.9f},{prompt},{output}\n' for at, prompt, output in rows)
    with open(os.path.join(folder, 'config.yaml'), 'w') as out:
        out.write(f'''workload: {{trace: {folder}/trace.csv, arrivals: {{process: trace}}}}
serving:
  batching: {{policy: mixed, max_seqs: 4}}
  order: fcfs
  admit: {{policy: reserve, for: declared}}
  preempt: tail
  max_model_len: 256
  kv: {{block_tokens: 16, num_blocks: 400, prefix_cache: none}}
cost: {{model: linear, step_s: 0.003, prefill_token_s: 0.0001}}
cluster:
  preset: mooncake
  handover: {{overlap: none}}
  router:
    policy: conductor
    prefill_token_s: {c['prefill_token'] / 1e9}
    prefill_square_s: {c['square'] / 1e9}
    decode_step_s: {c['step'] / 1e9}
    decode_token_s: {c['decode_token'] / 1e9}
    reject: {c['reject']}
    ttft_s: {c['ttft'] / 1e9}
    tbt_s: {c['tbt'] / 1e9}
    decode_s: {c['decode'] / 1e9}
  pools: {{p: {{role: prefill, count: {c['prefills']}}}, d: {{role: decode, count: {c['decodes']}}}}}
''')
    done = subprocess.run([inflight, 'run', f'{folder}/config.yaml', '--quiet', '-o', f'{folder}/out'], capture_output=True,
                          text=True, timeout=300)
    if done.returncode:
        sys.exit(done.stderr)
    with open(f'{folder}/out/requests.csv') as text:
        return sorted(csv.DictReader(text), key=lambda row: int(row['request_id']))


def prefill(c, n):
    return c['prefill_token'] * n + c['square'] * n * n


class Sent:
    """A request that was not rejected: where it went, and when its prompt was estimated to be done, was done, and it ended."""

    def __init__(self, n, row, estimate):
        self.n, self.estimate = n, estimate
        ends_there = row['prefill_replica'] in ('', row['replica'])    # one token: the prefill replica has all of it
        self.prefill = int(row['replica'] if ends_there else row['prefill_replica'])
        self.decode = None if ends_there else int(row['replica'])
        self.first, self.end = ns(row['first_token_s']), ns(row['finish_s'])


def pick(c, sent, now, n):
    """The two replicas, the time to the first token; None: rejected."""
    under_way = [r for r in sent if r.end > now]
    queues = [sum(prefill(c, r.n) for r in under_way if r.prefill == p and r.first > now) for p in range(c['prefills'])]
    p = queues.index(min(queues))
    ttft = queues[p] + prefill(c, n)
    tokens = [sum(r.n for r in under_way if r.decode == d) for d in range(c['prefills'], c['prefills'] + c['decodes'])]
    d = c['prefills'] + tokens.index(min(tokens))
    if c['reject'] == 'none':
        return p, d, ttft
    if c['reject'] == 'early':
        then = sum(r.n for r in under_way if r.decode == d and r.first <= now)
    else:
        ready = [(r, r.first if r.first <= now else r.estimate) for r in under_way if r.decode == d]
        then = sum(r.n for r, at in ready if 0 <= now + ttft - at < c['decode'])
    return None if ttft > c['ttft'] or c['step'] + c['decode_token'] * (then + n) > c['tbt'] else (p, d, ttft)


def compare(inflight, number):
    rng = random.Random(f'conductor {number}')
    c, rows = random_cluster(rng), random_rows(rng)
    with tempfile.TemporaryDirectory() as folder:
        written = fly(inflight, folder, c, rows)
    sent, n_shed = [], 0
    for i, (row, (at, n, _)) in enumerate(zip(written, rows)):
        expected = pick(c, sent, at, n)
        if row['status'] == 'shed':
            n_shed += 1
            if expected:
                sys.exit(f'cluster {number}: request {i} was rejected, expected replicas {expected[:2]}\n{c}')
            continue
        if not expected:
            sys.exit(f'cluster {number}: request {i} went to {row["prefill_replica"]} and {row["replica"]}, expected a rejection\n{c}')
        request = Sent(n, row, at + expected[2])
        request.decode = expected[1] if request.decode is None else request.decode    # it counts there until its end
        if (request.prefill, request.decode) != expected[:2]:
            sys.exit(f'cluster {number}: request {i} went to {request.prefill} and {request.decode}, expected {expected[:2]}\n{c}')
        sent.append(request)
    return len(sent), n_shed


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    os.environ['INFLIGHT_DATA'] = sys.argv[2]
    counts = [compare(sys.argv[1], number) for number in range(int(sys.argv[3]) if len(sys.argv) > 3 else 30)]
    n_sent, n_shed = map(sum, zip(*counts))
    print(f'conductor: {n_sent} requests sent, {n_shed} rejected')
    sys.exit(n_sent == 0 or n_shed == 0)


if __name__ == '__main__':
    main()
