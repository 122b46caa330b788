"""vLLM and nano-vLLM over their prefix caches: full blocks, found by the tokens from the first to the block's
last.

The pool is vllm/v1/core/block_pool.py in small. Blocks without users form a queue; they still count as hits.
A block is taken from the head and loses its content. A request gives its blocks back from the last to the
first, so that the end of a prefix is lost before its beginning. vLLM v0 has a list of empty blocks, and an
evictor for the others.
"""

from relatives import NanoVllm
from schedulers import VllmV0, VllmV1, VllmV1Async
from sglang import SGLang
from urgent import VllmV1Priority


class Pool:
    def __init__(self, n_blocks, empty_first):
        self.queue = list(range(n_blocks))
        self.users = [0] * n_blocks
        self.holds = [None] * n_blocks          # the tokens up to its last
        self.left = [None] * n_blocks
        self.empty_first = empty_first
        self.blocks_of = {}     # tokens up to a block's last -> blocks that hold them, earliest first

    def find(self, prefix):
        blocks = self.blocks_of.get(prefix)
        return blocks[0] if blocks else None

    def keep(self, block, prefix):
        if self.holds[block] is None:
            self.holds[block] = prefix
            self.blocks_of.setdefault(prefix, []).append(block)

    def forget(self, block):
        if self.holds[block] is not None:
            self.blocks_of[self.holds[block]].remove(block)
        self.holds[block] = None

    def take(self):
        block = self.queue.pop(0)
        self.forget(block)
        self.users[block] = 1
        return block

    def share(self, block):
        if self.users[block] == 0:
            self.queue.remove(block)
        self.users[block] += 1

    def give_back(self, blocks, now):
        for block in reversed(blocks):
            self.users[block] -= 1
            if self.users[block] == 0:
                at = 0 if self.holds[block] is None and self.empty_first else len(self.queue)
                self.queue.insert(at, block)


class InformedPool(Pool):
    """Blocks that a waiting request would hit are evicted last (vLLM issue 48485)."""
    wanted = frozenset()

    def forget(self, block):
        super().forget(block)
        self.wanted -= {block}

    def take(self):
        at = next((i for i, block in enumerate(self.queue) if block not in self.wanted), 0)
        self.queue.insert(0, self.queue.pop(at))
        return super().take()


class TimedPool(Pool):
    """vllm/core/evictor.py, LRUEvictor: the least recently used block is lost first, of equal times the one
    with the most tokens before it. In vLLM further ties are random; here the block given back first is lost."""

    def __init__(self, n_blocks, empty_first):
        super().__init__(n_blocks, empty_first)
        self.n_left = 0

    def give_back(self, blocks, now):
        super().give_back(blocks, now)
        self.n_left += 1
        for block in blocks:
            self.left[block] = now, -len(self.holds[block] or ()), self.n_left
        held = [block for block in self.queue if self.holds[block] is not None]
        self.queue = [block for block in self.queue if self.holds[block] is None]
        self.queue += sorted(held, key=lambda block: self.left[block])


