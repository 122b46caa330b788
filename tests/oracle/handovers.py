#!/usr/bin/env python3
"""Random prefill and decode pools, simulated a second time as docs/disaggregation.md describes them.

usage: handovers.py INFLIGHT SOURCE [SETUPS]

Requests are pulled, or pushed whole or by chunks. All replicas reserve blocks for what they may compute, so that prompts wait for
blocks and nothing is preempted. Links are shared in all ways. Clients leave and deadlines pass at any time. Each row of
requests.csv and moves.csv must be the same. Times are ns.
"""

import csv
import heapq
import itertools
import math
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

from pipeline import seconds

BLOCK = 16
STEP_ENDS, LINK_FREE, MOVE_ENDS, LEASE_ENDS, LEAVES, ARRIVES = range(6)


class Request:
    def __init__(self, number, row):
        self.number, (self.at, self.prompt, self.output, self.abort, self.deadline) = number, row
        self.place, self.out, self.computed, self.todo, self.mark, self.status = None, 0, 0, 0, None, None
        self.n_kept = self.n_steps = self.n_sent = self.n_flying = 0
        self.taken = False    # it has blocks at the decode replica
        self.p = self.d = self.begun = self.first = self.end = self.got = None

    def blocks(self, n):
        return -(-n // BLOCK)


class Replica:
    def __init__(self, fleet, number, rules):
        self.fleet, self.number, self.rules = fleet, number, rules
        self.free, self.waiting, self.loaded, self.running, self.step, self.n_moving = rules['blocks'], [], [], [], None, 0

    def n_there(self):
        return len(self.waiting) + len(self.loaded) + len(self.running) + self.n_moving

    def plan(self):
        if self.step is None:
            work = self.work()
            if work:
                prompts = sum(n for r, n in work.items() if not self.decodes(r))
                decodes = sum(self.decodes(r) for r in work)
                ns = self.rules['step'] + self.rules['token'] * prompts + self.rules['seq'] * decodes
                self.step = work
                self.fleet.push(ns, STEP_ENDS, self.number, self.end_step)

    def counts_no_token(self, r):
        """A token of an answer is not counted where its request leaves; of a prompt each one counts once."""
        again = isinstance(self, Decode) and self.fleet.rules['first'] == 'decode' and r.out == 0 and not r.todo
        return again or (r.mark and self.decodes(r))

    def end_step(self):
        work, self.step = self.step, None
        for r, n in work.items():
            r.n_steps += 1
            r.n_kept += 0 if self.counts_no_token(r) else n
            if r.mark:
                self.running.remove(r)
                self.leave(r)
            else:
                self.count(r, n)
        self.sent([r for r in work if not r.status])

    def sent(self, work):
        """What a step sends as it ends."""


class Prefill(Replica):
    def decodes(self, r):
        return False

    def need(self, r):
        """Its modules see a request of one token."""
        return r.blocks(r.prompt + 1)

    def work(self):
        left, work = self.rules['budget'], {}
        for r in self.running:
            work[r] = min(left, r.prompt - r.computed)
            left -= work[r]
        while self.waiting and left > 0 and len(self.running) < self.rules['seqs']:
            r = self.waiting[0]
            if self.need(r) > self.free:
                break
            self.running.append(self.waiting.pop(0))
            self.free -= self.need(r)
            r.begun, work[r] = self.fleet.now, min(left, r.prompt)
            left -= work[r]
        return {r: n for r, n in work.items() if n > 0}

    def leave(self, r):
        """Blocks that are read are free when they have been."""
        if r.n_flying == 0:
            self.free += self.need(r)
        self.fleet.end(r, r.mark)

    def count(self, r, n):
        r.computed += n
        if r.computed < r.prompt:
            return
        self.running.remove(r)
        if self.fleet.rules['first'] == 'prefill':
            self.fleet.give(r)
        if r.status:
            self.free += self.need(r)
        elif not self.fleet.rules['push']:
            self.fleet.hand_over(r)
        else:
            r.place = 'moving' if r.taken else 'waiting'

    def sent(self, work):
        if self.fleet.rules['overlap'] == 'chunk':
            for r in work:
                if r.taken and r.computed < r.prompt:
                    self.fleet.send(r, r.computed // BLOCK - r.n_sent)
        for r in work:
            if r.place == 'moving':
                self.fleet.send(r, r.blocks(r.prompt) - r.n_sent)


class Decode(Replica):
    def decodes(self, r):
        return not r.todo and (self.fleet.rules['first'] != 'decode' or r.out > 0)

    def need(self, r):
        return r.blocks(r.prompt + r.output)

    def work(self):
        left, work = self.rules['budget'], {}
        for r in self.running:
            work[r] = min(left, r.todo or 1)
            left -= work[r]
        while (self.loaded or self.waiting) and left > 0 and len(self.running) < self.rules['seqs']:
            queue = self.loaded or self.waiting
            r = queue[0]
            if r.place != 'loaded' and self.need(r) > self.free:
                break
            queue.pop(0)
            if r.place != 'loaded':
                self.free -= self.need(r)
            if r.place in ('waiting', 'prefill'):
                self.n_moving += 1
                r.taken = True
                if r.place == 'waiting':
                    r.place = 'moving'
                    self.fleet.send(r, r.blocks(r.prompt) - r.n_sent)
                continue
            self.running.append(r)
            r.place, work[r] = 'running', min(left, r.todo or 1)
            left -= work[r]
        return {r: n for r, n in work.items() if n > 0}

    def leave(self, r):
        self.free += self.need(r)
        self.fleet.end(r, r.mark)

    def count(self, r, n):
        r.todo = max(r.todo - n, 0)
        if r.todo == 0:
            self.fleet.give(r)
        if r.status:
            self.running.remove(r)
            self.free += self.need(r)


class SharedLinks:
    """Moves of which each has the smaller of its shares of its two links, all of which change as moves come and end."""

    def __init__(self, fleet):
        self.fleet, self.left, self.at, self.version = fleet, {}, 0, 0

    def share(self, move):
        return Fraction(1, max(sum(end in other[:2] for other in self.left) for end in move[:2]))

    def pass_time(self):
        shares = {move: self.share(move) for move in self.left}
        for move, share in shares.items():
            self.left[move] -= share * (self.fleet.now - self.at)
        self.at = self.fleet.now

    def enter(self, move, ns):
        self.pass_time()
        self.left[move] = Fraction(ns)
        self.watch()

    def watch(self):
        self.version += 1
        if self.left:
            self.fleet.push(min(self.ns_left(move) for move in self.left), MOVE_ENDS, 0, self.look, self.version)

    def ns_left(self, move):
        return max(0, math.floor(self.left[move] / self.share(move) + Fraction(1, 2)))

    def look(self, version):
        if version != self.version:
            return
        done = [move for move in self.left if self.ns_left(move) <= self.fleet.now - self.at]
        self.pass_time()
        for move in done:
            del self.left[move]
            move[2](*move[3])
        self.watch()


class Fleet:
    def __init__(self, rules, rows):
        self.rules, self.now, self.events, self.serial, self.moves = rules, 0, [], itertools.count(), []
        n = rules['p']['n']
        self.prefills = [Prefill(self, i, rules['p']) for i in range(n)]
        self.decodes = [Decode(self, n + i, rules['d']) for i in range(rules['d']['n'])]
        self.requests = [Request(i, row) for i, row in enumerate(rows)]
        self.out_free, self.in_free, self.under_way = [0] * n, {}, []
        self.shared = SharedLinks(self)
        for r in self.requests:
            self.push(r.at, ARRIVES, r.number, self.arrive, r)

    def push(self, ns, kind, number, call, *of):
        heapq.heappush(self.events, (self.now + ns, kind, number, next(self.serial), call, of))

    def pick(self, replicas, rule, r):
        """Turns are those of arrival."""
        if rule == 'turns':
            return replicas[r.number % len(replicas)]
        return min(replicas, key=lambda replica: replica.n_there())

    def arrive(self, r):
        r.p = self.pick(self.prefills, self.rules['prefill'], r)
        r.place = 'prefill'
        if self.rules['push']:
            r.d = self.pick(self.decodes, self.rules['decode'], r)
            if self.rules['first'] == 'prefill' and r.output == 1:
                r.d = None
            else:
                r.d.waiting.append(r)
        r.p.waiting.append(r)
        for status, ns in (('aborted', r.abort), ('timed_out', r.deadline)):
            if ns is not None:
                self.push(ns, LEAVES, r.number, self.leave, r, status)

    def give(self, r):
        r.out += 1
        r.first = self.now if r.first is None else r.first
        if r.out == r.output:
            self.end(r, 'finished')

    def end(self, r, status):
        r.status, r.end = status, self.now

    def hand_over(self, r):
        r.d = self.pick(self.decodes, self.rules['decode'], r)
        r.place, r.got = 'waiting', self.now
        r.d.waiting.append(r)
        r.d.waiting.sort(key=lambda q: (q.n_sent == 0, 0 if q.n_sent else q.got, 0 if q.n_sent else q.number))
        if self.rules['lease']:
            self.push(self.rules['lease'], LEASE_ENDS, r.number, self.end_lease, r)

    def end_lease(self, r):
        if r.place == 'waiting' and not r.status:
            if self.rules['lost'] == 'fail':
                r.n_kept = 0
                return self.give_up(r, 'failed')
            r.p.free += r.p.need(r)
            self.lose(r)

    def lose(self, r):
        """The decode replica computes all its tokens."""
        r.place, r.todo, r.n_kept = 'lost', r.prompt + r.out, 0

    def give_up(self, r, status):
        r.d.waiting.remove(r)
        r.p.free += r.p.need(r)
        self.end(r, status)

    def send(self, r, n):
        """The move and the latency behind it; only the move takes the links."""
        if n == 0:
            return None
        link, i, start = self.rules['link'], r.p.number, self.now
        ns = link['block'] * n
        if link['sharing'] == 'shared' and link['by'] == 'bytes' and ns > 0:
            r.n_sent += n
            r.n_flying += 1
            move = (r.p.number, r.d.number, self.end_move, (r, n, start))
            return self.push(link['latency'], LINK_FREE, r.number, self.shared.enter, move, ns)
        if link['sharing'] == 'frozen' and link['by'] == 'bytes':
            ends = {r.p.number, r.d.number}
            ns *= 1 + max(sum(number in ends_of for ends_of in self.under_way) for number in ends)
            self.under_way.append(ends)
        if link['sharing'] == 'fifo':
            start = max(self.now, self.out_free[i], self.in_free.get(r.d.number, 0))
            self.out_free[i] = self.in_free[r.d.number] = start + ns
        r.n_sent += n
        r.n_flying += 1
        return self.push(start + ns + link['latency'] - self.now, MOVE_ENDS, r.number, self.end_move, r, n, start)

    def end_move(self, r, n, start):
        self.moves.append((self.now, r.number, r.p.number, r.d.number, start, n))
        if self.rules['link']['sharing'] == 'frozen' and self.rules['link']['by'] == 'bytes':
            self.under_way.remove({r.p.number, r.d.number})
        r.n_flying -= 1
        if r.n_flying > 0 or (r.place == 'prefill' and not r.status and not r.mark):
            return
        if r.place == 'prefill':
            self.give_back(r)
            if r.status:
                r.p.free += r.p.need(r)
            return
        r.p.free += r.p.need(r)
        r.d.n_moving -= 1
        if r.status:
            r.d.free += r.d.need(r)
        elif self.rules['fails']:
            r.d.free += r.d.need(r)
            self.lose(r)
            if self.rules['lost'] == 'fail':
                self.end(r, 'failed')
            else:
                r.d.waiting.insert(0, r)
        else:
            self.load(r)

    def load(self, r):
        if self.rules['first'] == 'arrival':
            self.give(r)
        if r.status:
            r.d.free += r.d.need(r)
        else:
            r.place = 'loaded'
            r.d.loaded.append(r)

    def give_back(self, r):
        """What the decode replica has for a prompt that is not computed."""
        if r.taken:
            r.taken = False
            r.d.n_moving -= 1
            r.d.free += r.d.need(r)
        elif r.d in self.decodes and r in r.d.waiting:
            r.d.waiting.remove(r)

    def leave(self, r, status):
        if r.status or r.mark:
            return
        if r.place == 'prefill':
            if r in r.p.waiting:
                r.p.waiting.remove(r)
                self.end(r, status)
            else:
                self.mark(r.p, r, status)
            if r.n_flying == 0:
                self.give_back(r)
        elif r.place == 'waiting':
            self.give_up(r, status)
        elif r.place == 'moving':
            self.end(r, status)
        elif r.place == 'lost':
            r.d.waiting.remove(r)
            self.end(r, status)
        elif r.place == 'loaded':
            r.d.loaded.remove(r)
            r.d.free += r.d.need(r)
            self.end(r, status)
        else:
            self.mark(r.d, r, status)

    def mark(self, replica, r, status):
        r.mark = status
        if replica.step is None:
            replica.running.remove(r)
            replica.leave(r)

    def run(self):
        while self.events:
            self.now = self.events[0][0]
            while self.events and self.events[0][0] == self.now:
                _, _, _, _, call, of = heapq.heappop(self.events)
                call(*of)
            for replica in self.prefills + self.decodes:
                replica.plan()


# ---- set-ups ----

def random_pool(rng, n_blocks):
    return {'n': rng.choice([1, 1, 2, 3]), 'step': rng.choice([2, 10]) * 10 ** 6, 'token': rng.choice([0, 10 ** 4, 10 ** 5]),
            'seq': rng.choice([0, 10 ** 5]), 'seqs': rng.choice([1, 2, 4, 16]), 'budget': rng.choice([20, 64, 400]),
            'blocks': n_blocks}


def draw(rng):
    rows, at = [], 0
    leaves = rng.choice([0, 0.3, 0.7])
    for _ in range(rng.choice([10, 20, 40])):
        at += rng.choice([0, 1, 4, 12, 30]) * 10 ** 6
        abort = rng.choice([1, 8, 15, 30, 60, 120]) * 10 ** 6 + rng.choice([0, 501]) if rng.random() < leaves else None
        deadline = rng.choice([10, 25, 50, 100]) * 10 ** 6 + 7 if rng.random() < leaves / 2 else None
        rows.append((at, rng.randint(1, 300), rng.choice([1, 2, 3, 8, 20]), abort, deadline))
    p, d = random_pool(rng, 10000), random_pool(rng, rng.choice([21, 30, 60, 10000]))
    d['budget'] = max(d['budget'], d['seqs'])
    push = rng.random() < 0.5
    whole = rng.random() < 0.5
    if whole:
        p |= {'blocks': rng.choice([20, 30, 50]), 'budget': 100000}
    return {'push': push, 'overlap': rng.choice(['none', 'chunk']) if push else 'none', 'p': p, 'd': d, 'first': rng.choice(['prefill', 'arrival', 'decode']), 'prefill': rng.choice(['turns', 'requests']),
            'decode': rng.choice(['turns', 'requests']), 'lease': 0 if push else rng.choice([0, 0, 23000003]),
            'lost': rng.choice(['fail', 'recompute']), 'fails': not push and rng.random() < 0.1,
            'link': {'latency': rng.choice([0, 2, 15]) * 10 ** 6, 'block': rng.choice([0, 10 ** 5, 10 ** 6]),
                     'by': rng.choice(['bytes', 'pieces']), 'sharing': rng.choice(['fifo', 'unshared', 'frozen', 'shared'])}}, rows


def pool_text(name, role, pool):
    return f'''
    {name}:
      role: {role}
      count: {pool['n']}
      cost: {{step_s: {seconds(pool['step'])}, prefill_token_s: {seconds(pool['token'])}, decode_seq_s: {seconds(pool['seq'])}}}
      serving:
        preset: vllm-v1-sync
        batching: {{max_batched_tokens: {pool['budget']}, max_seqs: {pool['seqs']}, walks_on: false}}
        admit: {{policy: reserve, for: declared}}
        kv: {{block_tokens: {BLOCK}, num_blocks: {pool['blocks']}, null_blocks: 0, sizing: memory, prefix_cache: none}}'''


def write(folder, rules, rows):
    def cell(value):
        return '' if value is None else seconds(value)
    link = rules['link']
    by_bytes = link['by'] == 'bytes' and link['block'] > 0
    with open(f'{folder}/trace.csv', 'w') as out:
        out.write('arrival_s,prompt_tokens,output_tokens,abort_s,deadline_s\n')
        out.writelines(f'{seconds(at)},{p},{o},{cell(abort)},{cell(deadline)}\n' for at, p, o, abort, deadline in rows)
    with open(f'{folder}/config.yaml', 'w') as out:
        out.write(f'''workload: {{trace: trace.csv, format: inflight, arrivals: {{process: trace}}}}
serving: {{preset: vllm-v1-sync, max_model_len: 4096}}
cost: {{model: linear}}
cluster:
  router: {{policy: pair, prefill: {rules['prefill']}, decode: {rules['decode']}}}
  handover: {{order: {'push' if rules['push'] else 'pull'}, first_token: {rules['first']}, overlap: {rules['overlap']}, lease_s: {seconds(rules['lease'])},
             lost: {rules['lost']}, fail_frac: {int(rules['fails'])}}}
  links:
    sharing: {link['sharing']}
    latency_s: {seconds(link['latency'])}
    gb_per_s: {1 if by_bytes else 0}
    token_bytes: {link['block'] // BLOCK if by_bytes else 0}
    pieces: blocks
    piece_s: {0 if by_bytes else seconds(link['block'])}
  pools:{pool_text('p', 'prefill', rules['p'])}{pool_text('d', 'decode', rules['d'])}
output: {{dir: out, plots: false}}
''')


def read(path):
    if not os.path.exists(path):
        return []
    with open(path) as rows:
        return list(csv.DictReader(rows))


def fly(inflight, folder, rules, rows):
    write(folder, rules, rows)
    done = subprocess.run([inflight, 'run', 'config.yaml', '--quiet'], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'{done.stderr}{rules}\n{rows}')
    requests = sorted(read(f'{folder}/out/requests.csv'), key=lambda row: int(row['request_id']))
    return requests, read(f'{folder}/out/moves.csv'), read(f'{folder}/out/summary.csv')[0], read(f'{folder}/out/pools.csv')


def expected_row(r):
    def cell(value):
        return '' if value is None else seconds(value)
    decodes = r.place in ('loaded', 'lost', 'running') or (r.place != 'prefill' and r.status in ('finished', 'failed') and r.d is not None)
    return {'status': r.status, 'replica': str((r.d if decodes else r.p).number), 'output_tokens': str(r.out),
            'first_scheduled_s': cell(r.begun), 'first_token_s': cell(r.first),
            'finish_s': cell(r.end if r.status == 'finished' else None), 'left_s': cell(None if r.status == 'finished' else r.end)}


def compare_sums(fleet, sums, pools, about):
    gone = [r for r in fleet.requests if r.status != 'finished']
    expected = {status: sum(r.status == status for r in fleet.requests) for status in ('finished', 'failed', 'aborted', 'timed_out')}
    expected |= {'wasted_tokens': sum(r.n_kept for r in gone), 'wasted_steps': sum(r.n_steps for r in gone)}
    for key, value in expected.items():
        of_pools = sum(int(row[key]) for row in pools)
        if int(sums.get(key, value)) != value or of_pools != value:
            sys.exit(f'{about}\n{key}: expected {value}, got {sums.get(key)}, in pools {of_pools}')


def compare(inflight, number):
    rules, rows = draw(random.Random(f'handovers {number}'))
    fleet = Fleet(rules, rows)
    fleet.run()
    with tempfile.TemporaryDirectory() as folder:
        written, moves, sums, pools = fly(inflight, folder, rules, rows)
    about = f'set-up {number}: {rules}\n' + '\n'.join(f'{i} {row}' for i, row in enumerate(rows))
    for r, row in zip(fleet.requests, written):
        expected = expected_row(r)
        got = {key: row.get(key, '') for key in expected}
        if got != expected:
            sys.exit(f'{about}\nrequest {r.number}: expected {expected}\n                     got {got}')
    expected = sorted((seconds(end), i, p, d, seconds(start), n) for end, i, p, d, start, n in fleet.moves)
    got = sorted((row['end_s'], int(row['request_id']), int(row['from_replica']), int(row['to_replica']), row['start_s'],
                  int(row['blocks'])) for row in moves)
    if got != expected:
        sys.exit(f'{about}\nmoves: expected and got\n' + '\n'.join(f'{a} {b}' for a, b in itertools.zip_longest(expected, got) if a != b))
    compare_sums(fleet, sums, pools, about)
    return len(moves), sum(r.status != 'finished' for r in fleet.requests)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    inflight = os.path.realpath(sys.argv[1])
    os.environ['INFLIGHT_DATA'] = os.path.realpath(sys.argv[2])
    n = (int(sys.argv[3]) if len(sys.argv) > 3 else 200) * (10 if os.environ.get('TESTS') == 'long' else 1)
    n_moves, n_gone = map(sum, zip(*[compare(inflight, number) for number in range(n)]))
    print(f'{n} set-ups, {n_moves} moves, {n_gone} requests left')
    sys.exit(n_moves < n or n_gone < n)


if __name__ == '__main__':
    main()
