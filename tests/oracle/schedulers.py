"""Published schedulers, each after the pseudo-code of its source, slow and plain.

Every class names its preset, draws the settings of a random case, and has the keys of these settings in a
configuration.
"""

import random

from ahead import PlannedAhead
from machine import EngineFails, Scheduler


class FasterTransformer(Scheduler):
    """sarathi/core/scheduler/faster_transformer_scheduler.py (Sarathi-Serve repository)."""
    preset = 'faster-transformer'
    preempts = False

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 3, 8])}

    keys = {'max_seqs': 'serving.batching.max_seqs'}

    def plan(self, step):
        if self.running:
            for r in self.running:
                self.give(step, r, 1)
            return
        need = self.blocks_for(self.s['max_model_len'])
        while self.waiting and len(self.running) < self.s['max_seqs']:
            r = self.waiting[0]
            if need > self.s['num_blocks']:
                self.drop(step, r, 'rejected')
                continue
            if need > self.free:
                break
            self.admit(r, need)
            self.give(step, r, r.todo)


class VllmV0(Scheduler):
    """vllm/core/scheduler.py, v0.5.4 to v0.10, block manager v1, chunked prefill off."""
    preset = 'vllm-v0'
    mode = 'recompute'

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 256]),
                'max_batched_tokens': rng.choice([16, 40, 2048]),
                'watermark_frac': rng.choice([0, 0.01, 0.2])}

    keys = {'max_seqs': 'serving.batching.max_seqs',
            'max_batched_tokens': 'serving.batching.max_batched_tokens',
            'watermark_frac': 'serving.admit.watermark_frac'}

    def watermark(self):
        return int(self.s['watermark_frac'] * self.s['num_blocks'])

    def prefills(self, step):
        limit = min(self.s['max_model_len'], self.s['max_batched_tokens'])
        while self.waiting:
            r = self.waiting[0]
            need = self.blocks_for(r.tokens)
            if r.tokens > limit or self.s['num_blocks'] - need < self.watermark():
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                continue
            if self.free - need < self.watermark() or not self.may_join(step, r):
                break
            self.start(step, r, need, self.new_tokens(r))

    def new_tokens(self, r):
        return r.tokens

    def start(self, step, r, n_blocks, n_tokens):
        self.admit(r, n_blocks)
        self.give(step, r, n_tokens)

    def may_join(self, step, r):
        """The limits of the step, asked after those of the blocks."""
        return (step.n_tokens + self.new_tokens(r) <= self.s['max_batched_tokens'] and
                len(self.running) + 1 <= self.s['max_seqs'])

    def preempt(self, step, r):
        if self.mode == 'swap':
            self.swap_out(step, r)
        else:
            self.recompute(step, r)

    def can_append(self, r):
        return self.free >= 1       # block manager v1: one per sequence, needed or not

    def decodes(self, step):
        queue = list(self.running)
        while queue:
            r = queue.pop(0)
            while not self.can_append(r):
                if queue:
                    self.preempt(step, queue.pop())
                else:
                    self.preempt(step, r)
                    break
            else:
                self.take(r, self.lacks(r, r.computed + 1))
                self.give(step, r, 1)

    def to_swap_in(self, r):
        return r.host_blocks + 1        # can_swap_in: one more, needed or not

    def swap_ins(self, step):
        for r in sorted(self.swapped, key=lambda r: (r.arrival, r.number)):
            need = self.to_swap_in(r)
            if self.s['num_blocks'] - need < self.watermark():
                if len(self.running) + 1 > self.s['max_seqs']:
                    break
                self.drop(step, r, 'failed')
                continue
            if self.free - need < self.watermark() or len(self.running) + 1 > self.s['max_seqs']:
                break
            self.swap_in(step, r, max(r.host_blocks, self.blocks_for(r.computed + 1)))
            self.give(step, r, 1)

    def plan(self, step):
        if not self.swapped:
            self.prefills(step)
        if step.tokens:
            return
        self.decodes(step)
        if not step.preempted:
            self.swap_ins(step)


class VllmV0Swap(VllmV0):
    preset = 'vllm-v0-swap'
    mode = 'swap'
    swaps = True


