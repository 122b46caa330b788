"""Earliest deadline first, on Sarathi-Serve's engine and as QoServe blends it."""

from machine import Scheduler
from schedulers import Sarathi

CHUNKS = [128] + list(range(256, 2049, 256)) + [2552]


def deadline_ms(r):
    return float('inf') if r.ttft_slo_s is None else r.arrival + round(r.ttft_slo_s * 1000)


class Edf(Sarathi):
    """Sarathi-Serve's step; the deadline of the first token orders prompts, the last that started
    gives way."""
    preset = 'edf'

    @staticmethod
    def columns(rng, prompt, output):
        return {'ttft_slo_s': rng.choice([None, 0.05, 0.3, 1, 5])}

    def urgency(self, r):
        return (deadline_ms(r), r.arrival, r.number)

    def back_to_waiting(self, r):
        self.victims.insert(0, r)

    def plan(self, step):
        self.victims = [r for r in getattr(self, 'victims', []) if r in self.waiting]
        watermark = int(self.s['watermark_frac'] * self.s['num_blocks'])
        queue = list(self.running)
        while queue:
            r = queue.pop(0)
            if not r.decodes:
                continue
            while self.free < 1:
                behind = [other for other in self.running if other not in step.tokens]
                self.recompute(step, behind[-1])
                self.waiting.append(self.victims[0])
                queue = [other for other in queue if other in self.running]
                if r not in self.running:
                    break
            else:
                self.take(r, self.lacks(r, r.computed + 1))
                self.give(step, r, 1)
        for r in sorted(self.running, key=self.urgency):
            n = min(r.todo, self.s['chunk'] - step.n_tokens)
            if not r.decodes and n > 0:
                self.give(step, r, n)
        line = self.victims + sorted((r for r in self.waiting if r not in self.victims),
                                     key=self.urgency)
        for r in line:
            need = self.blocks_for(r.tokens)
            n = min(r.tokens, self.s['chunk'] - step.n_tokens)
            if len(self.running) >= self.s['max_seqs'] or n <= 0:
                break
            if self.s['num_blocks'] - need < watermark:
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                continue
            if self.free - need < watermark:
                break
            self.admit(r, need)
            self.give(step, r, n)


class QoServe(Scheduler):
    """microsoft/sarathi-serve, branch niyama_asplos2026, with one line as its model of a step."""
    preset = 'qoserve'
    prefill_token_ms = 0.5
    line = {'margin': 1.25, 'step': 8, 'prefill_token': 0.25, 'decode_seq': 2}      # ms

    @staticmethod
    def draw(rng):
        return {'block_tokens': 16, 'num_blocks': rng.choice([200, 400, 3000]),
                'max_model_len': 3000, 'host_blocks': 0, 'max_seqs': rng.choice([2, 4, 128]),
                'alpha_s': rng.choice([0, 0.001, 0.02]), 'watermark_frac': rng.choice([0, 0.2])}

    @staticmethod
    def columns(rng, prompt, output):
        return {'ttft_slo_s': rng.choice([None, 0.125, 1, 8]),
                'tpot_slo_s': rng.choice([None, 0.125, 0.5])}

    keys = {'max_seqs': 'serving.batching.max_seqs',
            'watermark_frac': 'serving.admit.watermark_frac',
            'alpha_s': 'serving.order.alpha_s_per_token'}
    more_sets = {'serving.order.prefill_token_s': 0.0005, 'serving.batching.margin': 1.25,
                 'serving.batching.step_s': 0.008, 'serving.batching.prefill_token_s': 0.00025,
                 'serving.batching.decode_seq_s': 0.002}

    def __init__(self, settings):
        super().__init__(settings)
        self.victims = []

    def back_to_waiting(self, r):
        self.victims.insert(0, r)
        self.waiting.append(r)

    def rank(self, r):
        """Who gave way stands first, the last of them before the others; who is too late for a
        first token stands behind all."""
        too_late = (r in self.waiting and r.out == 0 and
                    self.now + self.prefill_token_ms * r.todo > deadline_ms(r))
        no_deadline = r.ttft_slo_s is None
        blend = self.s['alpha_s'] * 1000 * r.todo + (0 if no_deadline else deadline_ms(r))
        place = self.victims.index(r) if r in self.victims else len(self.victims)
        return (place, too_late, no_deadline, blend, r.arrival, r.number)

    def chunk(self, step):
        due = [r.arrival + (r.ttft_slo_s or 0) * 1000 + r.out * r.tpot_slo_s * 1000
               for r in self.running if r.decodes and r.tpot_slo_s is not None]
        slack = min(due, default=float('inf')) - self.now
        fixed = self.line['step'] + self.line['decode_seq'] * len(step.tokens)
        fitting = [c for c in CHUNKS
                   if self.line['margin'] * (fixed + self.line['prefill_token'] * c) <= slack]
        largest = max(fitting, default=CHUNKS[0])
        return min(largest, 512) if self.free * self.s['block_tokens'] / 32 < 1000 else largest

    def decodes(self, step):
        queue = [r for r in self.running if r.decodes]
        for r in queue:
            while r in self.running and self.lacks(r, r.computed + 1) > self.free:
                self.recompute(step, [q for q in self.running if q not in step.tokens][-1])
            if r in self.running:
                self.take(r, self.lacks(r, r.computed + 1))
                self.give(step, r, 1)

    def prompts(self, step):
        left = self.chunk(step)
        watermark = int(self.s['watermark_frac'] * self.s['num_blocks'])
        begun = [r for r in self.running if not r.decodes]
        line = sorted(begun + self.waiting, key=self.rank)
        blocked = False
        for r in line:
            n = min(r.todo, left)
            if n <= 0:
                break
            if r in self.waiting:
                need = self.blocks_for(r.tokens)
                if blocked or len(self.running) >= self.s['max_seqs']:
                    blocked = True
                    continue
                if self.s['num_blocks'] - need < watermark:
                    self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                    continue
                if self.free - need < watermark:
                    blocked = True
                    continue
                self.admit(r, need)
            self.give(step, r, n)
            left -= n

    def plan(self, step):
        self.victims = [r for r in self.victims if r in self.waiting]
        self.decodes(step)
        if not step.preempted:
            self.prompts(step)
