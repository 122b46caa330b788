"""Priorities in vLLM: a smaller number is more urgent, equal ones go by arrival."""

from schedulers import VllmV0, VllmV1


def rank(r):
    return r.priority, r.arrival, r.number


class VllmV0Priority(VllmV0):
    """vllm/core/scheduler.py, _schedule_priority_preemption, block manager v2."""
    preset = 'vllm-v0-priority'

    def can_append(self, r):
        return self.lacks(r, r.computed + 1) <= self.free

    def back_to_waiting(self, r):
        self.waiting.append(r)
        self.waiting.sort(key=rank)

    def could_start(self, step, r):
        return (step.n_tokens + r.tokens <= self.s['max_batched_tokens'] and
                len(self.running) + 1 <= self.s['max_seqs'] and
                self.free - self.blocks_for(r.tokens) >= self.watermark())

    def push_out(self, step):
        """While the first waiting request cannot start, preempts the least urgent running request below it."""
        if not self.waiting:
            return
        head = self.waiting[0]
        while self.running and not self.could_start(step, head):
            worst = max(self.running, key=rank)
            if rank(worst) < rank(head):
                return
            self.recompute(step, worst)

    def plan(self, step):
        self.waiting.sort(key=rank)
        self.prefills(step)
        if step.tokens:
            return
        self.push_out(step)
        self.running.sort(key=rank)
        self.decodes(step)


class VllmV1Priority(VllmV1):
    """vllm/v1/core/sched/scheduler.py of 2026-08: the victim is the least urgent running request; tokens that it got
    in this step are taken back."""
    preset = 'vllm-v1-2026-08-priority'
    walks_on = False

    def back_to_waiting(self, r):
        self.waiting.append(r)

    def run_running(self, step):
        i = 0
        while i < len(self.running) and step.n_tokens < self.s['budget']:
            r = self.running[i]
            n = self.amount(r, step)        # not enlarged when a victim gives tokens back
            while self.lacks(r, r.computed + n) > self.free:
                victim = max(self.running, key=rank)
                i -= self.running.index(victim) < i
                self.recompute(step, victim)
                if victim is r:
                    break
            if r in self.running:
                self.take(r, self.lacks(r, r.computed + n))
                if n > 0:
                    self.give(step, r, n)
                i += 1
            elif not self.walks_on:
                return

    def plan(self, step):
        self.waiting.sort(key=rank)
        super().plan(step)
