"""The worked policies once more, as slow and plain as docs/policy.md describes them.

A plan sorts a whole list each time it reads the list. Modules are small classes with the hooks of the
contract; time is whole milliseconds (machine.py), keys are nanoseconds.
"""

import collections

from machine import Scheduler

MS = 1000000
NEVER = float('inf')


def ns(seconds):
    return NEVER if seconds is None else round(seconds * 1e9)


class Module:
    """The default hooks."""

    def __init__(self, machine):
        self.machine = machine

    def on_join(self, r):
        pass

    def on_start(self, r):
        pass

    def on_undo(self, r):
        pass

    def on_step_start(self):
        pass

    def on_step_end(self, tokens, lasted_ns):
        pass


# ---- orders ----

class Fcfs(Module):
    def key(self, r):
        return 0


class Slack(Module):
    patience_ns, ageing = 10 * 10**9, 0.5

    def key(self, r):
        waited = (self.machine.now - r.arrival) * MS
        slack = self.patience_ns if r.ttft_slo_s is None else ns(r.ttft_slo_s) - waited
        return slack - int(self.ageing * waited)


class LeastCharged(Module):
    def __init__(self, machine):
        super().__init__(machine)
        self.charged = collections.Counter()

    def key(self, r):
        return self.charged[r.client]

    def on_start(self, r):
        self.charged[r.client] += r.prompt

    def on_undo(self, r):
        self.charged[r.client] -= r.prompt


class Round:
    """Clients that take turns."""

    def __init__(self, quantum):
        self.quantum = quantum
        self.ring, self.refused = [], None
        self.deficit, self.queued = collections.defaultdict(float), collections.Counter()

    def copied(self):
        copy = Round(self.quantum)
        copy.ring, copy.refused = self.ring.copy(), self.refused
        copy.deficit, copy.queued = self.deficit.copy(), self.queued
        return copy

    def end_turn(self):
        client = self.ring.pop(0)
        if self.queued[client] or self.deficit[client] < 0:
            self.ring.append(client)

    def take_turns(self):
        while self.ring:
            client = self.ring[0]
            if client == self.refused and self.deficit[client] < 0:
                self.refused = None
            else:
                self.deficit[client] += self.quantum if self.deficit[client] <= 0 else 0
                if self.deficit[client] > 0 and self.queued[client]:
                    return
            self.end_turn()


class Drr(Module):
    """tests/contract/plain_drr.c; fair.py has the artifact's own."""

    def __init__(self, machine):
        super().__init__(machine)
        self.round = Round(machine.s['num_blocks'] * machine.s['block_tokens'] / 20)
        self.charged, self.first_starts = set(), set()      # the latter of this plan

    def key(self, r):
        trial = self.round.copied()
        trial.take_turns()
        return trial.ring.index(r.client) if r.client in trial.ring else len(trial.ring)

    def on_join(self, r):
        self.round.queued[r.client] += 1
        if r.client not in self.round.ring:
            self.round.ring.append(r.client)

    def on_start(self, r):
        if r in self.charged:
            return
        self.charged.add(r)
        self.first_starts.add(r)
        self.round.take_turns()
        while self.round.ring[0] != r.client:
            self.round.end_turn()
            self.round.take_turns()
        self.round.deficit[r.client] -= r.prompt
        self.round.queued[r.client] -= 1
        if self.round.deficit[r.client] <= 0 or not self.round.queued[r.client]:
            self.round.end_turn()

    def on_undo(self, r):
        if r in self.first_starts:
            self.charged.remove(r)
            self.first_starts.remove(r)
            self.round.deficit[r.client] += r.prompt
            self.on_join(r)

    def on_step_start(self):
        self.first_starts = set()
        if self.machine.asked:
            self.round.take_turns()
            if self.round.ring:
                self.round.refused = self.round.ring[0]

    def on_step_end(self, tokens, lasted_ns):
        for r in tokens:
            self.round.deficit[r.client] -= 2


# ---- admissions: verdict, tokens to hold, when to ask again ----

class PromptFits(Module):
    def ask(self, r, n):
        m = self.machine
        watermark = int(m.s['watermark_frac'] * m.s['num_blocks'])
        swapped = r in m.swapped
        need = r.host_blocks + 1 if swapped else m.blocks_for(r.tokens)
        if m.s['num_blocks'] - need < watermark:
            return 'never', 0, None
        return 'yes' if m.free - need >= watermark else 'no', r.computed + n if swapped else r.tokens, None


class TokenBucket(Module):
    def __init__(self, machine):
        super().__init__(machine)
        self.interval = 1000 // machine.s['rate_rps']
        self.paid = collections.defaultdict(list)      # times, by client
        self.has_paid = set()

    def level(self, client, now):
        """Replays all payments of the client, in ms of credit."""
        most = self.machine.s['burst'] * self.interval
        credit, at = most, 0
        for paid in self.paid[client]:
            credit, at = min(most, credit + paid - at) - self.interval, paid
        return min(most, credit + now - at)

    def ask(self, r, n):
        lacks = self.interval - self.level(r.client, self.machine.now)
        if r in self.has_paid or lacks <= 0:
            return 'yes', 0, None
        self.machine.n_held_back += 1
        return 'wait', 0, self.machine.now + lacks

    def on_start(self, r):
        if r not in self.has_paid:
            self.has_paid.add(r)
            self.paid[r.client].append(self.machine.now)


# ---- preemptions: the victim, or None ----

