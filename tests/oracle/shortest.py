"""Shortest job first: on vLLM v0's queue, and preemptive at every step."""

from fractions import Fraction

from machine import Scheduler
from schedulers import VllmV0


class Sjf(VllmV0):
    """Order by the known output length; a recompute victim stands before all other requests."""
    preset = 'sjf'

    def __init__(self, settings):
        super().__init__(settings)
        self.front = []

    def length(self, r):
        return r.output

    def back_to_waiting(self, r):
        self.front.insert(0, r)
        self.waiting.append(r)

    def plan(self, step):
        self.front = [r for r in self.front if r in self.waiting]
        rest = [r for r in self.waiting if r not in self.front]
        self.waiting = self.front + sorted(rest, key=lambda r: (self.length(r), r.arrival, r.number))
        super().plan(step)


class SjfPrompt(Sjf):
    """Order by prompt length; produced tokens do not count."""
    preset = 'sjf-prompt'

    def length(self, r):
        return r.prompt


class SjfAgeing(Sjf):
    """A waiting request's length shrinks by ten tokens per second since arrival."""
    preset = 'sjf-ageing'

    def length(self, r):
        return r.output + Fraction(r.arrival, 100)


class SjfPredicted(Sjf):
    """Lengths from a predictor that has buckets of 8 tokens and never misses."""
    preset = 'sjf-predicted'
    more_sets = {'workload.predictor.bucket_tokens': 8, 'workload.predictor.miss_frac': 0}

    def length(self, r):
        return -(-r.output // 8) * 8 + Fraction(r.arrival, 100)


class Srtf(Scheduler):
    """Order by remaining output, least first, running or not. For missing blocks, the running request with the most
    remaining output that has no tokens in this step is swapped out."""
    preset = 'srtf'
    swaps = True

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 256]), 'budget': rng.choice([16, 40, 2048])}

    keys = {'max_seqs': 'serving.batching.max_seqs',
            'budget': 'serving.batching.max_batched_tokens'}

    @staticmethod
    def rank(r):
        return max(1, r.output - r.out), r.arrival, r.number

    def share(self, step, r):
        """The whole prompt; a prompt beyond the budget runs alone. 0: no room in this step."""
        left = self.s['budget'] - step.n_tokens
        return r.todo if r.todo <= left or not step.tokens else 0

    def make_room(self, step, r):
        """Swaps out the lowest ranked request behind r; False if there is none."""
        spare = [q for q in self.running if q not in step.tokens and self.rank(q) > self.rank(r)]
        if spare:
            self.swap_out(step, max(spare, key=self.rank))
        return bool(spare)

    def serve(self, step, r, n):
        if r in self.running:
            while self.lacks(r, r.computed + n) > self.free:
                if not self.make_room(step, r):
                    self.swap_out(step, r)
                    return False
            self.take(r, self.lacks(r, r.computed + n))
        else:
            swapped = r in self.swapped
            whole = self.blocks_for(r.tokens)
            while whole > self.free:
                if not self.make_room(step, r):
                    return False
            if swapped:
                self.swap_in(step, r, whole)
            else:
                self.admit(r, whole)
        self.give(step, r, n)
        return True

    def plan(self, step):
        victims = set()
        for r in sorted(self.waiting + self.running + self.swapped, key=self.rank):
            before = set(self.running)
            n = self.share(step, r)
            if r in victims or not r.todo:
                continue
            if n == 0 or len(step.tokens) >= self.s['max_seqs'] or not self.serve(step, r, n):
                return
            victims |= before - set(self.running)