class Cached:
    """A request holds numbered blocks. A hit never covers the whole prompt: the last token is computed."""
    beside = ' with its cache'
    pool_of, empty_first = Pool, True
    more_sets = {'serving.kv.prefix_cache': 'hash'}

    @staticmethod
    def columns(rng, prompt, output):
        columns = SGLang.columns(rng, prompt, output)
        del columns['max_tokens']
        return columns

    def __init__(self, settings):
        self.pool = self.pool_of(settings['num_blocks'], self.empty_first)
        super().__init__(settings)

    @property
    def free(self):
        return len(self.pool.queue)

    @free.setter
    def free(self, n):
        """Ignored: the number of free blocks is computed from the pool."""

    tokens_of = SGLang.tokens_of

    def take(self, r, n):
        r.table += [self.pool.take() for _ in range(n)]
        r.blocks = len(r.table)

    def release(self, r):
        self.pool.give_back(r.table, self.now)
        r.table, r.blocks = [], 0

    def hit(self, r):
        tokens, found = self.tokens_of(r, r.tokens), []
        for end in range(self.s['block_tokens'], r.tokens, self.s['block_tokens']):
            block = self.pool.find(tokens[:end])
            if block is None:
                break
            found.append(block)
        return found

    def unused(self, hit):
        """The number of blocks in the hit that are still free; sharing takes them."""
        return sum(self.pool.users[block] == 0 for block in hit)

    def admit_behind(self, r, hit, n_blocks):
        for block in hit:
            self.pool.share(block)
        r.table, r.computed = hit, len(hit) * self.s['block_tokens']
        self.admit(r, n_blocks - len(hit))

    def keep(self, r, n_tokens):
        tokens = self.tokens_of(r, n_tokens)
        for i in range(n_tokens // self.s['block_tokens']):
            self.pool.keep(r.table[i], tokens[:(i + 1) * self.s['block_tokens']])

    def ended(self, step, begin, end):
        for r in step.tokens:
            self.keep(r, r.computed)


class VllmV1Cached(Cached, VllmV1):
    """vllm/v1/core/kv_cache_manager.py: a hit block without users counts as needed. allocate_slots publishes
    blocks at once, so the next request of the same step can hit them. vLLM does not withdraw the blocks of a
    preempted request that this step scheduled; here they are withdrawn."""
    preset = 'vllm-v1-2026-08'

    def give(self, step, r, n):
        super().give(step, r, n)
        self.keep(r, r.computed + n)

    def recompute(self, step, r):
        for block in r.table[r.computed // self.s['block_tokens']:]:
            self.pool.forget(block)
        super().recompute(step, r)

    def admit_waiting(self, step):
        while self.waiting and step.n_tokens < self.s['budget']:
            if len(self.running) >= self.seats():
                break
            r = self.waiting[0]
            hit = self.hit(r)
            r.computed = len(hit) * self.s['block_tokens']
            n = self.amount(r, step)
            tokens = r.tokens if self.full_prompt_must_fit else r.computed + n
            if self.blocks_for(tokens) - len(hit) + self.unused(hit) > self.spare():
                r.computed = 0
                break
            self.admit_behind(r, hit, self.blocks_for(r.computed + n))
            self.give(step, r, n)

    def started(self, step):
        """Of requests that end together decodes give their blocks back first; vLLM uses its list's order."""
        step.tokens = dict(sorted(step.tokens.items(), key=lambda given: not given[0].decodes))


class VllmV1AsyncCached(VllmV1Cached, VllmV1Async):
    """async_scheduler.py: the token of a step in flight is not known. The block that it fills gets its hash when the
    next plan schedules the request, or when the step has ended."""
    preset = 'vllm-v1-2026-08-async'

    @staticmethod
    def columns(rng, prompt, output):
        return {**Cached.columns(rng, prompt, output), **VllmV1Async.columns(rng, prompt, output)}

    def __init__(self, settings):
        super().__init__(settings)
        self.in_flight = set()          # decode in the step that is not known to have ended

    def give(self, step, r, n):
        VllmV1Async.give(self, step, r, n)
        if r not in self.ended_now:
            self.keep(r, r.computed if r.decodes else r.computed + n)

    def recompute(self, step, r):
        n_known = r.computed - (r in self.in_flight and r not in step.tokens and r not in step.for_nothing)
        for block in r.table[n_known // self.s['block_tokens']:]:
            self.pool.forget(block)
        VllmV1Async.recompute(self, step, r)

    def release(self, r):
        if r.finish is None or r in self.ended_now:
            super().release(r)

    def learn(self):
        self.in_flight = set()
        super().learn()

    def ended(self, step, begin, end):
        super().ended(step, begin, end)
        self.in_flight = {r for r in step.tokens if r.computed > r.prefill}


class VllmV1Informed(VllmV1Cached):
    beside = ' with its cache, informed by the queue'
    preset = 'vllm-v1-2026-08'
    pool_of = InformedPool
    more_sets = {**Cached.more_sets, 'serving.evict.policy': 'queue-informed'}

    def plan(self, step):
        self.pool.wanted = frozenset(block for r in self.waiting for block in self.hit(r))
        super().plan(step)


class VllmV1April2026Cached(VllmV1Cached):
    """Before #42656: empty blocks go to the end of the queue like all others."""
    preset = 'vllm-v1-2026-04'
    empty_first = False


class VllmV1May2025Cached(VllmV1April2026Cached):
    preset = 'vllm-v1-2025-05'
    full_prompt_must_fit = False


class VllmV1PriorityCached(VllmV1Cached, VllmV1Priority):
    preset = 'vllm-v1-2026-08-priority'


class CachedPrompts(Cached):
    """A mixin for VllmV0: a prompt starts behind its hit."""

    def new_tokens(self, r):
        return r.tokens - len(self.hit(r)) * self.s['block_tokens']

    def start(self, step, r, n_blocks, n_tokens):
        self.admit_behind(r, self.hit(r), n_blocks)
        self.give(step, r, n_tokens)


class VllmV0Cached(CachedPrompts, VllmV0):
    """vllm/core/block_manager.py: can_allocate asks for all blocks of a prompt, cached ones included."""
    preset = 'vllm-v0'
    pool_of = TimedPool
    more_sets = {**Cached.more_sets, 'serving.evict.policy': 'lru', 'serving.evict.by': 'time',
                 'serving.admit.hits': 'asked-for'}


class NanoVllmCached(CachedPrompts, NanoVllm):
    """nanovllm/engine/block_manager.py: one queue for all free blocks. Of blocks with equal tokens nano-vLLM finds
    the latest; here the earliest is found."""
    preset = 'nano-vllm'
    empty_first = False

    def to_take(self, r, n_blocks):
        hit = self.hit(r)
        return n_blocks - len(hit) + self.unused(hit)
