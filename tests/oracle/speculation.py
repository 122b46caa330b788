#!/usr/bin/env python3
"""Random speculation, simulated a second time as docs/speculation.md describes it.

usage: speculation.py INFLIGHT SOURCE [SETUPS]

vLLM's synchronous schedule with a fixed number of guesses, blocks that never lack, clients that leave. Whether a guess holds is
drawn by its position in the answer. Requests, steps and sums must be the same. Times are ns.
"""

import csv
import os
import random
import subprocess
import sys
import tempfile

from pipeline import seconds
from routers import mix

MASK = (1 << 64) - 1
ACCEPT = 20    # include/inflight/random.h


class Request:
    def __init__(self, number, row):
        self.number, self.row = number, row
        self.prompt, self.output = row['prompt'], row['output']
        self.computed = self.out = self.n_kept = self.n_steps = 0
        self.begun = self.first = self.end = self.status = self.mark = None
        self.n_stay = 0


class Engine:
    def __init__(self, s, rows):
        self.s, self.now, self.step = s, 0, None
        self.requests = [Request(i, row) for i, row in enumerate(rows)]
        self.waiting, self.running, self.steps = [], [], []
        self.asked, self.held, self.length = [0] * (s['guesses'] + 1), [0] * (s['guesses'] + 1), [0, 0]

    def holds(self, r, position, place):
        draw = mix(mix(mix(mix(self.s['seed']) ^ ACCEPT) ^ r.number) ^ position)
        rates = self.s['rates']
        rate = rates[0] if len(rates) == 1 else (rates + [0] * 99)[place]
        return draw < rate * 2 ** 64

    def plan(self):
        left, work = self.s['budget'], {}
        for r in self.running:
            if r.computed < r.prompt:
                n = min(left, r.prompt - r.computed)
            else:
                n = max(0, min(left, 1 + min(self.s['guesses'], self.s['longest'] - r.prompt - r.out - 1)))
            if n:
                work[r] = n
            left -= n
        while self.waiting and left > 0 and len(self.running) < self.s['seqs']:
            r = self.waiting.pop(0)
            r.begun = self.now
            work[r] = min(left, r.prompt)
            left -= work[r]
            self.running.append(r)
        if work:
            prompts = {r: n for r, n in work.items() if r.computed < r.prompt}
            n_prompts, n_rows = sum(prompts.values()), sum(work.values()) - sum(prompts.values())
            self.step = work, prompts, self.now
            self.ends = self.now + self.s['step'] + self.s['token'] * n_prompts + self.s['seq'] * n_rows
            for r in work:
                r.n_steps += 1

    def leaves(self, r, work):
        if not r.mark:
            return False
        r.n_stay -= 1
        if r.n_stay == 0 and self.s['leave'] == 'next_step' and r not in work:
            r.n_stay = 1
        return r.n_stay == 0

    def finish(self):
        work, prompts, begin = self.step
        self.step = None
        n_accepted = 0
        for r in [r for r in self.running if self.leaves(r, work)]:
            r.n_kept += prompts.get(r, 0)
            self.part(r, r.mark)
        for r, n in work.items():
            if r.status:
                continue
            n_held = 0 if r in prompts else self.verify(r, n - 1)
            n_accepted += n_held
            if r in prompts:
                r.computed += n
                r.n_kept += n
                if r.computed == r.prompt:
                    self.give(r, 1)
            else:
                self.give(r, 1 + n_held)
        self.steps.append((begin, self.now - begin, sum(prompts.values()), sum(work.values()) - sum(prompts.values()),
                           sum(n - 1 for r, n in work.items() if r not in prompts), n_accepted))

    def verify(self, r, n):
        n_held = 0
        while n_held < n and self.holds(r, r.out + n_held, n_held):
            n_held += 1
        return n_held

    def give(self, r, n):
        limit = min(r.output, r.row['abort_tokens'] or r.output)
        n = min(n, limit - r.out)
        r.first = self.now if r.first is None else r.first
        r.n_kept += n if r.out else 0
        r.out += n
        if r.out == limit:
            self.part(r, 'finished' if limit == r.output else 'aborted')

    def part(self, r, status):
        (self.running if r in self.running else self.waiting).remove(r)
        r.status, r.end = status, self.now

    def leave(self, r):
        r.mark = 'aborted'
        r.n_stay = (self.step is not None) + (self.s['leave'] == 'next_step') if r in self.running else 0
        if r.n_stay == 0:
            self.part(r, 'aborted')

    def run(self):
        coming = list(self.requests)
        leaving = sorted((r.row['at'] + r.row['abort'], r.number) for r in coming if r.row['abort'])
        while coming or leaving or self.step:
            self.now = min([r.row['at'] for r in coming[:1]] + [at for at, _ in leaving[:1]] + ([self.ends] if self.step else []))
            if self.step and self.ends == self.now:
                self.finish()
            while leaving and leaving[0][0] == self.now:
                r = self.requests[leaving.pop(0)[1]]
                if not r.status:
                    self.leave(r)
            while coming and coming[0].row['at'] == self.now:
                self.waiting.append(coming.pop(0))
            if self.step is None:
                self.plan()