class Sarathi(Scheduler):
    """sarathi/core/scheduler/sarathi_scheduler.py."""
    preset = 'sarathi'

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 128]), 'chunk': rng.choice([1, 5, 16, 64, 512]),
                'watermark_frac': rng.choice([0, 0.01, 0.2])}

    keys = {'max_seqs': 'serving.batching.max_seqs', 'chunk': 'serving.batching.chunk_tokens',
            'watermark_frac': 'serving.admit.watermark_frac'}

    def chunk_for(self, r):
        return self.s['chunk']

    def plan(self, step):
        watermark = int(self.s['watermark_frac'] * self.s['num_blocks'])
        queue = sorted(self.running, key=lambda r: (r.arrival, r.number))
        prefills = []
        while queue:
            r = queue.pop(0)
            if not r.decodes:
                prefills.append(r)
                continue
            while self.free < 1:
                if queue:
                    self.recompute(step, queue.pop())
                else:
                    self.recompute(step, r)
                    break
            else:
                self.take(r, self.lacks(r, r.computed + 1))
                self.give(step, r, 1)
        for r in prefills:
            n = min(r.todo, self.chunk_for(r) - step.n_tokens)
            if n > 0:
                self.give(step, r, n)
        while self.waiting:
            r = self.waiting[0]
            need = self.blocks_for(r.tokens)
            n = min(r.tokens, self.chunk_for(r) - step.n_tokens)
            if len(self.running) >= self.s['max_seqs'] or n <= 0:
                break
            if self.s['num_blocks'] - need < watermark:
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                continue
            if self.free - need < watermark:
                break
            self.admit(r, need)
            self.give(step, r, n)


class VllmV1(Scheduler):
    """vllm/v1/core/sched/scheduler.py of 2026-08: no phases, the full prompt must fit."""
    preset = 'vllm-v1-2026-08'
    full_prompt_must_fit = True

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 256]), 'budget': rng.choice([3, 8, 24, 2048]),
                'threshold': rng.choice([0, 0, 4]), 'watermark_frac': rng.choice([0, 0, 0.1, 0.3])}

    keys = {'max_seqs': 'serving.batching.max_seqs',
            'budget': 'serving.batching.max_batched_tokens',
            'threshold': 'serving.batching.long_prefill_tokens',
            'watermark_frac': 'serving.admit.watermark_frac'}

    def spare(self):
        """Free blocks for an admission; while requests run, a watermark is kept free (since 2026-06)."""
        watermark = int(self.s['watermark_frac'] * (self.s['num_blocks'] + 1)) if self.running else 0
        return self.free - watermark

    def amount(self, r, step):
        n = r.todo
        if self.threshold():
            n = min(n, self.threshold())
        return min(n, self.s['budget'] - step.n_tokens)

    def threshold(self):
        return self.s['threshold']

    def seats(self):
        return self.s['max_seqs']

    def run_running(self, step):
        i = 0
        while i < len(self.running) and step.n_tokens < self.s['budget']:
            r = self.running[i]
            n = self.amount(r, step)
            while self.lacks(r, r.computed + n) > self.free:
                victim = self.running[-1]
                self.recompute(step, victim)        # undoes what this step gave it
                if victim is r:
                    return
            self.take(r, self.lacks(r, r.computed + n))
            if n > 0:
                self.give(step, r, n)
            i += 1

    def admit_waiting(self, step):
        while self.waiting and step.n_tokens < self.s['budget']:
            if len(self.running) >= self.seats():
                break
            r = self.waiting[0]
            n = self.amount(r, step)
            whole = self.blocks_for(r.tokens)
            need = self.blocks_for(n)
            if (whole if self.full_prompt_must_fit else need) > self.spare():
                break
            self.admit(r, need)
            self.give(step, r, n)

    def plan(self, step):
        self.run_running(step)
        if not step.moved:
            self.admit_waiting(step)


class VllmV1Async(PlannedAhead, VllmV1):
    """vllm/v1/engine/core.py, step_with_batch_queue; a request gets no tokens if it has reached its declared limit
    (async_scheduler.py)."""
    preset = 'vllm-v1-2026-08-async'

    @staticmethod
    def columns(rng, prompt, output):
        return {'max_tokens': output + rng.choice([0] * 15 + [3])}

    def amount(self, r, step):
        return 0 if r in self.ended_now and self.at_limit(r) else super().amount(r, step)


class VllmV1May2025(VllmV1):
    """vLLM v1 before the full-prompt reservation of 2026-03."""
    preset = 'vllm-v1-2025-05'
    full_prompt_must_fit = False