class Tail(Module):
    def pick(self, step, needy):
        rest = [r for r in self.machine.at_start if r in self.machine.running and r not in step.tokens]
        return rest[-1] if rest else needy


class MostServed(Module):
    def __init__(self, machine):
        super().__init__(machine)
        self.served = collections.Counter()

    def pick(self, step, needy):
        running = self.machine.running
        return max(enumerate(running), key=lambda one: (self.served[one[1].client], one[0]))[1]

    def on_step_end(self, tokens, lasted_ns):
        for r, n in tokens.items():
            self.served[r.client] += n


# ---- batching rules ----

def prefill_tokens(step):
    return sum(n for r, n in step.tokens.items() if not r.decodes)


class DecodeFirst(Module):
    def __init__(self, machine):
        super().__init__(machine)
        self.budget = machine.s['most_tokens']

    def plan(self, step):
        m = self.machine
        m.decode_one_by_one(step)
        shown = set()
        while prefill_tokens(step) < self.budget:
            r = m.next([r for r in m.at_start if r in m.running and not r.decodes], shown)
            if not r:
                break
            m.give_room(step, r, min(r.todo, self.budget - prefill_tokens(step)))
        shown = set()
        while (not step.preempted and prefill_tokens(step) < self.budget and
               len(m.running) < m.s['max_seqs']):
            r = m.next(m.waiting + m.swapped, shown)
            if not r or not m.start(step, r, min(r.todo, self.budget - prefill_tokens(step))):
                return

    def on_step_end(self, tokens, lasted_ns):
        s = self.machine.s
        slow = lasted_ns > min(ns(r.tpot_slo_s) for r in tokens)
        self.machine.n_slow += slow
        budget = self.budget // 2 if slow else self.budget + s['more_tokens']
        self.budget = min(max(budget, s['least_tokens']), s['most_tokens'])


class PromptsFirst(Module):
    def plan(self, step):
        m, shown = self.machine, set()
        while len(m.running) < 24 and step.n_tokens < 60:
            r = m.next(m.waiting, shown)
            if not r or not m.start(step, r, r.todo):
                break
        m.decode_one_by_one(step)


# ---- requests, queues and blocks ----

class Machine(Scheduler):
    def __init__(self, settings, batching, order, admits, preempt, fate='recompute'):
        super().__init__(settings)
        self.front = []             # of those that wait: before all others
        self.at_start = []          # on the device before this plan
        self.until = []             # when to ask again
        self.n_undone = self.n_held_back = self.n_slow = 0
        self.fate = fate
        self.batching, self.order, self.preempt = batching(self), order(self), preempt(self)
        self.admits = [admit(self) for admit in admits]
        self.modules = [self.batching, self.order, self.preempt, *self.admits]

    def tell(self, hook, *args):
        for module in self.modules:
            getattr(module, hook)(*args)

    def next(self, requests, shown):
        """The best ranked of these requests that has not been returned yet."""
        front = [r for r in self.front if r in requests]
        rest = sorted((r for r in requests if r not in front),
                      key=lambda r: (self.order.key(r), r.arrival, r.number))
        for r in front + rest:
            if r not in shown:
                self.asked = True
                shown.add(r)
                return r
        return None

    # ---- what a plan does ----

    def plan(self, step):
        self.at_start, self.until, self.asked = list(self.running), [], False
        self.batching.plan(step)

    def give(self, step, r, n):
        first = r.first_scheduled
        super().give(step, r, n)
        r.first_scheduled = first       # known once the step runs

    def started(self, step):
        for r in step.tokens:
            if r.first_scheduled is None:
                r.first_scheduled = self.now
        self.tell('on_step_start')

    def ask(self, r, n):
        hold = 0
        for admit in self.admits:
            verdict, tokens, until = admit.ask(r, n)
            if verdict != 'yes':
                self.until += [] if until is None else [until]
                return verdict, 0
            hold = max(hold, tokens)
        return 'yes', hold

    def start(self, step, r, n):
        """False if the request and all behind it must wait."""
        verdict, hold = self.ask(r, n)
        if verdict == 'never':
            self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
            return True
        n_blocks = max(self.blocks_for(max(hold, r.computed + n)), r.host_blocks)
        if verdict != 'yes' or n_blocks > self.free:
            return False
        if r in self.swapped:
            self.swap_in(step, r, n_blocks)
        else:
            self.front = [q for q in self.front if q is not r]
            self.admit(r, n_blocks)
        self.give(step, r, n)
        self.tell('on_start', r)
        return True

    def give_room(self, step, r, n):
        while r in self.running:
            if self.lacks(r, r.computed + n) <= self.free:
                self.take(r, self.lacks(r, r.computed + n))
                self.give(step, r, n)
                return
            self.give_way(step, self.preempt.pick(step, r))

    def give_way(self, step, victim):
        if self.fate == 'swap':
            self.swap_out(step, victim)
        else:
            self.recompute(step, victim)
        if victim not in self.at_start:
            self.n_undone += 1
            self.tell('on_undo', victim)

    def back_to_waiting(self, r):
        self.front.insert(0, r)
        self.waiting.append(r)

    def decode_one_by_one(self, step):
        for r in self.at_start:
            if r in self.running and r.decodes:
                self.give_room(step, r, 1)

    def wake_at(self):
        return min(self.until, default=None)

    # ---- hooks ----

    def arrive(self, r):
        n = len(self.waiting)
        super().arrive(r)
        if len(self.waiting) > n:
            self.tell('on_join', r)

    def ended(self, step, begin, end):
        self.tell('on_step_end', step.tokens, (end - begin) * MS)
