#!/usr/bin/env python3
"""Random tiers of K/V below the device, simulated a second time as docs/tiers.md describes them.

usage: tiers.py INFLIGHT SOURCE [SETUPS]

vLLM's synchronous schedule, prompts in chunks. Loads come before the step or layer by layer, on devices on which seats never lack
blocks; or apart, where each request reserves blocks for its whole answer, so that others wait for them. A tier is a dict of
units; what goes first is found by a look at all of them. The tokens that each request finds on the device and in each tier, its
replica and its end must be the same, and so must the loads in moves.csv. Times are ns.
"""

import csv
import heapq
import itertools
import os
import random
import subprocess
import sys
import tempfile

from routing import ns

BLOCK, LAYERS = 16, 32    # llama-2-7b
NAMES = ('host', 'disk', 'store')
STEP_ENDS, LOAD_ENDS, STORE_ENDS = range(3)    # the order of events at one time


class Unit:
    def __init__(self):
        self.there, self.n_uses, self.used, self.stored, self.n_loads = False, 1, 0, 0, 0


class Tier:
    def __init__(self, name, rules):
        self.name, self.rules, self.below = name, rules, None
        self.units, self.coming, self.offers, self.clock = {}, [], {}, 0
        self.anonymous = itertools.count()
        self.linked = rules['latency'] > 0 or rules['piece'] > 0
        self.evicted = rules['stores'] == 'evicted'

    def key(self, unit):
        return {'lru': (unit.used,), 'lfu': (unit.n_uses, unit.used), 'fifo': (unit.stored,), 'mru': (-unit.used,),
                'filo': (-unit.stored,), 'slru': (unit.n_uses > 1, unit.used)}[self.rules['evict']]

    def tick(self):
        self.clock += 1
        return self.clock

    def has(self, name):
        return name in self.units and self.units[name].there

    def make_room(self, own=()):
        """own: units of the prompt that is stored."""
        if len(self.units) < self.rules['units']:
            return True
        may_go = [name for name, unit in self.units.items() if unit.there and unit.n_loads == 0 and name not in own]
        if not may_go:
            return False
        name = min(may_go, key=lambda name: self.key(self.units[name]))
        del self.units[name]
        if self.below:
            self.below.put(name)
        return True

    def hold(self, name):
        self.units[name] = Unit()
        self.coming.append(name)

    def use(self, names, counts):
        """The last unit of a prompt counts as used before the first one."""
        for name in reversed(names):
            self.units[name].used = self.tick()
            self.units[name].n_uses += counts

    def put(self, name):
        """The tier above evicts the unit; None: no request can look for it."""
        name = name or ('anonymous', self.name, next(self.anonymous))
        if name not in self.units:
            if self.make_room():
                self.hold(name)
        elif self.units[name].there:
            self.units[name].used = self.tick()

    def is_due(self, name):
        self.offers[name] = self.offers.get(name, 0) + 1
        return self.offers[name] >= self.rules['store_after']

    def offer(self, before, names):
        """A request has the further units `names` of a prompt, the first units of which it has offered before."""
        begin_first = self.rules['begin_first']
        own = names if begin_first else before + names
        found = [name for name in names if name in self.units]
        touched = [name for name in own if name in self.units]
        for name in found:
            self.units[name].n_uses += 1
        self.use(touched, 0)
        stored = []
        for name in names:
            if name not in found and self.is_due(name) and self.make_room(own):
                del self.offers[name]
                self.hold(name)
                stored.append(name)
        for name in stored if begin_first else reversed(own):
            if name in stored:
                self.units[name].stored = self.tick()
            if name in stored or name in touched:
                self.units[name].used = self.tick()

    def land(self, names):
        for name in reversed(names) if self.rules['begin_first'] else names:
            self.units[name].there = True
            if self.evicted:
                self.units[name].used = self.units[name].stored = self.tick()


class Block:
    def __init__(self, name, depth):
        self.name, self.depth, self.used, self.n_owners = name, depth, 0, 1


class Device:
    """vLLM's cache: blocks without content first, then by last use, of one request the deepest first."""

    def __init__(self, n_blocks, below):
        self.n_empty, self.blocks, self.clock, self.below = n_blocks, [], 0, below

    def find(self, name):
        return next((block for block in self.blocks if block.name == name), None)

    def take(self):
        if self.n_empty > 0:
            self.n_empty -= 1
            return
        idle = [block for block in self.blocks if block.n_owners == 0]
        block = min(idle, key=lambda block: (block.used, -block.depth))
        self.blocks.remove(block)
        if self.below:
            self.below.put(block.name)

    def add(self, name, depth):
        self.blocks.append(Block(name, depth))
        return self.blocks[-1]


