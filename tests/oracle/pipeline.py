#!/usr/bin/env python3
"""vLLM v1 in a pipeline, synchronous: a slow engine of its own, its requests compared on random workloads.

    pipeline.py INFLIGHT SOURCE_DIR [WORKLOADS]

v0.33: v1/engine/core.py (step_with_batch_queue: a queue of as many steps as stages, filled before the oldest is waited
for) and v1/core/sched/scheduler.py (a step counts as computed once it is scheduled; the last of the running list gives
way, in flight or not, and its late token is appended). Two choices are inflight's: a request that gave way does not
start before its last step has ended, and none behind it; a plan that only preempts is made again at once.
"""
import csv
import os
import random
import subprocess
import sys
import tempfile

NS = 10**9


class Request:
    def __init__(self, number, arrival, prompt, output):
        self.number, self.arrival, self.prompt, self.target = number, arrival, prompt, output
        self.tokens, self.computed, self.out, self.blocks, self.flying = prompt, 0, 0, 0, 0
        self.prefill = prompt
        self.first = self.finish = None


class Engine:
    def __init__(self, s):
        self.s = s
        self.free = s['blocks']
        self.waiting, self.running, self.flying = [], [], []
        self.stage_free = [0] * s['stages']
        self.blocked = False
        self.preemptions = 0

    def lacks(self, r, n):
        return -(-(r.computed + n) // self.s['block_tokens']) - r.blocks

    def take(self, r, n):
        more = max(self.lacks(r, n), 0)
        self.free -= more
        r.blocks += more

    def release(self, r):
        self.free += r.blocks
        r.blocks = 0

    def give_way(self, batch):
        victim = self.running.pop()
        batch.pop(victim, None)
        self.release(victim)
        victim.computed = 0
        self.waiting.insert(0, victim)
        self.preemptions += 1
        return victim

    def plan(self):
        """The batch, a map of requests to tokens, and whether a request has given way."""
        batch, moved = {}, False
        for r in list(self.running):
            n = min(r.tokens - r.computed, self.s['budget'] - sum(batch.values()))
            if r not in self.running or n <= 0:
                continue
            while self.lacks(r, n) > self.free:
                moved = True
                if self.give_way(batch) is r:
                    break
            else:
                self.take(r, n)
                batch[r] = n
                continue
            break
        while not moved and self.waiting and len(self.running) < self.s['seqs']:
            r, left = self.waiting[0], self.s['budget'] - sum(batch.values())
            if r.flying or left <= 0 or self.lacks(r, min(r.tokens, left)) > self.free:
                break
            self.waiting.pop(0)
            self.running.append(r)
            r.prefill = r.tokens
            batch[r] = min(r.tokens, left)
            self.take(r, batch[r])
        return batch, moved

    def stage_ns(self, batch):
        total = self.s['step_ns']
        for r, n in batch.items():
            total += self.s['decode_ns'] if r.computed >= r.prefill else n * self.s['prefill_ns']
        return total // self.s['stages']

    def launch(self, now, batch):
        at, ns = now, self.stage_ns(batch)
        for i, free in enumerate(self.stage_free):
            at = self.stage_free[i] = max(at, free) + ns
        work = []
        for r, n in batch.items():
            r.computed += n
            r.flying += 1
            work.append((r, r.computed == r.tokens))
        self.flying.append((at, work))

    def fill(self, now):
        while len(self.flying) < self.s['stages'] and not self.blocked:
            batch, moved = self.plan()
            if batch:
                self.launch(now, batch)
            elif not moved:
                self.blocked = bool(self.flying)
                return

    def land(self):
        now, work = self.flying.pop(0)
        self.blocked = False
        for r, samples in work:
            r.flying -= 1
            if not samples:
                continue
            r.tokens, r.out = r.tokens + 1, r.out + 1
            r.first = r.first or now
            if r.out == r.target:
                r.finish = now
                self.release(r)
                (self.running if r in self.running else self.waiting).remove(r)

    def fly(self, requests):
        coming = sorted(requests, key=lambda r: (r.arrival, r.number))
        while coming or self.flying or self.waiting or self.running:
            now = min([flown[0] for flown in self.flying[:1]] + [r.arrival for r in coming[:1]])
            if self.flying and self.flying[0][0] == now:
                self.land()
            while coming and coming[0].arrival == now:
                self.waiting.append(coming.pop(0))
            self.fill(now)


CONFIG = """
workload: {{trace: trace.csv, format: inflight, arrivals: {{process: trace}}}}
serving:
  preset: vllm-v1-sync
  max_model_len: 4096
  batching: {{max_batched_tokens: {budget}, max_seqs: {seqs}, walks_on: false}}
  admit: {{policy: chunk-fits, room_for: chunk}}
  kv: {{block_tokens: {block_tokens}, num_blocks: {blocks}, null_blocks: 0, sizing: memory, prefix_cache: none, publish: computed}}
cost: {{model: linear, step_s: {step_s}, prefill_token_s: {prefill_s}, decode_seq_s: {decode_s}}}
parallel: {{pipeline: {stages}}}
output: {{dir: out, plots: false}}
"""


def draw(rng):
    unit = 12 * rng.randint(100, 2000)  # of 2, 3 and 4 stages
    s = {'stages': rng.randint(2, 4), 'budget': rng.randint(4, 64), 'seqs': rng.randint(2, 12),
         'block_tokens': rng.choice([1, 4, 16]), 'step_ns': 1000 * unit, 'prefill_ns': 12 * rng.randint(0, 10**5),
         'decode_ns': 12 * rng.randint(0, 10**5)}
    arrival, requests = 0, []
    for i in range(rng.randint(5, 40)):
        arrival += rng.choice([0, rng.randint(1, 5 * 10**7)])
        requests.append((arrival, rng.randint(1, 120), rng.randint(1, 40)))
    longest = max(-(-(p + o) // s['block_tokens']) for _, p, o in requests)
    s['blocks'] = longest + rng.randint(0, 3 * longest)
    return s, requests


def seconds(ns):
    return f'{ns // NS}.{ns % NS:09d}'


def fly_inflight(inflight, folder, s, requests):
    with open(f'{folder}/trace.csv', 'w') as out:
        out.write('arrival_s,prompt_tokens,output_tokens\n')
        out.writelines(f'{seconds(at)},{p},{o}\n' for at, p, o in requests)
    with open(f'{folder}/config.yaml', 'w') as out:
        out.write(CONFIG.format(**s, step_s=seconds(s['step_ns']), prefill_s=seconds(s['prefill_ns']),
                                decode_s=seconds(s['decode_ns'])))
    subprocess.run([inflight, 'run', 'config.yaml', '--quiet'], cwd=folder, check=True)
    with open(f'{folder}/out/requests.csv') as rows:
        return [(row['first_token_s'], row['finish_s']) for row in
                sorted(csv.DictReader(rows), key=lambda row: int(row['request_id']))]


def main():
    inflight, n = os.path.realpath(sys.argv[1]), int(sys.argv[3]) if len(sys.argv) > 3 else 60
    os.environ['INFLIGHT_DATA'] = os.path.realpath(sys.argv[2])
    n_preemptions = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(n):
            s, rows = draw(random.Random(seed))
            requests = [Request(i, *row) for i, row in enumerate(rows)]
            engine = Engine(s)
            engine.fly(requests)
            expected = [(seconds(r.first), seconds(r.finish)) for r in requests]
            found = fly_inflight(inflight, folder, s, rows)
            for i, (a, b) in enumerate(zip(expected, found)):
                if a != b:
                    sys.exit(f'seed {seed}, request {i}: {a} here, {b} there; {s}')
            n_preemptions += engine.preemptions
    print(f'{n} workloads agree, {n_preemptions} preemptions')
    if n_preemptions < n:
        sys.exit('too few preemptions to tell anything')


if __name__ == '__main__':
    main()