class VllmV0Chunked(VllmV0):
    """vllm/core/scheduler.py, _schedule_chunked_prefill, block manager v2: victims return to the
    queue when the plan is complete."""
    preset = 'vllm-v0-chunked'

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 256]), 'budget': rng.choice([3, 8, 24, 512]),
                'watermark_frac': rng.choice([0, 0.01, 0.2])}

    keys = {'max_seqs': 'serving.batching.max_seqs', 'budget': 'serving.batching.chunk_tokens',
            'watermark_frac': 'serving.admit.watermark_frac'}

    def back_to_waiting(self, r):
        self.victims.append(r)

    def run_running(self, step):
        queue = list(self.running)
        while queue and step.n_tokens < self.s['budget']:
            r = queue.pop(0)
            n = min(r.todo, self.s['budget'] - step.n_tokens)
            while self.lacks(r, r.computed + n) > self.free:
                self.recompute(step, queue.pop() if queue else r)
                if r not in self.running:
                    break
            else:
                self.take(r, self.lacks(r, r.computed + n))
                self.give(step, r, n)

    def admit_waiting(self, step):
        while self.waiting and len(self.running) < self.s['max_seqs']:
            r = self.waiting[0]
            need = self.blocks_for(r.tokens)
            n = min(r.tokens, self.s['budget'] - step.n_tokens)
            if n == 0:
                break
            if self.s['num_blocks'] - need < self.watermark():
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                continue
            if self.free - need < self.watermark():
                break
            self.admit(r, need)
            self.give(step, r, n)

    def plan(self, step):
        self.victims = []
        self.run_running(step)
        self.admit_waiting(step)
        for r in self.victims:
            self.waiting.insert(0, r)


class VllmPaper(VllmV0):
    """vLLM at tag submission: whole prompts and decodes in one step, victims sorted by arrival."""
    preset = 'vllm-paper'

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 256]), 'budget': rng.choice([16, 40, 2560]),
                'watermark_frac': rng.choice([0, 0.01, 0.2])}

    keys = VllmV0Chunked.keys

    def back_to_waiting(self, r):
        self.victims.append(r)
        self.waiting.append(r)
        self.waiting.sort(key=lambda r: (r.arrival, r.number))

    def decodes(self, step):
        self.running.sort(key=lambda r: (r.arrival, r.number))
        super().decodes(step)

    def admit_waiting(self, step):
        while self.waiting and len(self.running) < self.s['max_seqs']:
            r = self.waiting[0]
            need = self.blocks_for(r.tokens)
            if r in self.victims:
                break
            if r.tokens + step.n_tokens > self.s['budget'] >= r.tokens:
                break
            if r.tokens > self.s['budget'] or self.s['num_blocks'] - need < self.watermark():
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                continue
            if self.free - need < self.watermark():
                break
            self.admit(r, need)
            self.give(step, r, r.tokens)

    def plan(self, step):
        self.victims = []
        self.decodes(step)
        self.admit_waiting(step)


class SarathiVllm(VllmV0):
    """sarathi/core/scheduler/vllm_scheduler.py: sorted by arrival before the decodes."""
    preset = 'sarathi-vllm'

    def decodes(self, step):
        self.running.sort(key=lambda r: (r.arrival, r.number))
        super().decodes(step)


class SwiftLLM(VllmV0):
    """swiftLLM: no watermark, blocks as they are touched, swapping, strictly in order."""
    preset = 'swiftllm'
    mode = 'swap'
    swaps = True

    @staticmethod
    def draw(rng):
        return {**VllmV0.draw(rng), 'watermark_frac': 0}

    def can_append(self, r):
        return self.lacks(r, r.computed + 1) <= self.free

    def to_swap_in(self, r):
        return self.blocks_for(r.tokens)


class SarathiOrca(Scheduler):
    """sarathi/core/scheduler/orca_scheduler.py: every request reserves the model's maximum length."""
    preset = 'sarathi-orca'
    preempts = False

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 3, 8])}

    keys = {'max_seqs': 'serving.batching.max_seqs'}

    def plan(self, step):
        need = self.blocks_for(self.s['max_model_len'])
        for r in self.running:
            self.give(step, r, 1)
        while self.waiting and len(self.running) < self.s['max_seqs']:
            r = self.waiting[0]
            if need > self.s['num_blocks']:
                self.drop(step, r, 'rejected')
            elif need > self.free:
                break
            else:
                self.admit(r, need)
                self.give(step, r, r.tokens)


class SimpleChunking(VllmV0):
    """sarathi/core/scheduler/simple_chunking_scheduler.py: turns of prompts and of decodes."""
    preset = 'sarathi-simple-chunking'
    decode_next = False

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 128]), 'chunk': rng.choice([1, 5, 16, 64, 512]),
                'watermark_frac': rng.choice([0, 0.01, 0.2])}

    keys = {'max_seqs': 'serving.batching.max_seqs', 'chunk': 'serving.batching.chunk_tokens',
            'watermark_frac': 'serving.admit.watermark_frac'}

    def prefills(self, step):
        for r in self.running:
            n = min(r.todo, self.s['chunk'] - step.n_tokens)
            if not r.decodes and n > 0:
                self.give(step, r, n)
        if step.tokens:
            return
        while self.waiting and step.n_tokens < self.s['chunk']:
            r = self.waiting[0]
            need = self.blocks_for(r.tokens)
            if len(self.running) >= self.s['max_seqs']:
                break
            if self.s['num_blocks'] - need < self.watermark():
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                continue
            if self.free - need < self.watermark():
                break
            self.admit(r, need)
            self.give(step, r, min(r.tokens, self.s['chunk'] - step.n_tokens))

    def plan(self, step):
        self.running.sort(key=lambda r: (r.arrival, r.number))
        if not self.decode_next:
            self.prefills(step)
            if step.tokens:
                self.decode_next = True
                return
        passes_on, self.decode_next = self.decode_next, False
        to_decode = list(self.running)
        while to_decode:
            r = to_decode.pop(0)
            if not r.decodes:
                continue
            while self.free < 1:
                self.recompute(step, to_decode.pop() if to_decode else r)
                if r not in self.running:
                    break
            else:
                self.take(r, self.lacks(r, r.computed + 1))
                self.give(step, r, 1)
        if passes_on and not step.tokens:
            step.moved = True       # an empty turn is followed by the next at once


