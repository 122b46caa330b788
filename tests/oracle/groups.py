"""Several answers to a prompt (n > 1) in vLLM v0: sequences in lockstep that share the prompt's blocks.

A full block of the prompt is held once. Blocks behind the prompt belong to one sequence each: at the first token
the partial block is copied for all sequences except the last (block manager v1, copy on write). A group is swapped
as a whole.
"""

from machine import EngineFails
from schedulers import VllmPaper, VllmV0


class Samples:
    """PreemptionMode None: a victim with one sequence is recomputed, a victim with several is swapped out."""
    beside = ' with samples'
    swaps = True
    fails_at_most = 0.05

    @staticmethod
    def columns(rng, prompt, output):
        return {'samples': rng.choice([1, 1, 2, 3, 4])}

    def seats(self):
        return sum(r.samples for r in self.running)

    def holds(self, r, tokens):
        """Blocks of a group with so many tokens a sequence; shared blocks count once."""
        whole = self.blocks_for(tokens)
        if r.samples == 1 or tokens <= r.prompt:
            return whole
        shared = r.prompt // self.s['block_tokens']
        return shared + r.samples * (whole - shared)

    def lacks(self, r, tokens):
        return max(0, self.holds(r, tokens) - r.blocks)

    def arrive(self, r):
        super().arrive(r)
        if r in self.waiting and self.holds(r, r.prompt + r.output - 1) > self.s['num_blocks']:
            self.waiting.remove(r)
            r.status = 'rejected'
            self.done.append(r)

    def may_join(self, step, r):
        return (step.n_tokens + r.tokens <= self.s['max_batched_tokens'] and
                self.seats() + r.samples <= self.s['max_seqs'])

    def can_append(self, r):
        return self.free >= r.samples

    def preempt(self, step, r):
        if r.samples == 1:
            self.recompute(step, r)
        elif r.blocks > self.host_free:
            raise EngineFails('no CPU swap space')
        else:
            self.swap_out(step, r)

    def swap_ins(self, step):
        for r in sorted(self.swapped, key=lambda r: (r.arrival, r.number)):
            need = r.host_blocks + r.samples
            full = self.seats() + r.samples > self.s['max_seqs']
            if not full and self.s['num_blocks'] - need < self.watermark():
                self.drop(step, r, 'failed')
                continue
            if full or self.free - need < self.watermark():
                break
            self.swap_in(step, r, max(r.host_blocks, self.holds(r, r.computed + 1)))
            self.give(step, r, 1)


class VllmV0Samples(Samples, VllmV0):
    """vllm/core/scheduler.py."""
    preset = 'vllm-v0'

    @staticmethod
    def draw(rng):
        return {**VllmV0.draw(rng), 'max_seqs': rng.choice([4, 7, 256]), 'host_blocks': 1000}


class VllmPaperSamples(Samples, VllmPaper):
    """vLLM at tag submission: if a step swaps no request out, swapped requests return, before new ones start."""
    preset = 'vllm-paper'

    @staticmethod
    def draw(rng):
        return {**VllmPaper.draw(rng), 'max_seqs': rng.choice([4, 7, 256]), 'host_blocks': 1000,
                'budget': rng.choice([300, 2560])}

    def admit_waiting(self, step):
        while self.waiting:
            r = self.waiting[0]
            need = self.blocks_for(r.tokens)
            if r in self.victims or self.seats() >= self.s['max_seqs']:
                break
            if self.s['num_blocks'] - need < self.watermark():
                if self.seats() + r.samples > self.s['max_seqs']:
                    break
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                continue
            if not self.may_join(step, r) or self.free - need < self.watermark():
                break
            self.admit(r, need)
            self.give(step, r, r.tokens)

    def may_join(self, step, r):
        return (step.n_tokens + r.tokens <= self.s['budget'] and
                self.seats() + r.samples <= self.s['max_seqs'])

    def plan(self, step):
        self.victims = []
        self.decodes(step)
        if not step.blocks_out:
            self.swap_ins(step)
        if not self.swapped:
            self.admit_waiting(step)
