#!/usr/bin/env python3
"""Random clients that leave and come back, simulated a second time as docs/studies.md and docs/formats.md describe them.

usage: leaving.py INFLIGHT SOURCE [SETUPS]

The engine is that of pipeline.py, vLLM's synchronous schedule, on one replica or several, with one step in flight or one for each
stage of a pipeline. Clients have a patience, of the trace or drawn, deadlines, a limit of tokens, retries and sessions; doors and
queues have limits. Each row of requests.csv must be the same, and so must the steps, and the sums of summary.csv. Times are ns.
"""

import csv
import heapq
import math
import os
import random
import subprocess
import sys
import tempfile

import pipeline
from pipeline import NS, seconds
from routers import mix

PATIENCE, BACKOFF = 14, 15    # include/inflight/random.h
LIMITS = ('max_queued_reqs', 'max_queued_tokens', 'max_waiting_reqs')


def uniform(seed, purpose, number, index):
    """include/inflight/random.h"""
    draw = mix(mix(mix(mix(seed) ^ purpose) ^ number) ^ index)
    return ((draw >> 12) + 0.5) * 2.0 ** -52


def to_ns(s):
    return int(s * 1e9 + 0.5)


class Request(pipeline.Request):
    def __init__(self, number, arrival, row, again=0, first=None):
        super().__init__(number, arrival, row['prompt'], row['output'])
        self.row, self.again, self.origin = row, again, first or self
        self.priority = row['priority']
        self.status = self.replica = self.begun = self.left = self.mark = self.at = self.sent = None
        self.n_stay, self.n_kept, self.n_rows, self.preemptions = 0, 0, 0, 0
        self.left_at = {status: arrival + row[key] for status, key in (('aborted', 'patience'), ('timed_out', 'deadline'))
                        if row[key] is not None}


class Engine(pipeline.Engine):
    """A request with a mark leaves when n_stay further steps have ended."""

    def __init__(self, s, fleet):
        super().__init__(s)
        self.fleet, self.steps = fleet, []

    def join(self, r):
        """Behind those that gave way, in the order in which they came."""
        self.waiting.append(r)
        self.waiting.sort(key=lambda q: (0, 0, 0) if q.preemptions else (1, q.at, q.serial))

    def give_way(self, batch):
        victim = super().give_way(batch)
        victim.preemptions += 1
        victim.queued = self.fleet.now
        victim.n_kept = 0
        return victim

    def launch(self, now, batch):
        begin = max(now, self.stage_free[0])
        decodes = {r for r in batch if r.computed >= r.prefill}
        self.steps.append((begin, sum(n for r, n in batch.items() if r not in decodes), len(decodes)))
        for r in batch:
            r.begun = begin if r.begun is None else r.begun
            r.n_rows += 1
        super().launch(now, batch)
        at, work = self.flying[-1]
        self.flying[-1] = at, [(r, samples, batch[r], r in decodes, r.preemptions) for r, samples in work]

    def remove(self, r):
        self.release(r)
        (self.running if r in self.running else self.waiting).remove(r)
        self.flying = [(at, [item for item in work if item[0] is not r]) for at, work in self.flying]

    def leave(self, r, status):
        n = (len(self.flying) > 0) + (self.s['leave'] == 'next_step') if r in self.running else 0
        r.mark = status
        if n == 0:
            self.part(r)
        r.n_stay = n

    def part(self, r):
        self.remove(r)
        self.fleet.end(r, r.mark)

    def leaves_now(self, r, work):
        if not r.mark:
            return False
        r.n_stay -= 1
        if r.n_stay == 0 and self.s['leave'] == 'next_step' and r in self.running and not any(r is item[0] for item in work):
            r.n_stay = 1
        return r.n_stay == 0

    def land(self):
        _, work = self.flying.pop(0)
        self.blocked = False
        gone = [r for r in self.running + self.waiting if self.leaves_now(r, work)]
        for r in gone:
            flying = [item for item in work if not item[3]] + [item for _, later in self.flying for item in later]
            r.n_kept += sum(n for of, _, n, _, epoch in flying if of is r and epoch == r.preemptions)
            self.part(r)
        for r, samples, n, _, epoch in work:
            if r in gone:
                continue
            r.flying -= 1
            r.n_kept += n if epoch == r.preemptions else 0
            if samples:
                self.count(r)

    def count(self, r):
        r.tokens, r.out = r.tokens + 1, r.out + 1
        r.first = self.fleet.now if r.first is None else r.first
        if r.out == r.target:
            self.remove(r)
            self.fleet.end(r, 'finished')
        elif r.out == r.row['abort_tokens']:
            r.mark = 'aborted'
            self.part(r)