class Request:
    def __init__(self, number, row):
        self.number = number
        self.at, self.n_prompt, self.n_output, self.group, self.n_prefix = row
        self.blocks, self.n_held, self.n_computed, self.n_loading, self.n_out, self.n_offered = [], 0, 0, 0, 0, {}
        self.found = self.end = self.replica = None

    def is_shared(self, i):
        return (i + 1) * BLOCK <= self.n_prefix

    def name(self, i):
        return (self.group, i) if self.is_shared(i) else ('own', self.number, i)


class Replica:
    def __init__(self, fleet, number, n_blocks, n_seats, tiers):
        self.fleet, self.number, self.n_seats, self.tiers = fleet, number, n_seats, tiers
        for above, tier in zip(tiers, tiers[1:]):
            above.below = tier if tier.evicted else None
        self.device = Device(n_blocks, tiers[0] if tiers[0].evicted else None)
        self.waiting, self.loaded, self.running, self.step = [], [], [], None
        self.n_awaited, self.link_free = 0, {}

    def look_up(self, r):
        """The blocks on the device; behind them (tier, unit, its blocks), and how many blocks are found in all."""
        limit = (r.n_prompt - 1) // BLOCK
        hit, found = [], []
        while len(hit) < limit and r.is_shared(len(hit)) and (block := self.device.find(r.name(len(hit)))):
            hit.append(block)
        n = len(hit)
        for i in range(len(hit), limit):
            for tier in self.tiers:
                size = tier.rules['unit']
                if (i + 1) % size == 0 and i + 1 - size <= n <= i and tier.has(r.name(i)):
                    found.append((tier, r.name(i), i + 1 - n))
                    n = i + 1
        if any((n - len(hit)) * BLOCK < tier.rules['min_tokens'] for tier, _, _ in found):
            return hit, [], len(hit)
        return hit, found, n

    def send(self, tier, to_tier, n_blocks):
        busy = self.link_free.get((tier, to_tier), 0)
        self.link_free[tier, to_tier] = max(busy, self.fleet.now) + tier.rules['piece'] * n_blocks
        return self.link_free[tier, to_tier] + tier.rules['latency']

    def send_by_layers(self, tier, n, n_so_far, n_all, step_ns):
        """The step waits for the loads of a plan from a tier together, so that it ends with the last one's last layer; of this
        wait each load has its share."""
        ns, all_ns = tier.rules['piece'] * (n_so_far + n), tier.rules['piece'] * n_all
        wait = max(all_ns // LAYERS, all_ns - step_ns * (LAYERS - 1) // LAYERS)
        return self.send(tier, False, n) - ns + wait * (n_so_far + n) // n_all

    def use(self, r, tier, units):
        """The load of one request from one tier; units that its blocks have pushed out are loaded all the same."""
        left = [name for name, _ in units if tier.has(name)]
        if tier.rules['keeps']:
            tier.use(left, tier.evicted)
        else:
            for name in left:
                del tier.units[name]
        if not tier.linked:
            return None
        held = [tier.units[name] for name in left if tier.rules['keeps']]
        for unit in held:
            unit.n_loads += 1
        return r, tier, sum(n for _, n in units), held

    def compute(self, r, left):
        """The next chunk of a prompt takes its blocks. Those that are shared can be found from now on: publish scheduled."""
        n_chunk = min(left, r.n_prompt - r.n_computed)
        r.n_computed += n_chunk
        while r.n_held * BLOCK < r.n_computed:
            self.device.take()
            r.n_held += 1
        return n_chunk

    def publish(self, r):
        r.blocks += [self.device.add(r.name(i), i) for i in range(len(r.blocks), min(r.n_prefix, r.n_computed) // BLOCK)]

    def need(self, r):
        """Blocks that it takes at once; 0: those of a chunk."""
        return -(-(r.n_prompt + r.n_output) // BLOCK) if self.fleet.rules['apart'] else 0

    def fits(self, r, hit):
        idle = sum(block.n_owners == 0 and block not in hit for block in self.device.blocks)
        return self.need(r) - len(hit) <= self.device.n_empty + idle

    def start(self, r, left, hit, found, n):
        """The tokens that it computes now, and its loads, apart from which it has to wait."""
        self.device.clock += 1
        for block in hit:
            block.n_owners += 1
            block.used = self.device.clock
        r.blocks, r.n_held, r.n_computed = hit, len(hit), n * BLOCK
        while r.n_held < self.need(r):
            self.device.take()
            r.n_held += 1
        waits = self.fleet.rules['apart'] and any(tier.linked for tier, _, _ in found)
        n_chunk = 0 if waits else self.compute(r, left)
        by_tier = [(tier, [(name, k) for t, name, k in found if t is tier]) for tier in self.tiers]
        r.found = {tier.name: sum(k for _, k in units) * BLOCK for tier, units in by_tier}
        r.found['device'] = len(hit) * BLOCK
        loads = [load for load in (self.use(r, tier, units) for tier, units in by_tier if units) if load]
        if waits:
            r.n_loading = len(loads)
        else:
            self.publish(r)
        return n_chunk, loads

    def plan(self):
        if self.step is not None or not (self.waiting or self.loaded or self.running):
            return
        n_tokens, loads, prompts, decodes, left = 0, [], [], [], self.fleet.rules['budget']
        for r in self.running:
            if r.n_computed < r.n_prompt:
                n = self.compute(r, left)
                self.publish(r)
                prompts.append(r)
                n_tokens, left = n_tokens + n, left - n
                continue
            decodes.append(r)
            left -= 1
            if r.n_held * BLOCK < r.n_prompt + r.n_out:
                self.device.take()
                r.n_held += 1
        while (self.loaded or self.waiting) and left > 0 and len(self.running) < self.n_seats:
            if self.loaded:
                r = self.loaded.pop(0)
                n, asked = self.compute(r, left), []
                self.publish(r)
            else:
                hit, found, n_found = self.look_up(self.waiting[0])
                if not self.fits(self.waiting[0], hit):
                    break
                r = self.waiting.pop(0)
                n, asked = self.start(r, left, hit, found, n_found)
            loads += asked
            if r.n_loading == 0:
                self.running.append(r)
                prompts.append(r)
                n_tokens, left = n_tokens + n, left - n
        step_ns = self.fleet.rules['step'] + self.fleet.rules['token'] * n_tokens
        n_sent = dict.fromkeys(self.tiers, 0)
        for r, tier, n, held in loads:
            self.n_awaited += r.n_loading == 0
            if self.fleet.rules['layers']:
                n_all = sum(n for _, of, n, _ in loads if of is tier)
                at = self.send_by_layers(tier, n, n_sent[tier], n_all, step_ns)
            else:
                at = self.send(tier, False, n)
            n_sent[tier] += n
            self.fleet.push(at, LOAD_ENDS, r.number, lambda *of: self.end_load(*of), r, tier, n, held)
        self.store()
        if not (decodes or prompts):
            return
        self.step = (decodes, prompts, step_ns)
        self.go()

    def go(self):
        if self.n_awaited == 0:
            self.fleet.push(self.fleet.now + self.step[2], STEP_ENDS, self.number, self.end_step)

    def store(self):
        for tier in self.tiers:
            names, tier.coming = tier.coming, []
            if names and tier.linked:
                self.fleet.push(self.send(tier, True, len(names) * tier.rules['unit']), STORE_ENDS, self.number, tier.land, names)
            else:
                tier.land(names)

    def end_load(self, r, tier, n_blocks, held):
        self.fleet.loads.append((self.fleet.now, r.number, tier.name, n_blocks))
        for unit in held:
            unit.n_loads -= 1
        if r.n_loading == 0:
            self.n_awaited -= 1
            self.go()
            return
        r.n_loading -= 1
        if r.n_loading == 0:
            self.publish(r)
            self.loaded.append(r)

    def offer(self, r, n, answers):
        for tier in self.tiers:
            size, had = tier.rules['unit'], r.n_offered.get(tier, 0)
            if tier.evicted or (answers and not tier.rules['answers']):
                continue
            names = [r.name(i) for i in range(size - 1, n, size)]
            if len(names) > had:
                tier.offer(names[:had], names[had:])
                r.n_offered[tier] = len(names)

    def leave(self, r):
        """Whole blocks stay in the cache; those that are not shared cannot be found."""
        n = (r.n_prompt + r.n_out - 1) // BLOCK
        self.offer(r, n, True)
        r.end = self.fleet.now
        self.device.clock += 1
        r.blocks += [self.device.add(None, i) for i in range(len(r.blocks), n)]
        for block in r.blocks:
            block.n_owners -= 1
            block.used = self.device.clock
        self.device.n_empty += r.n_held - n

    def end_step(self):
        decodes, prompts, _ = self.step
        self.step = None
        for r in prompts:
            self.offer(r, r.n_computed // BLOCK, False)
        for r in decodes + [r for r in prompts if r.n_computed == r.n_prompt]:
            r.n_out += 1
            if r.n_out == r.n_output:
                self.leave(r)
        self.running = [r for r in self.running if r.end is None]
        self.store()


class Fleet:
    def __init__(self, rules, rows):
        self.rules, self.now, self.events, self.serial, self.loads = rules, 0, [], itertools.count(), []
        store = Tier('store', rules['tiers']['store']) if 'store' in rules['tiers'] else None
        self.replicas = []
        for number in range(rules['replicas']):
            own = [store if name == 'store' else Tier(name, rules['tiers'][name]) for name in NAMES if name in rules['tiers']]
            self.replicas.append(Replica(self, number, rules['blocks'], rules['seats'], own))
        self.requests = [Request(number, row) for number, row in enumerate(rows)]

    def push(self, at, kind, number, call, *of):
        heapq.heappush(self.events, (at, kind, number, next(self.serial), call, of))

    def run(self):
        waiting = list(self.requests)
        while waiting or self.events:
            self.now = min(waiting[0].at if waiting else self.events[0][0], self.events[0][0] if self.events else waiting[0].at)
            while self.events and self.events[0][0] == self.now:
                _, _, _, _, call, of = heapq.heappop(self.events)
                call(*of)
            while waiting and waiting[0].at == self.now:
                r = waiting.pop(0)
                r.replica = r.number % len(self.replicas)
                self.replicas[r.replica].waiting.append(r)
            for replica in self.replicas:
                replica.plan()


def random_tier(rng):
    evicted = rng.random() < 0.5
    unit = 1 if evicted else rng.choice([1, 1, 2])
    latency, piece = rng.choice([(0, 0), (2, 0), (1, 1), (30, 0), (5, 7)])
    return {'units': rng.choice([2, 3, 5, 8, 13, 20]), 'unit': unit, 'stores': 'evicted' if evicted else 'computed',
            'evict': rng.choice(['lru', 'lfu', 'fifo', 'mru', 'filo', 'slru']), 'keeps': rng.random() < 0.7,
            'begin_first': rng.random() < 0.2, 'answers': not evicted and rng.random() < 0.5,
            'store_after': 1 if evicted else rng.choice([1, 1, 1, 2]), 'min_tokens': rng.choice([0, 0, 0, 30]),
            'latency': latency * 10 ** 6, 'piece': piece * 10 ** 6}


def random_fleet(rng):
    seats, most = rng.choice([1, 1, 2, 3]), rng.choice([4, 6, 8])    # blocks of a prompt at most; an answer has one or two more
    names = rng.choice([['host'], ['disk'], ['store'], ['host', 'disk'], ['host', 'store'], ['host', 'disk', 'store']])
    loads = rng.choice(['before', 'layers', 'apart'])
    apart = loads == 'apart'
    rules = {'loads': loads, 'apart': apart, 'layers': loads == 'layers', 'replicas': rng.choice([1, 1, 2, 3]), 'seats': seats, 'blocks': seats * (most + 2) + rng.choice([0, 0, 1, 3]),
             'budget': rng.choice([8192, 8192, seats + 20, 64, 100]), 'step': 10 ** 7, 'token': rng.choice([0, 10 ** 5]), 'tiers': {name: random_tier(rng) for name in names}}
    if apart:
        rules['blocks'] = most + 2 + rng.choice([0, 2, 5, 20])
    together, n_groups = rng.random() < 0.3, rng.choice([2, 3])    # together: each replica gets one at the same time
    rows, at = [], 0
    for i in range(rng.choice([15, 30, 60])):
        at += rng.choice([0, 1, 5, 20, 60]) * 10 ** 6 * (not together or i % rules['replicas'] == 0)
        prompt = rng.randint(8, most * BLOCK)
        rows.append((at, prompt, rng.choice([1, 1, 2, 3, 17]), rng.randint(1, n_groups),
                     rng.choice([prompt, prompt, rng.randint(1, prompt)])))
    return rules, rows


def word(value):
    return str(value).lower()


def tier_text(name, t, loads):
    return (f'{name}: {{blocks: {t["units"] * t["unit"]}, unit_tokens: {t["unit"] * BLOCK}, stores: {t["stores"]}, '
            f'evict: {t["evict"]}, keeps: {word(t["keeps"])}, begin_first: {word(t["begin_first"])}, answers: {word(t["answers"])}, '
            f'store_after: {t["store_after"]}, min_tokens: {t["min_tokens"]}, loads: {loads}, pieces: blocks, gb_per_s: 0, '
            f'latency_s: {t["latency"] / 1e9:.9f}, piece_s: {t["piece"] / 1e9:.9f}}}')


def fly(inflight, folder, rules, rows):
    admit = '{policy: reserve, for: declared}' if rules['apart'] else 'chunk-fits'
    with open(f'{folder}/trace.csv', 'w') as out:
        out.write('arrival_s,prompt_tokens,output_tokens,prefix_group,prefix_tokens\n')
        out.writelines(f'{at / 1e9:.9f},{prompt},{output},{group},{prefix}\n' for at, prompt, output, group, prefix in rows)
    with open(f'{folder}/config.yaml', 'w') as out:
        out.write(f'''model: llama-2-7b
workload: {{trace: {folder}/trace.csv, format: inflight, arrivals: {{process: trace}}}}
serving:
  preset: vllm-v1-2026-08
  max_model_len: 4096
  batching: {{max_seqs: {rules['seats']}, max_batched_tokens: {rules['budget']}}}
  admit: {admit}
  kv:
    num_blocks: {rules['blocks']}
    null_blocks: 0
    tiers: {{{', '.join(tier_text(name, tier, rules['loads']) for name, tier in rules['tiers'].items())}}}
cost: {{model: linear, step_s: {rules['step'] / 1e9}, prefill_token_s: {rules['token'] / 1e9}}}
cluster: {{replicas: {rules['replicas']}}}
''')
    done = subprocess.run([inflight, 'run', f'{folder}/config.yaml', '--quiet', '-o', f'{folder}/out'], capture_output=True,
                          text=True, timeout=300)
    if done.returncode:
        sys.exit(done.stderr)
    with open(f'{folder}/out/requests.csv') as text:
        requests = sorted(csv.DictReader(text), key=lambda row: int(row['request_id']))
    with open(f'{folder}/out/moves.csv') as text:
        return requests, list(csv.DictReader(text))


def compare(inflight, number):
    rng = random.Random(f'tiers {number}')
    rules, rows = random_fleet(rng)
    fleet = Fleet(rules, rows)
    fleet.run()
    with tempfile.TemporaryDirectory() as folder:
        written, moves = fly(inflight, folder, rules, rows)
    for r, row in zip(fleet.requests, written):
        tiers = {name: int(row[f'{name}_tokens']) for name in NAMES}
        got = {**tiers, 'device': int(row['cached_tokens']) - sum(tiers.values())}
        expected = {name: r.found.get(name, 0) for name in got}
        if (got, int(row['replica']), ns(row['finish_s'])) != (expected, r.replica, r.end):
            sys.exit(f'set-up {number}: request {r.number} found {got} at replica {row["replica"]} and ended at {row["finish_s"]}, '
                     f'expected {expected} at {r.replica}, {r.end} ns\n{rules}\n{rows}')
    loads = [(ns(row['end_s']), int(row['request_id']), row['from_replica'], int(row['blocks'])) for row in moves]
    if sorted(loads) != sorted(fleet.loads):
        sys.exit(f'set-up {number}: loads {sorted(loads)}, expected {sorted(fleet.loads)}\n{rules}\n{rows}')
    return len(loads), sum(sum(r.found.get(name, 0) for name in NAMES) for r in fleet.requests)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    os.environ['INFLIGHT_DATA'] = sys.argv[2]
    n = (int(sys.argv[3]) if len(sys.argv) > 3 else 200) * (10 if os.environ.get('TESTS') == 'long' else 1)
    n_loads, n_tokens = map(sum, zip(*[compare(sys.argv[1], number) for number in range(n)]))
    print(f'tiers: {n} set-ups, {n_loads} loads, {n_tokens} tokens found below the device')
    sys.exit(n_loads < n or n_tokens < 50 * n)


if __name__ == '__main__':
    main()
