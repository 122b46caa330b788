"""Schedulers that rank all requests again at every step, running or not: learning to rank, feedback queues."""

from machine import Scheduler


class Ranked(Scheduler):
    """Requests get tokens in rank order while seats and budget last. For missing blocks, the lowest ranked running
    request without tokens in this step is swapped out."""

    def chunk(self, step, r):
        """The request's tokens in this step; 0: no room."""
        raise NotImplementedError

    def may_start(self, r):
        """A hook: conditions for a new request besides free blocks."""
        return True

    def blocks_to_find(self, r, n):
        """Of a request that is not on the device: the blocks that must be free, and the blocks that it takes."""
        raise NotImplementedError

    def in_order(self):
        return sorted(self.waiting + self.running + self.swapped, key=self.rank)

    def idle(self, step):
        """Running requests without tokens in this step so far, best ranked first."""
        return [r for r in self.in_order() if r in self.running and r not in step.tokens]

    def serve(self, step, r, n):
        """False if the running request finds no blocks and is swapped out itself."""
        while self.lacks(r, r.computed + n) > self.free:
            last = self.idle(step)[-1]
            self.swap_out(step, last)
            if last is r:
                return False
        self.take(r, self.lacks(r, r.computed + n))
        self.give(step, r, n)
        return True

    def bring(self, step, r, n):
        """Starts a waiting or swapped request; False if it finds no blocks."""
        to_find, to_take = self.blocks_to_find(r, n)
        while to_find > self.free:
            behind = [q for q in self.idle(step) if self.rank(q) > self.rank(r)]
            if not behind:
                return False
            self.swap_out(step, behind[-1])
            if r in self.waiting and not self.may_start(r):
                self.refused = True
                return True
        if r in self.swapped:
            self.swap_in(step, r, to_take)
        else:
            self.admit(r, to_take)
        self.give(step, r, n)
        return True

    def walk(self, step):
        gave_way, self.refused = set(), False
        for r in self.in_order():
            if r in gave_way:
                continue
            if r in self.waiting and not self.may_start(r) and self.refused:
                continue
            n = self.chunk(step, r)
            if n == 0 or len(step.tokens) >= self.s['max_seqs']:
                return
            if r in self.waiting and not self.may_start(r):
                self.refused = True
                continue
            before = set(self.running)
            found = self.serve(step, r, n) if r in self.running else self.bring(step, r, n)
            gave_way |= before - set(self.running)
            if not found:
                return