def draw(rng):
    rows, at, leaves = [], 0, rng.choice([0, 0.4])
    for _ in range(rng.choice([5, 15, 40])):
        at += rng.choice([0, 1, 7, 30]) * 10 ** 6
        rows.append({'at': at, 'prompt': rng.randint(1, 90), 'output': rng.randint(1, 40),
                     'abort': rng.choice([5, 40, 90, 200]) * 10 ** 6 + 1 if rng.random() < leaves else None,
                     'abort_tokens': rng.randint(1, 30) if rng.random() < leaves / 2 else None})
    longest = max(row['prompt'] + row['output'] for row in rows)
    return {'seqs': rng.choice([1, 3, 8, 40]), 'budget': rng.choice([12, 40, 1000]), 'seed': rng.randint(0, 10 ** 6),
            'guesses': rng.choice([1, 2, 3, 5]), 'rates': rng.choice([[0.7], [0.3], [1], [0.9, 0.5], [0.8, 0.6, 0.4, 0.2, 0.1]]),
            'longest': longest + rng.choice([0, 1, 1000]), 'leave': rng.choice(['step_end', 'next_step']),
            'step': 10 ** 7, 'token': rng.choice([0, 10 ** 5]), 'seq': rng.choice([0, 10 ** 5])}, rows


def write(folder, s, rows):
    with open(f'{folder}/trace.csv', 'w') as out:
        out.write('arrival_s,prompt_tokens,output_tokens,abort_s,abort_tokens\n')
        for row in rows:
            abort = seconds(row['abort']) if row['abort'] else ''
            out.write(f'{seconds(row["at"])},{row["prompt"]},{row["output"]},{abort},{row["abort_tokens"] or ""}\n')
    with open(f'{folder}/config.yaml', 'w') as out:
        out.write(f'''workload: {{trace: trace.csv, format: inflight, arrivals: {{process: trace, seed: {s['seed']}}}}}
serving:
  preset: vllm-v1-sync
  max_model_len: {s['longest']}
  leave: {s['leave']}
  batching: {{max_batched_tokens: {s['budget']}, max_seqs: {s['seqs']}, walks_on: false}}
  kv: {{num_blocks: 4000, prefix_cache: none, publish: computed, sizing: memory}}
  draft: {{policy: fixed, tokens: {s['guesses']}}}
  speculation: {{acceptance: "{','.join(map(str, s['rates']))}"}}
cost: {{model: linear, step_s: {seconds(s['step'])}, prefill_token_s: {seconds(s['token'])}, decode_seq_s: {seconds(s['seq'])}}}
output: {{dir: out, plots: false, steps: true}}
''')


def read(path):
    with open(path) as rows:
        return list(csv.DictReader(rows))


def compare(inflight, number):
    s, rows = draw(random.Random(f'speculation {number}'))
    engine = Engine(s, rows)
    engine.run()
    about = f'set-up {number}: {s}\n' + '\n'.join(f'{i} {row}' for i, row in enumerate(rows))
    with tempfile.TemporaryDirectory() as folder:
        write(folder, s, rows)
        done = subprocess.run([inflight, 'run', 'config.yaml', '--quiet'], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f'{about}\n{done.stderr}')
        requests = sorted(read(f'{folder}/out/requests.csv'), key=lambda row: int(row['request_id']))
        steps, sums = read(f'{folder}/out/steps.csv'), read(f'{folder}/out/summary.csv')[0]
    for r, row in zip(engine.requests, requests):
        cells = ['' if t is None else seconds(t) for t in (r.begun, r.first, r.end)]
        expected = [r.status, str(r.out), *cells]
        got = [row['status'], row['output_tokens'], row['first_scheduled_s'], row['first_token_s'],
               row['finish_s'] or row.get('left_s', '')]
        if got != expected:
            sys.exit(f'{about}\nrequest {r.number}: expected {expected}, got {got}')
    got = [tuple(int(row[key].replace('.', '')) for key in ('start_s', 'duration_s', 'prefill_tokens', 'decode_tokens',
                                                            'draft_tokens', 'accepted_tokens')) for row in steps]
    if got != engine.steps:
        sys.exit(f'{about}\nsteps: expected and got\n' + '\n'.join(f'{a} {b}' for a, b in zip(engine.steps, got) if a != b))
    gone = [r for r in engine.requests if r.status != 'finished']
    for key, value in (('wasted_tokens', sum(r.n_kept for r in gone)), ('wasted_steps', sum(r.n_steps for r in gone))):
        if int(sums.get(key, value)) != value:
            sys.exit(f'{about}\n{key}: expected {value}, got {sums[key]}')
    return sum(step[5] for step in engine.steps), len(gone)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    inflight = os.path.realpath(sys.argv[1])
    os.environ['INFLIGHT_DATA'] = os.path.realpath(sys.argv[2])
    n = (int(sys.argv[3]) if len(sys.argv) > 3 else 200) * (10 if os.environ.get('TESTS') == 'long' else 1)
    n_held, n_gone = map(sum, zip(*[compare(inflight, number) for number in range(n)]))
    print(f'{n} set-ups, {n_held} guesses held, {n_gone} requests left')
    sys.exit(n_held < 50 * n or n_gone < n)


if __name__ == '__main__':
    main()