class Fleet:
    def __init__(self, s, rows):
        self.s, self.now, self.turn = s, 0, 0
        self.engines = [Engine(s, self) for _ in range(s['replicas'])]
        self.requests = [Request(i, row['at'], row) for i, row in enumerate(rows) if row['after'] is None]
        self.rows, self.n_rows = rows, len(rows)
        self.coming = [(r.arrival, 0, r.number, r) for r in self.requests]
        heapq.heapify(self.coming)
        self.leaving, self.reaching, self.n_sent = [], [], 0

    def end(self, r, status):
        r.status, r.finish = status, self.now + self.s['token'] if status == 'finished' else None
        r.left = None if status == 'finished' else self.now
        heard = self.now + (self.s['token'] if r.out in (r.target, r.row['abort_tokens']) else 0)
        if status == 'finished' or r.again == self.s['retries']:
            return self.go_on(r, heard)
        full = min(self.s['backoff'] * self.s['factor'] ** r.again, self.s['max_backoff']) / NS
        wait = to_ns(full * (1 - uniform(self.s['seed'], BACKOFF, r.origin.number, r.again) * self.s['jitter']))
        number = self.n_rows * (r.again + 1) + r.origin.number
        self.follow(Request(number, heard + wait, r.row, r.again + 1, r.origin), r)

    def follow(self, r, other):
        self.requests.append(r)
        heapq.heappush(self.coming, (r.arrival, 1, other.serial, r))

    def go_on(self, r, heard):
        """The next turn of its session."""
        for number, row in enumerate(self.rows):
            if row['after'] == r.origin.number:
                self.follow(Request(number, heard + row['think'], row), r)

    def is_shut(self):
        s = self.s
        there = [q for engine in self.engines for q in engine.waiting + engine.running]
        prompts = sum(q.prompt for q in there if q.first is None)
        return 0 < s['max_queued_reqs'] <= len(there) or 0 < s['max_queued_tokens'] <= prompts

    def send(self, r):
        self.n_sent += 1
        r.serial = self.n_sent
        if self.s['request']:
            heapq.heappush(self.reaching, (self.now + self.s['request'], r.serial, r))
        else:
            self.arrive(r)
        for status, at in r.left_at.items():
            heapq.heappush(self.leaving, (at, r.serial, status, r))

    def arrive(self, r):
        if r.status:
            return
        r.at = r.queued = self.now
        if self.is_shut():
            self.end(r, 'shed')
        else:
            self.route(r)

    def route(self, r):
        r.replica = self.turn % len(self.engines)
        self.join(r)

    def join(self, r):
        self.turn += 1
        engine = self.engines[r.replica]
        if 0 < self.s['max_waiting_reqs'] <= len(engine.waiting):
            worst = max([q for q in engine.waiting if not q.mark] + [r], key=lambda q: (q.priority, q.queued, q.serial))
            if self.s['shed'] == 'arrival' or worst.priority == r.priority:
                return self.end(r, 'shed')
            engine.remove(worst)
            self.end(worst, 'shed')
        engine.join(r)

    def leave(self, r, status):
        content = self.s['until_first'] and r.first is not None and r.first + self.s['token'] <= self.now
        if r.status or r.mark or (status == 'aborted' and content):
            return
        if r.at is None:
            self.end(r, status)
        else:
            self.engines[r.replica].leave(r, status)

    def leave_and_arrive(self):
        while any(heap and heap[0][0] == self.now for heap in (self.leaving, self.coming, self.reaching)):
            self.let_leave()
            if self.coming and self.coming[0][0] == self.now:
                self.send(heapq.heappop(self.coming)[-1])
            elif self.reaching and self.reaching[0][0] == self.now:
                self.arrive(heapq.heappop(self.reaching)[-1])

    def let_leave(self):
        while self.leaving and self.leaving[0][0] == self.now:
            _, _, status, r = heapq.heappop(self.leaving)
            self.leave(r, status)

    def times(self):
        return ([engine.flying[0][0] for engine in self.engines if engine.flying] +
                [heap[0][0] for heap in (self.coming, self.leaving, self.reaching) if heap])

    def at_the_gateway(self):
        """Behind ends and departures."""

    def plan(self):
        for engine in self.engines:
            engine.fill(self.now)

    def run(self):
        while times := self.times():
            self.now = min(times)
            self.landed = [engine for engine in self.engines if engine.flying and engine.flying[0][0] == self.now]
            self.stirred = False
            for engine in self.landed:
                engine.land()
            self.let_leave()
            self.at_the_gateway()
            self.leave_and_arrive()
            self.plan()