class Buddy:
    """Aligned runs of 2^k blocks; of runs of equal size the one freed last is used first."""

    def __init__(self, n_blocks):
        self.free = {}          # size -> first blocks, the last is used first
        at = n_blocks
        first, runs = 0, []
        for bit in reversed(range(n_blocks.bit_length())):
            if n_blocks >> bit & 1:
                runs.append((first, 1 << bit))
                first += 1 << bit
        assert first == at
        for first, size in runs:
            self.free.setdefault(size, []).append(first)

    @staticmethod
    def rounded(n):
        return 1 << (n - 1).bit_length()

    def take(self, n):
        """The first block of a run, or None."""
        size = self.rounded(n)
        sizes = [s for s in sorted(self.free) if s >= size and self.free[s]]
        if not sizes:
            return None
        first = self.free[sizes[0]].pop()
        have = sizes[0]
        while have > size:
            have //= 2
            self.free.setdefault(have, []).append(first + have)
        return first

    def give(self, first, n):
        size = self.rounded(n)
        while first ^ size in self.free.get(size, []):
            self.free[size].remove(first ^ size)
            first &= ~size
            size *= 2
        self.free.setdefault(size, []).append(first)


class OrcaMax(Scheduler):
    """Yu et al., OSDI 2022, Algorithm 1, over a buddy allocator as in the vLLM paper."""
    preset = 'orca-max'
    preempts = False

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 256])}

    keys = {'max_seqs': 'serving.batching.max_seqs'}

    def __init__(self, settings):
        super().__init__(settings)
        self.buddy = Buddy(settings['num_blocks'])
        self.runs = {}

    def reservation(self, r):
        return self.s['max_model_len']

    def arrive(self, r):
        """Rejects a request that no run of an empty pool can hold."""
        super().arrive(r)
        if r in self.waiting and (Buddy.rounded(self.blocks_for(r.prompt + r.output - 1)) >
                                  self.s['num_blocks']):
            self.waiting.remove(r)
            r.status = 'rejected'
            self.done.append(r)

    def left(self, r):
        self.buddy.give(*self.runs.pop(r))

    def plan(self, step):
        for r in self.running:
            self.give(step, r, 1)
        while self.waiting and len(self.running) < self.s['max_seqs']:
            r = self.waiting[0]
            n = self.blocks_for(self.reservation(r))
            if Buddy.rounded(n) > self.s['num_blocks']:
                self.drop(step, r, 'rejected')
                continue
            first = self.buddy.take(n)
            if first is None:
                break
            self.runs[r] = first, n
            self.free -= Buddy.rounded(n) - n       # rounding is lost to the pool, not held by r
            self.admit(r, n)
            self.give(step, r, r.todo)

    def release(self, r):
        self.free += Buddy.rounded(r.blocks) - r.blocks
        super().release(r)


class OrcaOracle(OrcaMax):
    """Exactly what the request will need."""
    preset = 'orca-oracle'

    def reservation(self, r):
        return r.prompt + r.output


class OrcaPow2(OrcaMax):
    """The output as the next power of two."""
    preset = 'orca-pow2'

    def reservation(self, r):
        return min(r.prompt + Buddy.rounded(r.output), self.s['max_model_len'])


def families():
    def below(cls):
        for child in cls.__subclasses__():
            yield child
            yield from below(child)
    return [cls for cls in dict.fromkeys(below(Scheduler)) if 'preset' in vars(cls)]


def random_case(cls, rng):
    """Settings of the engine and of the scheduler."""
    settings = {'block_tokens': rng.choice([1, 4, 16]), 'num_blocks': rng.randint(6, 60),
                'max_model_len': rng.choice([40, 64, 200]),
                'host_blocks': rng.choice([0, 4, 1000])}
    settings.update(cls.draw(rng))
    if settings['host_blocks']:
        settings['host_blocks'] = settings['num_blocks']
    return settings


def rng_of(seed):
    return random.Random(seed)
