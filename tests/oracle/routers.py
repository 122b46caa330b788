"""Rules of routers, told again from what a run wrote down: for each request, all that was sent before it and when it
started, had its first token and ended. Nothing is kept between two questions; prompts are compared token by token.

A rule is a class with `name`, `sets(rng)` and `pick(log, i)`, which returns the replica of request i.
"""

import math
from collections import OrderedDict, namedtuple

MASK = (1 << 64) - 1

Request = namedtuple('Request', 'at start first end replica prompt output group shared session')
Report = namedtuple('Report', 'waiting running used')


def mix(x):
    x = (x + 0x9e3779b97f4a7c15) & MASK
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & MASK
    return x ^ (x >> 31)


class Log:
    """The requests of a run in order of arrival, times in ns; what a router could know of them."""

    def __init__(self, requests, setting):
        self.of, self.setting = requests, setting
        self.n, self.block, self.pool = setting['replicas'], setting['block_tokens'], setting['num_blocks']

    def draw(self, i, index):
        """include/inflight/random.h, purpose 9: for a router."""
        return mix(mix(mix(mix(self.setting['seed']) ^ 9) ^ i) ^ index)

    def token(self, i, at):
        r = self.of[i]
        return ('group', r.group, at) if at < r.shared else ('own', i, at)

    def chunks(self, i, size, keeps_rest):
        """The prompt cut into pieces; a piece is all of its tokens."""
        n = self.of[i].prompt
        pieces = [tuple(self.token(i, at) for at in range(k, min(k + size, n))) for k in range(0, n, size)]
        return [piece for piece in pieces if keeps_rest or len(piece) == size]

    def common(self, i, j, size, keeps_rest):
        """Pieces that begin both prompts."""
        n = 0
        for a, b in zip(self.chunks(i, size, keeps_rest), self.chunks(j, size, keeps_rest)):
            if a != b:
                break
            n += 1
        return n

    def sent(self, i, replica=None):
        """Requests sent before i, to that replica."""
        return [j for j in range(i) if replica is None or self.of[j].replica == replica]

    def in_flight(self, i, replica):
        return [j for j in self.sent(i, replica) if self.of[j].end > self.of[i].at]

    def held(self, j):
        return -(-(self.of[j].prompt + self.of[j].output) // self.block)

    def state(self, replica, joined, now):
        here = [j for j in joined if self.of[j].replica == replica and self.of[j].end > now]
        running = [j for j in here if self.of[j].start < now]
        return Report(len(here) - len(running), len(running), sum(self.held(j) for j in running))

    def report_at(self, i):
        """When the report that the router has at the arrival of i was taken; None: it knows replicas as they are."""
        interval, delay = self.setting['interval'], self.setting['delay']
        now = self.of[i].at
        if interval == 0:
            return None
        return (now - delay) // interval * interval if now >= delay else -1

    def report(self, i, replica):
        taken = self.report_at(i)
        if taken is None:
            return self.state(replica, range(i), self.of[i].at)
        return self.state(replica, [j for j in range(i) if self.of[j].at < taken], taken)


class RotatingLeast:
    name = 'rotating-least'

    @staticmethod
    def sets(rng):
        return {'clients': rng.choice([1, 1, 2, 3])}

    @staticmethod
    def pick(log, i):
        clients = log.setting['clients']
        mine = [j for j in range(i) if j % clients == i % clients]
        start, taken = log.n * (i % clients) // clients + len(mine), log.report_at(i)
        best = None
        for k in range(log.n):
            r = (start + k) % log.n
            report = log.report(i, r)
            since = 0 if taken is None else sum(log.of[j].replica == r and log.of[j].at >= taken for j in mine)
            waiting = report.waiting + clients * since
            own = sum(j in mine for j in log.in_flight(i, r))
            usage = 1 - (log.pool - report.used) / log.pool
            score = max(clients * own, waiting + report.running) + waiting * 6.0 * max(0.0, usage - 0.5)
            if best is None or score < best[0]:
                best = score, r
        return best[1]


class Scores:
    name = 'scores'
    WEIGHTS = ('queue', 'kv', 'load', 'running', 'active', 'tokens', 'prefix', 'precise', 'cold')

    @staticmethod
    def sets(rng):
        sets = {weight: rng.choice([0, 0, 1, 2, 3]) for weight in Scores.WEIGHTS}
        sets.update(block_tokens=rng.choice([0, 4, 16]), match_blocks=rng.choice([2, 256]),
                    lru_blocks=rng.choice([3, 10, 31250]), queue_cap=rng.choice([2, 128]),
                    idle_reqs=rng.choice([0, 1]), busy_score=rng.choice([0.5, 1]), token_cap=rng.choice([100, 4194304]),
                    guess_s=rng.choice([0.01, 2]))
        return sets

    @staticmethod
    def names(log, i, keeps_rest=True):
        """Each block by all that stands up to its end."""
        size = log.setting['block_tokens_of_router'] or log.block
        chunks = log.chunks(i, size, keeps_rest and log.of[i].prompt >= size)[:log.setting['match_blocks']]
        return [tuple(chunks[:k + 1]) for k in range(len(chunks))]

    @staticmethod
    def known(log, i):
        """What the index has of each replica at the arrival of i, and which requests were cold."""
        index = [OrderedDict() for _ in range(log.n)]
        cold = []
        for j in range(i + 1):
            names, found = Scores.names(log, j), [0] * log.n
            for name in names:
                holders = [r for r in range(log.n) if name in index[r]]
                if not holders:
                    break
                for r in holders:
                    found[r] += 1
            cold.append(not any(found))
            if j == i:
                return found, cold
            own = index[log.of[j].replica]
            for name in names:
                own.pop(name, None)
                own[name] = True
                if len(own) > log.setting['lru_blocks']:
                    own.popitem(last=False)
        return None

    @staticmethod
    def of_cold(log, i, cold):
        """The first of those that never had a cold prompt scores most, the last that had one least."""
        last = [max((j for j in log.sent(i, r) if cold[j]), default=-1) for r in range(log.n)]
        order = sorted(range(log.n), key=lambda r: (last[r], r))
        return {r: 1 - place / (log.n - 1) if log.n > 1 else 1 for place, r in enumerate(order)}

    @staticmethod
    def precise(log, i, r):
        """Without a prefix cache only guesses are there, of blocks that the index still has."""
        names = Scores.names(log, i, keeps_rest=False)
        index, now, guess_ns = OrderedDict(), log.of[i].at, round(log.setting['guess_s'] * 1e9)
        for j in log.sent(i, r):
            for name in Scores.names(log, j):
                index.pop(name, None)
                index[name] = log.of[j].at
                if len(index) > log.setting['lru_blocks']:
                    index.popitem(last=False)
        n = 0
        while n < len(names) and names[n] in index and now - index[names[n]] < guess_ns:
            n += 1
        return n / len(names) if names else 0.0

    @staticmethod
    def below_most(values):
        return [1.0 if max(values) == min(values) else (max(values) - v) / (max(values) - min(values)) for v in values]

    @staticmethod
    def pick(log, i):
        s, replicas = log.setting, range(log.n)
        remembers = s['prefix'] > 0 or s['precise'] > 0 or s['cold'] > 0
        reports = [log.report(i, r) for r in replicas]
        found, cold = Scores.known(log, i) if remembers else ([0] * log.n, [True] * (i + 1))
        total = len(Scores.names(log, i))
        active = [log.in_flight(i, r) for r in replicas]
        tokens = [sum(log.of[j].prompt + math.floor(log.of[j].prompt * 1.5 + 0.5) for j in a) for a in active]
        most = max(len(a) for a in active)
        queue, running = (Scores.below_most([getattr(q, what) for q in reports]) for what in ('waiting', 'running'))
        turns = Scores.of_cold(log, i, cold)
        sums = []
        for r in replicas:
            busy = (most - len(active[r])) / most * s['busy_score'] if len(active[r]) > s['idle_reqs'] else 1.0
            score = s['queue'] * queue[r]
            score += s['kv'] * ((log.pool - reports[r].used) / log.pool)
            score += s['load'] * (0.5 * (1 - min(reports[r].waiting, s['queue_cap']) / s['queue_cap']))
            score += s['running'] * running[r]
            score += s['active'] * busy
            score += s['tokens'] * (1 - min(tokens[r], s['token_cap']) / s['token_cap'] if tokens[r] else 1.0)
            if s['prefix'] > 0 and total:
                score += s['prefix'] * (found[r] / total)
            if s['precise'] > 0:
                score += s['precise'] * Scores.precise(log, i, r)
            if s['cold'] > 0:
                score += s['cold'] * (turns[r] if cold[i] else 0.5)
            sums.append(score)
        return Scores.draw_of_best(log, i, sums)

    @staticmethod
    def draw_of_best(log, i, sums):
        """The n-th replica that equals the best so far takes its place if its draw is divisible by n."""
        best, n = 0, 0
        for r, score in enumerate(sums):
            if score > sums[best] or n == 0:
                best, n = r, 1
            elif score == sums[best]:
                n += 1
                best = r if log.draw(i, n) % n == 0 else best
        return best


class PrefixTree:
    name = 'prefix-tree'

    @staticmethod
    def sets(rng):
        return {'min_match_frac': rng.choice([0, 0.3, 0.5]), 'balance_abs': rng.choice([1, 4, 64]),
                'balance_rel': rng.choice([1, 1.5]), 'block_tokens': rng.choice([1, 4, 16])}

    @staticmethod
    def pick(log, i):
        s, counts = log.setting, [len(log.in_flight(i, r)) for r in range(log.n)]
        least = counts.index(min(counts))
        if max(counts) - min(counts) > s['balance_abs'] and max(counts) > s['balance_rel'] * min(counts):
            return least
        size, prompt = s['block_tokens_of_router'], log.of[i].prompt
        matches = [(log.common(i, j, size, True), j) for j in log.sent(i)]
        longest = max((n for n, _ in matches), default=0)
        if min(longest * size, prompt) / prompt <= s['min_match_frac']:
            return least
        holders = [log.of[j].replica for n, j in matches if n == longest]
        return min(holders, key=lambda r: (counts[r], r)) if s.get('holder') == 'fewest' else holders[0]


class PrefixTreeFewest(PrefixTree):
    """The same fleets, with the other rule."""
    @staticmethod
    def sets(rng):
        return {**PrefixTree.sets(rng), 'holder': 'fewest'}


class PrefixTrie:
    name = 'prefix-trie'

    @staticmethod
    def sets(rng):
        return {'chunk_tokens': rng.choice([1, 4, 32]), 'min_match_tokens': rng.choice([0, 1, 16]),
                'window_s': rng.choice([0.02, 60])}

    @staticmethod
    def lowest_rate(log, i):
        rates = []
        for r in range(log.n):
            if not log.sent(i, r):
                return r
            rates.append(sum(log.of[j].at >= log.of[i].at - round(log.setting['window_s'] * 1e9)
                             for j in log.sent(i, r)))
        return rates.index(min(rates))

    @staticmethod
    def pick(log, i):
        size = log.setting['chunk_tokens']
        found = [max((log.common(i, j, size, True) for j in log.sent(i, r)), default=0) for r in range(log.n)]
        if max(found) * size < log.setting['min_match_tokens']:
            return PrefixTrie.lowest_rate(log, i)
        equal = [r for r in range(log.n) if found[r] == max(found)]
        return equal[log.draw(i, 0) % len(equal)]


class Cached:
    """Without a prefix cache: the session, else the lowest rate."""
    name = 'cached'

    @staticmethod
    def sets(rng):
        return {'window_s': rng.choice([0.02, 60]), 'by_cache': rng.choice(['true', 'false'])}

    @staticmethod
    def pick(log, i):
        session = log.of[i].session
        return mix(session) % log.n if session else PrefixTrie.lowest_rate(log, i)


class BlockCost:
    name = 'block-cost'

    @staticmethod
    def sets(rng):
        return {'prefill_scale': rng.choice([1, 1, 2, 0.5]), 'credit': rng.choice([1, 1, 0, 2]),
                'decay': rng.choice([0, 1]), 'temperature': rng.choice([0, 0, 0.5]), 'cached': 'guesses',
                'guess_s': rng.choice([0.02, 120]), 'block_tokens': rng.choice([0, 4, 16])}

    @staticmethod
    def guessed(log, i, r, size):
        since = log.of[i].at - round(log.setting['guess_s'] * 1e9)
        return max((log.common(i, j, size, False) for j in log.sent(i, r) if log.of[j].at > since), default=0)

    @staticmethod
    def names(log, i, size):
        chunks = log.chunks(i, size, False)
        return {tuple(chunks[:k + 1]) for k in range(len(chunks))}

    @staticmethod
    def pick(log, i):
        s, now, prompt = log.setting, log.of[i].at, log.of[i].prompt
        size = s['block_tokens_of_router'] or log.block
        waiting = []
        for r in range(log.n):
            prefills = [j for j in log.in_flight(i, r) if log.of[j].first > now]
            waiting.append(sum(log.of[j].prompt - BlockCost.guessed(log, j, r, size) * size for j in prefills))
        costs = []
        for r in range(log.n):
            held = set().union(*(BlockCost.names(log, j, size) for j in log.in_flight(i, r)))
            held |= BlockCost.names(log, i, size)
            excess = (waiting[r] - min(waiting)) / size / -(-prompt // size)
            credit = s['credit'] * (1 / (1 + s['decay'] * excess))
            prefill = max((waiting[r] + prompt) / size - credit * BlockCost.guessed(log, i, r, size), 0)
            costs.append(s['prefill_scale'] * prefill + len(held))
        return costs.index(min(costs)) if s['temperature'] == 0 else BlockCost.draw(log, i, costs)

    @staticmethod
    def draw(log, i, costs):
        least, span = min(costs), max(costs) - min(costs)
        weights = [math.exp(-(cost - least) / (span * log.setting['temperature'])) if span else 1.0 for cost in costs]
        goal = ((log.draw(i, 0) >> 12) + 0.5) * 2.0 ** -52 * sum(weights)
        for r in range(log.n):
            if goal <= sum(weights[:r + 1]):
                return r
        return log.n - 1


class ExploitExplore:
    """An index for each replica: blocks, the one used longest ago first, with their uses since they stand there."""
    name = 'exploit-explore'

    @staticmethod
    def sets(rng):
        return {'prefill_token_s': rng.choice([1e-4, 0.25]), 'tpot_s': rng.choice([0, 0.0005, 0.5]),
                'window_s': rng.choice([0.02, 180]), 'balance': rng.choice([1, 1.5]), 'warm_reqs': rng.choice([0, 2, 50]),
                'block_tokens': rng.choice([0, 4, 16]), 'index_blocks': rng.choice([0, 1, 3, 8, 20, 100000])}

    @staticmethod
    def names(log, i, size):
        chunks = log.chunks(i, size, True)
        return [tuple(chunks[:k + 1]) for k in range(len(chunks))]

    @staticmethod
    def matched(index, names):
        n = 0
        while n < len(names) and names[n] in index:
            n += 1
        return n

    @staticmethod
    def use(index, names, cap):
        for name in names:
            if name not in index and len(index) == cap:
                index.popitem(last=False)
            index[name] = index.pop(name, 0) + 1

    @staticmethod
    def known(log, i, size, cap):
        """The indices at the arrival of i, and the tokens that each earlier request lacked where it went."""
        indices, missed = [OrderedDict() for _ in range(log.n)], []
        for j in range(i):
            index, names = indices[log.of[j].replica], ExploitExplore.names(log, j, size)
            missed.append(max(log.of[j].prompt - ExploitExplore.matched(index, names) * size, 0))
            ExploitExplore.use(index, names, cap)
        return indices, missed

    @staticmethod
    def load(log, i, r, missed):
        """In whole tokens first, as a sum."""
        since = log.of[i].at - round(log.setting['window_s'] * 1e9)
        return (sum(missed[j] for j in log.sent(i, r) if log.of[j].at >= since) * log.setting['prefill_token_s']
                + sum(log.of[j].output for j in log.in_flight(i, r)) * log.setting['tpot_s'])

    @staticmethod
    def evicted_uses(index, n_more, cap):
        return sum(list(index.values())[:max(len(index) + n_more - cap, 0)])

    @staticmethod
    def pick(log, i):
        s, replicas, size = log.setting, range(log.n), log.setting['block_tokens_of_router'] or log.block
        cap, prompt, names = s['index_blocks'] or log.pool, log.of[i].prompt, ExploitExplore.names(log, i, size)
        indices, missed = ExploitExplore.known(log, i, size, cap)
        matched = [ExploitExplore.matched(index, names) for index in indices]
        loads = [ExploitExplore.load(log, i, r, missed) for r in replicas]
        most = max(matched)
        exploits = min(most * size, prompt) > prompt - min(most * size, prompt)
        if exploits:
            among, costs = [r for r in replicas if matched[r] == most], loads
        else:
            uses = [ExploitExplore.evicted_uses(indices[r], len(names) - matched[r], cap) for r in replicas]
            among, costs = replicas, [loads[r] + uses[r] * size * s['prefill_token_s'] for r in replicas]
        to, dearest = min(among, key=lambda r: (costs[r], r)), loads.index(max(loads))
        if i >= s['warm_reqs'] * log.n and to == dearest and loads[dearest] > s['balance'] * min(loads):
            return loads.index(min(loads))
        return to


ROUTERS = [RotatingLeast, Scores, PrefixTree, PrefixTreeFewest, PrefixTrie, Cached, BlockCost, ExploitExplore]
