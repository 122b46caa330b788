"""Close relatives of vLLM and Sarathi-Serve, which differ in one rule."""

from schedulers import FasterTransformer, Sarathi, SarathiVllm, VllmV0, VllmV1


class FasterTransformerPadded(FasterTransformer):
    """The baseline of the vLLM paper: prompts are padded to the longest of the batch, and a finished request keeps
    its row until the batch ends."""
    preset = 'faster-transformer-padded'

    def plan(self, step):
        if not self.running:
            self.finished = []
        super().plan(step)

    def padding(self, step):
        prompts = [n for r, n in step.tokens.items() if not r.decodes]
        if prompts:
            return max(prompts) * len(prompts) - sum(prompts), 0, 0
        return 0, len(self.finished), sum(r.tokens for r in self.finished)

    def left(self, r):
        self.finished.append(r)


class VllmV1April2026(VllmV1):
    """vllm/v1/core/sched/scheduler.py with the full-prompt reservation. The block pool holds no prefixes here, so
    the order of free blocks has no effect."""
    preset = 'vllm-v1-2026-04'


class VllmV0Delayed(VllmV0):
    """--scheduler-delay-factor: while requests run, no prompt starts before the earliest one has waited for a share
    of the last prefill's duration."""
    preset = 'vllm-v0'
    beside = ' with a delay'
    last_prefill = 0

    @staticmethod
    def draw(rng):
        return {**VllmV0.draw(rng), 'delay': rng.choice([0.3, 1, 4])}

    keys = {**VllmV0.keys, 'delay': 'serving.batching.delay_factor'}

    def may_join(self, step, r):
        waited = self.now - min(other.arrival for other in self.waiting)
        return (super().may_join(step, r) and
                (not self.ran or waited > self.s['delay'] * self.last_prefill))

    def prefills(self, step):
        self.ran = bool(self.running)
        super().prefills(step)

    def ended(self, step, begin, end):
        if any(r.computed <= r.prefill for r in step.tokens):
            self.last_prefill = end - begin


class NanoVllm(VllmV0):
    """nanovllm/engine/scheduler.py: the first prompt of a step is cut to the budget."""
    preset = 'nano-vllm'

    @staticmethod
    def draw(rng):
        return {**VllmV0.draw(rng), 'watermark_frac': 0}

    def can_append(self, r):
        return self.lacks(r, r.computed + 1) <= self.free

    def prefills(self, step):
        budget = self.s['max_batched_tokens']
        for r in self.running:
            if not r.decodes:
                self.give(step, r, min(r.todo, budget))
        while self.waiting:
            r = self.waiting[0]
            n = self.new_tokens(r) if step.tokens else min(self.new_tokens(r), budget)
            need = self.blocks_for(r.tokens)
            if need > self.s['num_blocks']:
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                continue
            if self.to_take(r, need) > self.free or step.n_tokens + n > budget:
                break
            if len(self.running) + 1 > self.s['max_seqs']:
                break
            self.start(step, r, need, n)

    def to_take(self, r, n_blocks):
        return n_blocks


class SarathiDynamic(Sarathi):
    """sarathi_scheduler.py, _compute_chunk_size_schedule: sizes fall in stages of a prompt."""
    preset = 'sarathi-dynamic'

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 128]), 'stages': rng.randint(1, 5),
                'tokens': rng.choice([5, 24, 100]), 'low': rng.choice([1, 3, 8]),
                'high': rng.choice([9, 16, 50]), 'watermark_frac': rng.choice([0, 0.01, 0.2])}

    keys = {'max_seqs': 'serving.batching.max_seqs', 'stages': 'serving.batching.schedule_stages',
            'tokens': 'serving.batching.schedule_tokens',
            'low': 'serving.batching.low_chunk_tokens',
            'high': 'serving.batching.high_chunk_tokens',
            'watermark_frac': 'serving.admit.watermark_frac'}

    def chunk_for(self, r):
        stages, low, high = self.s['stages'], self.s['low'], self.s['high']
        per_stage = -(-self.s['tokens'] // stages)
        unit = min(32, low)
        sizes = [low + (high - low) * i // max(1, stages - 1) for i in range(stages)][::-1]
        return round(sizes[min(r.computed // per_stage, stages - 1)] / unit) * unit


class VidurSarathi(Sarathi):
    """vidur/scheduler/replica_scheduler/sarathi_replica_scheduler.py, except that a half computed prompt that
    restarts keeps its length."""
    preset = 'vidur-sarathi'


class VidurVllm(SarathiVllm):
    """vidur/scheduler/replica_scheduler/vllm_replica_scheduler.py: a batch counts as prompts x the
    longest of them."""
    preset = 'vidur-vllm'

    def prefills(self, step):
        budget, longest = self.s['max_batched_tokens'], 0
        while self.waiting:
            r = self.waiting[0]
            longest = max(longest, r.tokens)
            need = self.blocks_for(r.tokens)
            if (r.tokens > min(self.s['max_model_len'], budget) or
                    self.s['num_blocks'] - need < self.watermark()):
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                longest = max([q.tokens for q in step.tokens], default=0)
                continue
            if self.free - need < self.watermark() or (len(step.tokens) + 1) * longest > budget:
                break
            if len(self.running) + 1 > self.s['max_seqs']:
                break
            self.admit(r, need)
            self.give(step, r, r.tokens)
