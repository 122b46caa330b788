#!/usr/bin/env python3
"""Random gateways that hold requests back and drop them, simulated a second time as docs/studies.md describes them.

usage: gateway.py INFLIGHT SOURCE [SETUPS]

The clients and replicas are those of leaving.py. In front of the replicas a router sends by turns or to the fewest requests, and
a gateway holds requests back while replicas are saturated, in an order or in classes, and drops those that would be late. What
the two know of replicas may be an old report (cluster.news). Each request must be sent to the same replica at the same time.
"""

import leaving
from leaving import maybe, slo_ns


class Report:
    """What a router and a gateway know of the replicas."""

    def __init__(self, engines, at):
        self.at, self.n_sent = at, [0] * len(engines)
        self.waiting = [len(engine.waiting) for engine in engines]
        self.there = [len(engine.waiting) + len(engine.running) for engine in engines]
        self.tokens = [sum(r.tokens for r in engine.waiting) for engine in engines]
        self.used = [engine.s['blocks'] - engine.free for engine in engines]


class Gateway(leaving.Fleet):
    def __init__(self, s, rows):
        super().__init__(s, rows)
        self.held, self.old, self.coming_news = [], Report(self.engines, 0), []
        self.taken, self.n_decisions = 0, 0
        self.credit, self.served, self.carries = [0] * len(s['classes']), len(s['classes']) - 1, False

    # ---- news ----

    def news(self):
        return self.old if self.s['interval'] else Report(self.engines, self.now)

    def times(self):
        times = super().times()
        interval = self.s['interval']
        if interval and (times or self.held):
            times += [report.at + self.s['delay'] for report in self.coming_news[:1]] + [(self.taken + 1) * interval]
        return times

    def hear(self):
        interval = self.s['interval']
        if interval == 0:
            return False
        if self.now == (self.taken + 1) * interval:
            self.taken += 1
            self.coming_news.append(Report(self.engines, self.now))
        heard = False
        while self.coming_news and self.coming_news[0].at + self.s['delay'] <= self.now:
            report = self.coming_news.pop(0)
            report.n_sent = [sum(r.sent is not None and r.sent >= report.at and r.replica == i for r in self.requests)
                             for i in range(len(self.engines))]
            self.old, heard = report, True
        return heard

    # ---- decisions ----

    def is_saturated(self):
        news, s = self.news(), self.s
        if not s['hold']:
            return False
        if s['interval'] and self.now - news.at > s['stale']:
            return True
        parts = [max(waiting * 4 * s['blocks'], used * 5 * s['depth']) for waiting, used in zip(news.waiting, news.used)]
        return sum(parts) >= 4 * s['depth'] * s['blocks'] * len(parts)    # kv_frac is 4 / 5

    def is_late(self, r):
        rate_ns = self.s['late_ns']
        return rate_ns > 0 and self.now - r.arrival + (r.prompt + self.news().tokens[r.replica]) * rate_ns > slo_ns(r)

    def pick(self):
        if self.s['router'] == 'round-robin':
            return self.turn % len(self.engines)
        news = self.news()
        counts = [there + sent for there, sent in zip(news.there, news.n_sent)]
        return counts.index(min(counts))

    def go(self, r):
        r.replica = self.pick()
        if self.is_late(r):
            r.replica = None
            return self.end(r, 'shed')
        r.sent = self.now
        self.old.n_sent[r.replica] += 1
        return self.join(r)

    def route(self, r):
        if not self.is_saturated():
            return self.go(r)
        if 0 < self.s['max_held'] <= sum(self.room(q) == self.room(r) for q in self.held):
            return self.end(r, 'shed')
        self.held.append(r)

    def room(self, r):
        """Held requests of which the number is limited together."""
        return self.class_of(r), r.priority if self.s['order'] == 'priority' else 0

    def class_of(self, r):
        return sum(r.prompt >= first for first, _ in self.s['classes'][1:])

    def key(self, r):
        first = {'arrival': 0, 'priority': r.priority, 'latest': -r.at, 'shortest': r.prompt}[self.s['order']]
        return first, r.at, r.serial

    def ask_held(self):
        """True if one has gone."""
        n = len(self.held)
        if self.s['classes']:
            self.take_turns()
        else:
            for r in sorted(self.held, key=self.key):
                self.let_go(r)
        return len(self.held) < n

    def may_go(self):
        return not self.is_shut() and not self.is_saturated()

    def let_go(self, r):
        if self.may_go():
            self.held.remove(r)
            self.go(r)

    def heads(self):
        queues = [sorted((r for r in self.held if self.class_of(r) == i), key=self.key) for i in range(len(self.s['classes']))]
        return {i: queue[0] for i, queue in enumerate(queues) if queue}

    def take_turns(self):
        """Deficit round robin, as Dynamo's router has it (tests/golden/gateway-dynamo-*)."""
        for i in range(len(self.credit)):
            self.credit[i] = self.credit[i] if i in self.heads() else 0
        while (heads := self.heads()) and self.may_go():
            i = self.next_class(heads)
            self.credit[i] -= heads[i].prompt
            self.served, self.carries = i, True
            self.let_go(heads[i])
            if i not in self.heads():
                self.credit[i] = 0
        self.carries = False

    def next_class(self, heads):
        quanta = [quantum for _, quantum in self.s['classes']]
        if self.carries and self.served in heads and self.credit[self.served] >= heads[self.served].prompt:
            return self.served
        round_of = [i % len(quanta) for i in range(self.served + 1, self.served + 1 + len(quanta)) if i % len(quanta) in heads]
        for i in round_of:
            if self.credit[i] < heads[i].prompt:
                self.credit[i] += quanta[i]
            if self.credit[i] >= heads[i].prompt:
                return i
        more = min(-(-(heads[i].prompt - self.credit[i]) // quanta[i]) for i in round_of)
        for i in round_of:
            self.credit[i] += more * quanta[i]
        return next(i for i in round_of if self.credit[i] >= heads[i].prompt)

    # ---- the loop ----

    def leave(self, r, status):
        self.stirred = True
        if r in self.held and not r.status:
            self.held.remove(r)
            self.end(r, status)
        elif r.sent is None and r.at is not None and not r.status:
            self.end(r, status)
        else:
            super().leave(r, status)

    def at_the_gateway(self):
        if self.hear() or self.stirred or self.landed:
            self.ask_held()

    def plan(self):
        super().plan()
        while self.ask_held():
            super().plan()


def draw(rng):
    s, rows = leaving.draw(rng)
    for row in rows:
        if row['abort'] == 0:
            row['abort'] = row['patience'] = 10 ** 6
        row['slo'] = maybe(rng, 0.7, rng.choice([20, 60, 150, 400]) * 10 ** 6 + 13)
    s |= {'hold': rng.random() < 0.8, 'depth': rng.choice([1, 2, 3, 5]), 'stale': rng.choice([200, 40, 40]) * 10 ** 6,
          'order': rng.choice(['arrival', 'priority', 'latest', 'shortest']), 'max_held': rng.choice([0, 0, 1, 4]),
          'late_ns': rng.choice([0, 0, 10 ** 5]), 'router': rng.choice(['round-robin', 'least-outstanding']),
          'interval': rng.choice([0, 0, 5, 20, 100]) * 10 ** 6, 'delay': rng.choice([0, 3, 30]) * 10 ** 6,
          'classes': rng.choice([[], [], [(0, 64), (40, 16)], [(0, 10), (20, 40), (60, 25)]])}
    s['late_ns'] = 0 if s['classes'] else s['late_ns']
    s['delay'] = s['delay'] if s['interval'] else 0
    s['gateway'] = text(s)
    return s, rows


def text(s):
    classes = ','.join(f'{first}:{quantum}' for first, quantum in s['classes'])
    return f''',
  news: {{interval_s: {s['interval'] / 1e9}, delay_s: {s['delay'] / 1e9}}},
  router: {s['router']},
  gateway: {{hold: {str(s['hold']).lower()}, queue_depth: {s['depth']}, kv_frac: 0.8, stale_s: {s['stale'] / 1e9},
            order: {s['order']}, max_held: {s['max_held']}, classes: "{classes}",
            prefill_tokens_s: {10 ** 9 // s['late_ns'] if s['late_ns'] else 0}}}'''


if __name__ == '__main__':
    leaving.main(Gateway, draw, 'gateway')
