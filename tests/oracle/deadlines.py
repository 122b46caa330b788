"""Earliest deadline first, on Sarathi-Serve's engine and as QoServe blends it."""

from machine import Scheduler
from schedulers import Sarathi

GRID = [128] + list(range(256, 2049, 256)) + [2552]
SCARCE_GRID = list(range(128, 513, 128))


def deadline_ms(r):
    return float('inf') if r.ttft_slo_s is None else r.arrival + round(r.ttft_slo_s * 1000)


class Edf(Sarathi):
    """Sarathi-Serve's step. Prompts are ordered by the deadline of the first token; the victim is the request
    that started last."""
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
    """microsoft/sarathi-serve, branch niyama_asplos2026, deadline_scheduler.py (_schedule, _predict_batch_time,
    _get_prefill_size_by_slack), with preemption as Sarathi-Serve has it."""
    preset = 'qoserve'
    margin = 1.25

    @staticmethod
    def draw(rng):
        """The two cost lines are in whole microseconds; they may cross."""
        return {'block_tokens': 16, 'num_blocks': rng.choice([200, 400, 3000]),
                'max_model_len': 3000, 'host_blocks': 0, 'max_seqs': rng.choice([2, 4, 128]),
                'alpha_s': rng.choice([0, 0.001, 0.02]), 'watermark_frac': rng.choice([0, 0.2]),
                'rate': rng.choice([500, 2000]), 'memory': rng.choice([1, 0.75]),
                'long_tokens': rng.choice([200, 512, 1000000]),
                'line': [rng.choice([0, 8000]), rng.choice([100, 250]), rng.choice([0, 2000]),
                         rng.choice([0, 40]), rng.choice([0, 20])],
                'long_line': [rng.choice([0, 5000]), rng.choice([50, 250]), rng.choice([-1000, 0]),
                              rng.choice([0, 80]), 0]}

    @staticmethod
    def columns(rng, prompt, output):
        return {'ttft_slo_s': rng.choice([None, 0.125, 1, 8]),
                'tpot_slo_s': rng.choice([None, 0.125, 0.5])}

    keys = {'max_seqs': 'serving.batching.max_seqs',
            'watermark_frac': 'serving.admit.watermark_frac',
            'alpha_s': 'serving.order.alpha_s_per_token',
            'rate': 'serving.order.prefill_tok_per_s', 'memory': 'serving.order.rate_memory',
            'long_tokens': 'serving.batching.long_tokens'}
    line_keys = ['step_s', 'prefill_token_s', 'decode_seq_s', 'prefill_context_s', 'decode_context_s']

    @classmethod
    def more_sets(cls, settings):
        sets = {'serving.batching.margin': cls.margin}
        for prefix in ('', 'long_'):
            for key, us in zip(cls.line_keys, settings[prefix + 'line']):
                sets[f'serving.batching.{prefix}{key}'] = us / 1e6
        return sets

    def __init__(self, settings):
        super().__init__(settings)
        self.victims = []
        self.dropped = set()        # too late when first in line; never removed
        self.rate = settings['rate']

    def back_to_waiting(self, r):
        self.victims.insert(0, r)
        self.waiting.append(r)

    def too_late(self, r):
        """Too late for the first token's deadline; never true of a request that has started, preempted or not."""
        return (r in self.waiting and r.preemptions == 0 and r.ttft_slo_s is not None and
                self.now * 10**6 + round(r.todo / self.rate * 1e9) > deadline_ms(r) * 10**6)

    def rank(self, r):
        """Victims stand first, the latest victim before the others; dropped requests stand last."""
        no_deadline = r.ttft_slo_s is None
        blend = self.s['alpha_s'] * 1000 * r.todo + (0 if no_deadline else deadline_ms(r))
        place = self.victims.index(r) if r in self.victims else len(self.victims)
        return (place, r in self.dropped, no_deadline, blend, r.arrival, r.number)

    def in_line(self):
        return sorted([r for r in self.running if not r.decodes] + self.waiting, key=self.rank)

    def predicted_us(self, prefill, decodes, prefill_context, decode_context):
        line = self.s['long_line' if prefill + decodes > self.s['long_tokens'] else 'line']
        features = [1, prefill, decodes, prefill_context, decode_context]
        return sum(c * x for c, x in zip(line, features))

    def due_ms(self, r):
        """The deadline of the request's next token."""
        from_ms = r.arrival + (r.ttft_slo_s or 0) * 1000
        return max(from_ms, r.first_token or 0) + (r.out + 1) * r.tpot_slo_s * 1000

    def chunk(self, step):
        decoding = [r for r in self.running if r.decodes]
        slack = min((self.due_ms(r) for r in decoding if r.tpot_slo_s is not None),
                    default=float('inf')) - self.now
        line = sorted(self.in_line(), key=lambda r: r not in self.dropped and self.too_late(r))
        context = line[0].computed if line else 0   # in QoServe: of the first before requests are dropped
        decode_context = sum(r.tokens for r in decoding)
        scarce = self.free * self.s['block_tokens'] // 32 < 1000
        space = SCARCE_GRID if scarce else GRID
        best, low, high = space[0], 0, len(space) - 1
        while slack > 0 and low <= high:
            middle = (low + high) // 2
            prefill = max(0, space[middle] - len(step.tokens))
            us = self.predicted_us(prefill, len(step.tokens), context, decode_context)
            if self.margin * us <= slack * 1000:
                best, low = space[middle], middle + 1
            else:
                high = middle - 1
        return max(0, best - len(step.tokens))

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
        blocked = False
        queue = self.in_line()
        while queue:
            r = queue.pop(0)
            if blocked and r in self.waiting:
                continue
            if r not in self.dropped and self.too_late(r):
                self.dropped.add(r)
                queue = sorted(queue + [r], key=self.rank)
                continue
            n = min(r.todo, left)
            if n <= 0:
                break
            if r in self.waiting:
                need = self.blocks_for(r.tokens)
                if len(self.running) >= self.s['max_seqs']:
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

    def ended(self, step, begin, end):
        prefill = sum(n for r, n in step.tokens.items() if r in self.prefilled)
        if prefill and end > begin:
            lasted_s = (end - begin) * 10**6 * 1e-9
            memory = self.s['memory']
            self.rate = memory * self.rate + (1 - memory) * prefill / lasted_s

    def started(self, step):
        self.prefilled = [r for r in step.tokens if not r.decodes]
