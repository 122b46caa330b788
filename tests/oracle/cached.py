"""vLLM v1 over its prefix cache: full blocks, found by the tokens from the first to the block's last.

The pool is vllm/v1/core/block_pool.py in small: a queue of free blocks, whose head is used next and loses
what it held; a request that leaves gives its blocks back from the last to the first, so that the end of
a prefix is lost before its beginning. What nobody uses is free, and found as long as it is there.
"""

from schedulers import VllmV1
from sglang import SGLang
from urgent import VllmV1Priority


class Pool:
    def __init__(self, n_blocks, empty_first):
        self.queue = list(range(n_blocks))
        self.users = [0] * n_blocks
        self.holds = [None] * n_blocks          # the tokens up to its last
        self.empty_first = empty_first
        self.blocks_of = {}     # the same, with all blocks that hold it, the earliest first

    def find(self, prefix):
        blocks = self.blocks_of.get(prefix)
        return blocks[0] if blocks else None

    def keep(self, block, prefix):
        if self.holds[block] is None:
            self.holds[block] = prefix
            self.blocks_of.setdefault(prefix, []).append(block)

    def take(self):
        block = self.queue.pop(0)
        if self.holds[block] is not None:
            self.blocks_of[self.holds[block]].remove(block)
        self.holds[block], self.users[block] = None, 1
        return block

    def share(self, block):
        if self.users[block] == 0:
            self.queue.remove(block)
        self.users[block] += 1

    def give_back(self, blocks):
        for block in reversed(blocks):
            self.users[block] -= 1
            if self.users[block] == 0:
                at = 0 if self.holds[block] is None and self.empty_first else len(self.queue)
                self.queue.insert(at, block)


class VllmV1Cached(VllmV1):
    """vllm/v1/core/kv_cache_manager.py: a hit leaves a token to compute, and counts as needed while nobody
    else uses it."""
    preset = 'vllm-v1'
    beside = ' with its cache'
    empty_first = True
    more_sets = {'serving.kv.prefix_cache': 'hash'}

    @staticmethod
    def columns(rng, prompt, output):
        columns = SGLang.columns(rng, prompt, output)
        del columns['max_tokens']
        return columns

    def __init__(self, settings):
        self.pool = Pool(settings['num_blocks'], self.empty_first)
        super().__init__(settings)

    @property
    def free(self):
        return len(self.pool.queue)

    @free.setter
    def free(self, n):
        """Counted, never kept."""

    tokens_of = SGLang.tokens_of

    def take(self, r, n):
        r.table += [self.pool.take() for _ in range(n)]
        r.blocks = len(r.table)

    def release(self, r):
        self.pool.give_back(r.table)
        r.table, r.blocks = [], 0

    def hit(self, r):
        tokens, found = self.tokens_of(r, r.tokens), []
        for end in range(self.s['block_tokens'], r.tokens, self.s['block_tokens']):
            block = self.pool.find(tokens[:end])
            if block is None:
                break
            found.append(block)
        return found

    def admit_waiting(self, step):
        while self.waiting and step.n_tokens < self.s['budget']:
            if len(self.running) >= self.s['max_seqs']:
                break
            r = self.waiting[0]
            hit = self.hit(r)
            r.computed = len(hit) * self.s['block_tokens']
            n = self.amount(r, step)
            unused = sum(self.pool.users[block] == 0 for block in hit)
            tokens = r.tokens if self.full_prompt_must_fit else r.computed + n
            if self.blocks_for(tokens) - len(hit) + unused > self.free:
                r.computed = 0
                break
            for block in hit:
                self.pool.share(block)
            r.table = hit
            self.admit(r, self.blocks_for(r.computed + n) - len(hit))
            self.give(step, r, n)

    def started(self, step):
        """Of those that end together who decodes gives its blocks back first; vLLM goes by its list."""
        step.tokens = dict(sorted(step.tokens.items(), key=lambda given: not given[0].decodes))

    def ended(self, step, begin, end):
        for r in step.tokens:
            tokens = self.tokens_of(r, r.computed)
            for i in range(r.computed // self.s['block_tokens']):
                self.pool.keep(r.table[i], tokens[:(i + 1) * self.s['block_tokens']])


class VllmV1April2026Cached(VllmV1Cached):
    """Before #42656: blocks that hold nothing wait in the queue like all others."""
    preset = 'vllm-v1-2026-04'
    empty_first = False


class VllmV1May2025Cached(VllmV1April2026Cached):
    preset = 'vllm-v1-2025-05'
    full_prompt_must_fit = False


class VllmV1PriorityCached(VllmV1Cached, VllmV1Priority):
    preset = 'vllm-v1-priority'