def maybe(rng, frac, value):
    return value if rng.random() < frac else None


def draw(rng):
    unit = 12 * 10 ** 6
    stages = rng.choice([1, 1, 2, 3, 4])
    s = {'stages': stages, 'budget': rng.randint(8, 64), 'seqs': rng.randint(2, 8), 'block_tokens': rng.choice([1, 4, 16]),
         'step_ns': unit, 'prefill_ns': rng.choice([0, 12 * 10 ** 4]), 'decode_ns': rng.choice([0, 12 * 10 ** 5]),
         'replicas': rng.choice([1, 1, 2, 3]), 'leave': rng.choice(['step_end', 'next_step']), 'until_first': rng.random() < 0.3,
         'retries': rng.choice([0, 0, 1, 2, 3]), 'backoff': rng.choice([0, 1, 6, 50]) * 10 ** 6, 'factor': rng.choice([1, 2, 3]),
         'max_backoff': rng.choice([10, 80]) * 10 ** 6}
    s |= {'seed': rng.randint(0, 10 ** 6), 'jitter': rng.choice([0, 0.25, 1]), 'mean_s': rng.choice([0, 0, 0.05, 0.3])}
    s |= {'request': rng.choice([0, 0, 3000003]), 'token': rng.choice([0, 0, 2000007]), 'gateway': '',
          'shed': rng.choice(['arrival', 'worst'])}
    limits = [rng.choice([4, 10]), rng.choice([100, 300]), rng.choice([1, 3])]
    s |= {limit: n if rng.random() < 0.2 else 0 for limit, n in zip(LIMITS, limits)}
    leave = [rng.choice([0, 0.3, 0.7]) for _ in range(3)]
    talks = rng.choice([0, 0, 0.4])
    rows, at = [], 0
    for i in range(rng.randint(5, 40)):
        at += rng.choice([0, 1, 6, 12, 30]) * 10 ** 6 // rng.choice([1, s['replicas']])
        output = rng.randint(1, 30)
        rows.append({'at': at, 'prompt': rng.randint(1, 100), 'output': output, 'priority': rng.choice([0, 0, 1, 2]), 'slo': None,
                     'session': rng.randint(1, 4) if rng.random() < talks else '',
                     'abort': maybe(rng, leave[0], rng.choice([0, 1, 12, 24, 50, 123, 300]) * 10 ** 6),
                     'deadline': maybe(rng, leave[1], rng.choice([2, 13, 36, 100, 250]) * 10 ** 6 + 1),
                     'abort_tokens': maybe(rng, leave[2] / 2, rng.randint(1, 20))})
    for i, row in enumerate(rows):
        mine = [k for k in range(i) if rows[k]['session'] == row['session'] != '']
        row |= {'after': mine[-1] if mine else None, 'think': rng.choice([0, 1, 20]) * 10 ** 6}
    for i, row in enumerate(rows):    # drawn, or in the trace
        drawn = to_ns(s['mean_s'] * -math.log1p(-uniform(s['seed'], PATIENCE, i, 0))) if s['mean_s'] else None
        row['patience'] = drawn if row['abort'] is None else row['abort']
    longest = max(-(-(row['prompt'] + row['output']) // s['block_tokens']) for row in rows)
    s['blocks'] = longest + rng.randint(0, 3 * longest)
    return s, rows


CONFIG = """
workload:
  trace: trace.csv
  format: inflight
  arrivals: {{process: trace}}
  patience: {{process: {process}, mean_s: {mean}, seed: {seed}, until_first_token: {until}}}
  retry: {{most: {retries}, backoff_s: {backoff_s}, factor: {factor}, max_backoff_s: {max_backoff_s}, jitter_frac: {jitter}, seed: {seed}}}
serving:
  preset: vllm-v1-sync
  max_model_len: 4096
  leave: {leave}
  shed: {shed}
  {limits}
  batching: {{max_batched_tokens: {budget}, max_seqs: {seqs}, walks_on: false}}
  admit: {{policy: chunk-fits, room_for: chunk}}
  kv: {{block_tokens: {block_tokens}, num_blocks: {blocks}, null_blocks: 0, sizing: memory, prefix_cache: none, publish: computed}}
cost: {{model: linear, step_s: {step_s}, prefill_token_s: {prefill_s}, decode_seq_s: {decode_s}}}
parallel: {{pipeline: {stages}}}
deployment: {{front_end: {{request_s: {request_s}, token_s: {token_s}}}}}
cluster: {{replicas: {replicas}{gateway}}}
slo: {{ttft_s: 0.08, tpot_s: 0.0132}}
output: {{dir: out, plots: false, steps: true}}
"""


def cell(value):
    return '' if value is None else seconds(value)


def write(folder, s, rows):
    with open(f'{folder}/trace.csv', 'w') as out:
        out.write('arrival_s,prompt_tokens,output_tokens,priority,ttft_slo_s,abort_s,deadline_s,abort_tokens,session,think_s\n')
        for row in rows:
            at, think = (seconds(row['at']), '') if row['after'] is None else ('', seconds(row['think']))
            cells = [at, row['prompt'], row['output'], row['priority'], *map(cell, (row['slo'], row['abort'], row['deadline'])),
                     row['abort_tokens'] or '', row['session'], think]
            out.write(','.join(map(str, cells)) + '\n')
    times = {'step_s': 'step_ns', 'prefill_s': 'prefill_ns', 'decode_s': 'decode_ns', 'backoff_s': 'backoff',
             'request_s': 'request', 'token_s': 'token',
             'max_backoff_s': 'max_backoff'}
    with open(f'{folder}/config.yaml', 'w') as out:
        out.write(CONFIG.format(**s, **{key: seconds(s[of]) for key, of in times.items()}, until=str(s['until_first']).lower(),
                                process='exponential' if s['mean_s'] else 'none', mean=s['mean_s'] or 1,
                               
                                limits='\n  '.join(f'{limit}: {s[limit]}' for limit in LIMITS)))


def read(path):
    with open(path) as rows:
        return list(csv.DictReader(rows))


def fly(inflight, folder, s, rows):
    write(folder, s, rows)
    done = subprocess.run([inflight, 'run', 'config.yaml', '--quiet'], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return (sorted(read(f'{folder}/out/requests.csv'), key=lambda row: int(row['request_id'])), read(f'{folder}/out/steps.csv'),
            read(f'{folder}/out/summary.csv')[0])


def expected_row(r, token):
    return {'request_id': str(r.number), 'status': r.status, 'replica': '' if r.replica is None else str(r.replica),
            'arrival_s': cell(r.arrival), 'first_scheduled_s': cell(r.begun),
            'first_token_s': cell(None if r.first is None else r.first + token),
            'finish_s': cell(r.finish), 'left_s': cell(r.left), 'output_tokens': str(r.out), 'preemptions': str(r.preemptions)}


def expected_summary(fleet):
    requests = fleet.requests
    gone = [r for r in requests if r.status != 'finished']
    n = {status: sum(r.status == status for r in requests) for status in ('aborted', 'timed_out', 'shed', 'finished')}
    n |= {'requests': len(requests), 'retries': sum(r.again > 0 for r in requests)}
    if gone:
        n |= {'wasted_tokens': sum(r.n_kept for r in gone), 'wasted_steps': sum(r.n_rows for r in gone)}
    return n


def slo_ns(r):
    return r.row['slo'] or 80 * 10 ** 6


def meets(r, token):
    """True if the request is answered within its objectives, of which the second one is the same for all."""
    if r.status != 'finished':
        return False
    gaps = r.target - 1
    tpot = (2 * (r.finish - token - r.first) + gaps) // (2 * gaps) if gaps else 0
    return r.first + token - r.arrival <= slo_ns(r) and tpot <= 13200000


def compare_shares(fleet, summary, about):
    requests = fleet.requests
    expected = {'attainment_frac': sum(meets(r, fleet.s['token']) for r in requests) / len(requests),
                'retry_amplification': len(requests) / sum(r.again == 0 for r in requests)}
    for key, value in expected.items():
        if key in summary and f'{value:.9g}' != summary[key]:
            sys.exit(f'{about}\n{key}: expected {value:.9g}, got {summary[key]}')


def compare(inflight, number, fleet_of=Fleet, draw_one=draw, name='leaving'):
    s, rows = draw_one(random.Random(f'{name} {number}'))
    fleet = fleet_of(s, rows)
    fleet.run()
    with tempfile.TemporaryDirectory() as folder:
        written, steps, summary = fly(inflight, folder, s, rows)
    about = f'set-up {number}: {s}\n' + '\n'.join(f'{i} {row}' for i, row in enumerate(rows))
    requests = sorted(fleet.requests, key=lambda r: r.number)
    for r, row in zip(requests, written):
        expected = expected_row(r, s['token'])
        got = {key: row.get(key, '') for key in expected}
        if expected != got:
            sys.exit(f'{about}\nexpected {expected}\n     got {got}')
    if len(requests) != len(written):
        sys.exit(f'{about}\nexpected {len(requests)} requests, got {len(written)}')
    expected = sorted((i, *step) for i, engine in enumerate(fleet.engines) for step in engine.steps)
    got = sorted((int(row['replica']), int(row['start_s'].replace('.', '')), int(row['prefill_tokens']), int(row['decode_tokens']))
                 for row in steps if row['duration_s'] != '0.000000000')
    if expected != got:
        sys.exit(f'{about}\nsteps: expected and got\n' + '\n'.join(f'{a} {b}' for a, b in zip(expected, got) if a != b))
    for key, value in expected_summary(fleet).items():
        if key in summary and summary[key] != str(value):
            sys.exit(f'{about}\n{key}: expected {value}, got {summary[key]}')
    compare_shares(fleet, summary, about)
    return sum(r.status != 'finished' for r in requests), sum(r.again > 0 for r in requests)


def main(*of):
    """of: the fleet, what draws it, and the name, where another oracle has its own."""
    if len(sys.argv) < 3:
        sys.exit(sys.modules['__main__'].__doc__)
    inflight = os.path.realpath(sys.argv[1])
    os.environ['INFLIGHT_DATA'] = os.path.realpath(sys.argv[2])
    n = (int(sys.argv[3]) if len(sys.argv) > 3 else 200) * (10 if os.environ.get('TESTS') == 'long' else 1)
    n_gone, n_again = map(sum, zip(*[compare(inflight, number, *of) for number in range(n)]))
    print(f'{n} set-ups, {n_gone} requests left, {n_again} retries')
    sys.exit(n_gone < n)


if __name__ == '__main__':
    main()