class Ltr(Scheduler):
    """vllm-ltr, vllm/core/scheduler.py (_general_schedule, reserve_free_blocks, _get_opt_ordered_requests), with a
    predictor that knows the output."""
    preset = 'ltr'
    swaps = True

    @staticmethod
    def draw(rng):
        """The pool has a block more than the longest request and the watermark, or the request would preempt itself.
        Starvation takes longer than two prompts, or two requests could preempt each other for ever."""
        longest, budget = rng.choice([40, 64]), rng.choice([5, 16, 40, 2048])
        block_tokens, watermark = rng.choice([1, 4, 16]), rng.choice([0, 0.0625, 0.125])
        most_blocks, two_prompts = -(-longest // block_tokens) + 1, 2 * (longest // budget)
        return {'max_model_len': longest, 'max_seqs': rng.choice([1, 2, 4, 256]), 'budget': budget,
                'block_tokens': block_tokens, 'watermark_frac': watermark,
                'num_blocks': int(most_blocks / (1 - watermark)) + rng.choice([1, 2, 5, 20]),
                'starve': two_prompts + rng.choice([1, 3, 8, 100]),
                'period': two_prompts + rng.choice([2, 3, 20])}

    keys = {'max_seqs': 'serving.batching.max_seqs',
            'budget': 'serving.batching.max_batched_tokens',
            'watermark_frac': 'serving.batching.watermark_frac',
            'starve': 'serving.order.starve_steps', 'period': 'serving.order.promoted_steps'}

    @staticmethod
    def more_sets(settings):
        return {'serving.admit.watermark_frac': settings['watermark_frac']}

    def arrive(self, r):
        r.idle_steps, r.runs, r.first = 0, 0, False
        super().arrive(r)

    def in_order(self):
        return sorted(self.waiting + self.running + self.swapped,
                      key=lambda r: (not r.first, r.output, r.arrival, r.number))

    def promote(self):
        for r in self.waiting + self.running + self.swapped:
            if r.idle_steps >= self.s['starve']:
                r.first, r.idle_steps, r.runs = True, 0, self.s['period']
            elif r.first and r.runs <= 0:
                r.first = False

    def choose(self):
        """[(request, tokens)] in rank order, until tokens or seats run out."""
        chosen, left = [], self.s['budget']
        for r in self.in_order():
            if left == 0 or len(chosen) == self.s['max_seqs']:
                break
            chosen.append((r, min(r.todo, left)))
            left -= chosen[-1][1]
        return chosen

    def blocks_asked(self, r):
        if r in self.running:
            return 1
        return r.host_blocks + 1 if r in self.swapped else self.blocks_for(r.tokens)

    def find_blocks(self, step, chosen):
        watermark = int(self.s['watermark_frac'] * self.s['num_blocks'])
        lacking = sum(self.blocks_asked(r) for r, _ in chosen) + watermark - self.free
        others = [r for r in self.in_order() if r not in [q for q, _ in chosen]]
        while lacking > 0 and others:
            r = others.pop()
            if r in self.running:
                lacking -= r.blocks
                self.swap_out(step, r)
        while lacking > 0 and chosen:
            r, _ = chosen.pop()
            lacking -= self.blocks_asked(r)
            if r in self.running:
                lacking -= r.blocks
                self.swap_out(step, r)

    def drop_hopeless(self, step):
        """Drops the first in line if the pool cannot hold it beside the watermark; vLLM would wait for ever."""
        watermark = int(self.s['watermark_frac'] * self.s['num_blocks'])
        r = self.in_order()[0]
        if r not in self.running and self.blocks_asked(r) + watermark > self.s['num_blocks']:
            self.drop(step, r, 'failed' if r.out or r.first_scheduled is not None else 'rejected')

    def plan(self, step):
        self.promote()
        chosen = self.choose()
        self.find_blocks(step, chosen)
        for r, n in chosen:
            if r in self.waiting:
                self.admit(r, self.blocks_for(r.tokens))
            elif r in self.swapped:
                self.swap_in(step, r, max(r.host_blocks, self.blocks_for(r.computed + n)))
            else:
                self.take(r, self.lacks(r, r.computed + n))
            self.give(step, r, n)
        if not chosen and not step.preempted and self.in_order():
            self.drop_hopeless(step)

    def started(self, step):
        for r in self.waiting + self.running + self.swapped:
            if r in step.tokens:
                r.idle_steps = 0
                r.runs -= r.first
            else:
                r.idle_steps += 1


class FastServe(Ranked):
    """fastserve/scheduler.py, MLFQ: each level is a list, the highest first. Prompts are skipped while host memory is
    short (get_next_batch, pending_list). reserve_free_blocks: a request with tokens in this step is never swapped out
    for requests that may run later."""
    preset = 'fastserve'
    swaps = True

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 16]), 'budget': rng.choice([16, 40, 2048]),
                'quantum': rng.choice([1, 10, 100]), 'token': rng.choice([0, 1, 5]),
                'levels': rng.choice([2, 20]), 'starve_steps': rng.choice([3, 10, 1000]),
                'starve': rng.choice([50, 300, 3000]), 'host_free': rng.choice([0.125, 0.5]),
                'keep': rng.choice([0, 2, 5, 16]), 'look_ahead': rng.choice([0, 1, 3, 16])}

    keys = {'max_seqs': 'serving.batching.max_seqs',
            'budget': 'serving.batching.max_batched_tokens', 'levels': 'serving.order.n_levels',
            'starve_steps': 'serving.order.starve_steps', 'host_free': 'serving.admit.host_free_frac',
            'keep': 'serving.preempt.keep_free_blocks', 'look_ahead': 'serving.preempt.look_ahead'}

    @staticmethod
    def more_sets(settings):
        return {'serving.order.quantum_s': settings['quantum'] / 1000,
                'serving.order.prefill_token_s': settings['token'] / 1000,
                'serving.order.starve_s': settings['starve'] / 1000}

    def __init__(self, settings):
        super().__init__(settings)
        self.levels = [[] for _ in range(self.s['levels'])]
        self.n_steps = 0

    # ---- levels ----

    def quantum(self, r):
        return self.s['quantum'] * 2 ** r.level

    def arrive(self, r):
        super().arrive(r)
        if r not in self.waiting:
            return
        r.level, r.spent, r.ran = 0, 0, -10 ** 9
        while r.level < self.s['levels'] - 1 and self.quantum(r) < self.s['token'] * r.prompt:
            r.level += 1
        self.levels[r.level].append(r)

    def rank(self, r):
        return r.level, self.levels[r.level].index(r)

    def push_front(self, r, level):
        self.levels[r.level].remove(r)
        r.level = level
        self.levels[level].insert(0, r)

    def drop(self, step, r, status):
        self.levels[r.level].remove(r)
        super().drop(step, r, status)

    def left(self, r):
        self.levels[r.level].remove(r)

    # ---- the batch ----

    def chunk(self, step, r):
        """The budget limits prompt tokens only."""
        left = self.s['budget'] - sum(n for q, n in step.tokens.items() if not q.decodes)
        return r.todo if r.todo <= left or not step.tokens else 0

    def may_start(self, r):
        return not self.host_is_short

    def blocks_to_find(self, r, n):
        n_blocks = self.blocks_for(r.computed + n)
        return n_blocks, n_blocks

    def swap_ahead(self, step):
        while step.tokens and self.free < self.s['keep'] and self.idle(step):
            last = self.idle(step)[-1]
            if last.blocks > self.host_free:
                break
            self.swap_out(step, last)
        if step.preempted:
            return
        for r in [r for r in self.in_order() if r not in step.tokens][:self.s['look_ahead']]:
            if r in self.swapped and self.free >= self.s['keep'] + r.host_blocks:
                self.swap_in(step, r, r.host_blocks)
                self.came_ahead.append(r)

    def plan(self, step):
        self.came_ahead = []
        self.host_is_short = self.host_free < self.s['host_free'] * self.s['host_blocks']
        self.walk(step)
        self.swap_ahead(step)

    # ---- after a step ----

    def started(self, step):
        self.n_steps += 1
        if self.n_steps % self.s['starve_steps']:
            return
        idle = [r for r in self.in_order() if r not in step.tokens and r not in self.came_ahead]
        starving = [r for r in idle if r.level > 0 and self.now - r.ran >= self.s['starve']]
        for r in starving:
            self.push_front(r, 0)

    def ended(self, step, begin, end):
        decodes = [r for r in self.running if r in step.tokens and r.computed - 1 >= r.prefill]
        for r in decodes + [r for r in step.tokens if r not in decodes]:
            r.ran = end
            r.spent += end - begin
            if r.spent > self.quantum(r) and r.level < self.s['levels'] - 1:
                r.spent = 0
                self.push_front(r, r.level + 1)
