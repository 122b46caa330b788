"""SGLang (main of 2026-08): a radix tree of cached prefixes, and the schedulers over it.

The tree is python/sglang/srt/mem_cache/radix_cache.py in small. A node holds a run of pages; children are found by
their first page; a match that ends inside a node splits it. An unlocked leaf is evicted as a whole, the least
recently used leaf first.
"""

from machine import EngineFails, Scheduler


class Node:
    def __init__(self, parent, pages):
        self.parent, self.pages = parent, pages
        self.children = {}      # first page -> node
        self.locks = 0
        self.used = 0           # time of the last use
        self.hits = 0           # times that a prompt, or a prompt and its answer, went through it

    @property
    def depth(self):
        return len(self.pages) + (self.parent.depth if self.parent else 0)


class RadixTree:
    def __init__(self):
        self.root = Node(None, ())
        self.clock = 0

    def nodes(self, at=None):
        at = at or self.root
        for child in at.children.values():
            yield child
            yield from self.nodes(child)

    def size(self, locked):
        return sum(len(n.pages) for n in self.nodes() if (n.locks > 0) == locked)

    def split(self, node, n):
        """Makes the first n pages a parent node of the rest."""
        top = Node(node.parent, node.pages[:n])
        top.locks, top.used, top.hits = node.locks, node.used, node.hits
        node.parent.children[node.pages[0]] = top
        node.pages, node.parent = node.pages[n:], top
        top.children[node.pages[0]] = node
        return top

    def match(self, pages):
        """The node where the longest match ends; every node on the path is marked as used."""
        self.clock += 1
        at = self.root
        while pages and pages[0] in at.children:
            child = at.children[pages[0]]
            n = common(child.pages, pages)
            at = self.split(child, n) if n < len(child.pages) else child
            at.used = self.clock
            pages = pages[n:]
        return at

    def peek(self, pages):
        """The number of matching pages, and the number of them without a lock; changes nothing."""
        at, n_all, n_unlocked = self.root, 0, 0
        while pages and pages[0] in at.children:
            at = at.children[pages[0]]
            n = common(at.pages, pages)
            n_all += n
            n_unlocked += n if at.locks == 0 else 0
            if n < len(at.pages):
                break
            pages = pages[n:]
        return n_all, n_unlocked

    def insert(self, pages, counts):
        at = self.match(pages)
        rest = pages[at.depth:]
        if rest:
            leaf = Node(at, rest)
            leaf.used = self.clock
            at.children[rest[0]] = leaf
            at = leaf
        node = at
        while counts and node is not self.root:
            node.hits += 1
            node = node.parent
        return at

    def lock(self, node, n):
        while node is not self.root:
            node.locks += n
            assert node.locks >= 0
            node = node.parent

    def value(self, leaf):
        """evict_policy.py, LRUStrategy: the leaf of the smallest value is evicted first."""
        return leaf.used

    def evict(self):
        """Evicts one leaf; returns its number of pages."""
        leaves = [n for n in self.nodes() if not n.children and n.locks == 0]
        leaf = min(leaves, key=self.value)
        del leaf.parent.children[leaf.pages[0]]
        return len(leaf.pages)


class FrequencyTree(RadixTree):
    def value(self, leaf):
        """LFUStrategy."""
        return leaf.hits, leaf.used


class InformedTree(RadixTree):
    """A leaf on the end of which a waiting request would start is evicted last."""
    wanted = frozenset()

    def path(self, node):
        return self.path(node.parent) + node.pages if node.parent else ()

    def want(self, prompts):
        matched = ((pages, self.peek(pages)[0]) for pages in prompts)
        self.wanted = frozenset(pages[:n] for pages, most in matched for n in range(1, most + 1))

    def value(self, leaf):
        return self.path(leaf) in self.wanted, leaf.used


def common(a, b):
    n = 0
    while n < len(a) and n < len(b) and a[n] == b[n]:
        n += 1
    return n


class SGLang(Scheduler):
    """scheduler.py, schedule_policy.py (PrefillAdder) and schedule_batch.py (retract_decode)."""
    preset = 'sglang'
    mixed = False
    most_new_tokens = 4096
    first_ratio, floor_frac = 0.7, 0.14

    @staticmethod
    def draw(rng):
        page = rng.choice([1, 1, 4, 16])
        tokens = rng.choice([rng.randint(25, 60), rng.randint(60, 250)])
        chunk = rng.choice([0, 5, 5, 16, 16, 64, 8192])      # 0: none
        return {'block_tokens': page, 'num_blocks': tokens // page + (page > 1) * 3,
                'host_blocks': 0, 'max_seqs': rng.choice([2, 4, 4096, 4096]),
                'max_prefill': rng.choice([16, 60, 16384]),
                'chunk': -(-chunk // page) * page,      # page by page, as SGLang wants it
                'conserve': rng.choice([0, 0, 0.3, 1]), 'decay_steps': rng.choice([5, 600])}

    @staticmethod
    def columns(rng, prompt, output):
        group = rng.choice([0, 1, 1, 2])
        shared = rng.choice([prompt, rng.randint(0, prompt)]) if group else 0
        return {'max_tokens': output + rng.choice([0, 0, 3, 40]),
                'prefix_group': group if shared else 0, 'prefix_tokens': shared}

    keys = {'max_seqs': 'serving.batching.max_seqs', 'chunk': 'serving.batching.chunk_tokens',
            'max_prefill': 'serving.batching.max_prefill_tokens',
            'conserve': 'serving.admit.conservativeness',
            'decay_steps': 'serving.admit.decay_steps'}
    more_sets = {'serving.kv.prefix_cache': 'radix'}

    tree_of = RadixTree

    def __init__(self, settings):
        self.tree = self.tree_of()
        self.page = settings['block_tokens']
        super().__init__(settings)
        self.highest = min(1, self.first_ratio * self.s['conserve'])
        self.ratio = self.highest
        self.batch_is_full = False
        self.chunked = None
        self.last_left = -1
        self.n_queued = 0
        self.unfiltered = []    # ended requests that are still in the decode batch
        self.counted = []       # ended requests that memory is still set aside for
        self.only_decodes = False

    # ---- memory: pages of the tree, and pages of single running requests ----

    @property
    def free(self):
        """Unused pages and evictable pages."""
        held = sum(r.blocks - r.node.depth for r in self.running)
        return self.s['num_blocks'] - self.tree.size(locked=True) - held

    @free.setter
    def free(self, n):
        """Ignored: the number of free pages is computed from the tree."""

    def tokens_of(self, r, n_tokens):
        return tuple(('group', r.prefix_group, i) if i < r.of_group else ('own', r.number, i)
                     for i in range(n_tokens))

    def pages_of(self, r, n_tokens):
        """The whole pages that the tokens fill; a page is the tuple of its tokens."""
        tokens = self.tokens_of(r, n_tokens)
        return tuple(tokens[i:i + self.page]
                     for i in range(0, n_tokens // self.page * self.page, self.page))

    def available(self):
        """Pages that neither the tree nor a request holds; below 0, leaves must be evicted."""
        held = sum(r.blocks - r.node.depth for r in self.running)
        in_tree = self.tree.size(locked=True) + self.tree.size(locked=False)
        return self.s['num_blocks'] - in_tree - held

    def take(self, r, n):
        assert n <= self.free
        r.blocks += n
        while self.available() < 0:
            self.tree.evict()

    def grow(self, r, n):
        self.take(r, self.lacks(r, r.computed + n))

    def keep_in_tree(self, r, counts):
        """Inserts the computed pages and gives back pages that the tree has already. A chunk counts as no hit."""
        self.tree.lock(r.node, -1)
        before, own = r.node.depth, r.blocks - r.node.depth
        r.node = self.tree.insert(self.pages_of(r, r.computed), counts)
        self.tree.lock(r.node, +1)
        r.blocks = r.node.depth + own - (r.node.depth - before)

    # ---- admission ----

    def declared(self, r):
        longest = self.s['num_blocks'] * self.page - 1 - self.page - r.prompt
        return max(0, min(r.max_new, longest))

    def left_of(self, r):
        return min(max(0, self.declared(r) - r.out), self.most_new_tokens)

    def batch(self):
        """The requests that memory for answers is set aside for."""
        return [r for r in self.running if r.decodes] + self.counted

    def rem_total(self):
        """Tokens left for prompts. Pages given in this step are no longer free; page_rest corrects their number to the
        whole pages of the computed tokens."""
        batch = self.batch()
        running = sum(self.left_of(r) * self.ratio for r in batch)
        mixed = len(batch) if self.mixed else 0
        return self.free * self.page - running - self.promised - mixed - self.page_rest

    def charged(self, step):
        """Prompt tokens in whole pages, and one token for each decode that will join."""
        return self.n_mixed + sum(self.blocks_for(n) * self.page for n in step.tokens.values())

    def rem_input(self, step):
        return self.s['max_prefill'] - self.charged(step)

    def rem_chunk(self, step):
        return self.s['chunk'] - self.charged(step) if self.s['chunk'] else float('inf')

    def added(self, r, n):
        """Promises one page beyond the computed tokens and, if the prompt is complete, the answer."""
        answer = min(self.declared(r), self.most_new_tokens) if n == r.todo else 0
        self.promised += answer + self.page

    def continue_chunk(self, step):
        """The chunk is cut to the memory left beside running answers, unless none is left."""
        r = self.chunked
        tokens = min(self.rem_chunk(step), int(self.rem_total()))
        n = min(r.todo, tokens if tokens > 0 else self.rem_chunk(step))
        if n <= 0:
            return
        if self.lacks(r, r.computed + n) > self.free:
            raise EngineFails('prefill out of memory')
        before = r.blocks
        self.grow(r, n)
        self.page_rest += (self.blocks_for(n) - (r.blocks - before)) * self.page
        self.give(step, r, n)
        self.added(r, n)
        if n == r.todo:
            self.chunked = None

    def add_one(self, step, r):
        prefix = self.pages_of(r, r.tokens - 1)
        n_matched, n_to_lock = self.tree.peek(prefix)
        extend = r.tokens - n_matched * self.page
        whole_pages, left = self.blocks_for(extend) * self.page, self.rem_chunk(step)
        rem_total = self.rem_total() - n_to_lock * self.page    # locked, it cannot be evicted
        if extend + self.left_of(r) + self.page >= rem_total:
            return 'no token'
        if step.tokens and not self.s['chunk'] and whole_pages >= self.rem_input(step):
            return 'other'
        if left < self.page:
            return 'other'
        n = extend if whole_pages <= left else left // self.page * self.page
        node = self.tree.match(prefix)
        self.tree.lock(node, +1)
        self.waiting.remove(r)
        self.running.append(r)
        r.node, r.blocks = node, node.depth
        r.computed, r.prefill = node.depth * self.page, r.tokens
        self.grow(r, n)
        self.give(step, r, n)
        if n < extend:
            self.chunked = r
        self.added(r, n)
        if self.rem_total() <= 0:
            return 'no token'
        out = n < extend or self.rem_input(step) <= 0 or self.rem_chunk(step) <= 0
        return 'other' if out else 'continue'

    def sort_waiting(self):
        """First come, first served: the queue keeps its order."""

    def prefills(self, step):
        self.promised = self.page_rest = 0
        if self.chunked:
            self.continue_chunk(step)
        if self.batch_is_full or not self.waiting:
            return
        self.sort_waiting()
        for r in list(self.waiting):
            if len(self.running) + len(self.unfiltered) >= self.s['max_seqs']:
                break
            if r.tokens + self.page >= self.s['num_blocks'] * self.page:
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                continue
            verdict = self.add_one(step, r)
            if verdict == 'no token':
                self.batch_is_full = True
            if verdict != 'continue':
                break

    # ---- decode ----

    def release(self, r):
        if r.finish is not None:
            self.keep_in_tree(r, True)
        self.tree.lock(r.node, -1)
        r.node, r.blocks = self.tree.root, 0

    def back_to_waiting(self, r):
        self.queue(r)
        self.waiting.append(r)

    def decodes(self, step):
        decoding = [r for r in self.running if r.decodes]
        while sum(self.lacks(r, r.computed + 1) for r in decoding) > self.free:
            if len(decoding) == 1:
                return
            shortest = min(reversed(decoding), key=lambda r: (r.out, -r.prompt))
            decoding.remove(shortest)
            self.recompute(step, shortest)
        for r in decoding:
            self.grow(r, 1)
            self.give(step, r, 1)

    def filter_batch(self):
        """Removes ended requests from the decode batch; the mark batch_is_full goes with them."""
        if self.unfiltered:
            self.unfiltered, self.counted, self.batch_is_full = [], [], False

    def try_prefill(self, step):
        self.n_decode = sum(r.decodes for r in self.running) + len(self.unfiltered)
        self.n_mixed = self.n_decode if self.mixed else 0
        self.prefills(step)

    def plan(self, step):
        """get_next_batch_to_run, repeated while there is nothing to run."""
        if not self.running and self.now > self.last_left:
            self.filter_batch()
        if not self.running:
            self.counted = []       # SGLang counts them once more
        self.try_prefill(step)
        if not step.tokens and not self.running and self.unfiltered:
            self.filter_batch()
            self.try_prefill(step)
        if self.mixed or not step.tokens:
            self.decodes(step)

    # ---- after a step ----

    def started(self, step):
        """batch_is_full belongs to the decode batch. A prefill clears it if that batch is empty, if decodes join the
        prefill, or if a prompt is chunked."""
        prefill = any(not r.decodes for r in step.tokens)
        if prefill and (self.mixed or self.n_decode == 0 or self.chunked):
            self.batch_is_full = False
        if self.mixed or not prefill:
            self.filter_batch()
        self.only_decodes = not prefill
        if step.preempted:
            self.batch_is_full = False
            produced = sum(r.out + 20 for r in self.running)
            self.ratio = min(1, produced / (sum(self.declared(r) for r in self.running) + 1))
        elif all(r.decodes for r in step.tokens):
            floor = self.highest * self.floor_frac
            self.ratio = max(floor, self.ratio - (self.highest - floor) / self.s['decay_steps'])

    def ended(self, step, begin, end):
        for r, n in step.tokens.items():
            if r.computed - n < r.prefill:
                self.keep_in_tree(r, r.computed >= r.prefill and r.out < r.output)

    def left(self, r):
        self.last_left = self.now
        if self.only_decodes:
            self.unfiltered.append(r)
            self.counted.append(r)
        else:
            self.batch_is_full = False

    def arrive(self, r):
        """After an idle time the ratio starts at its first value again."""
        if not self.waiting and not self.running and self.now > self.last_left:
            self.ratio = self.highest
        self.queue(r)
        super().arrive(r)

    def queue(self, r):
        """The request's place in first come, first served order."""
        self.n_queued += 1
        r.queued = self.n_queued


class SGLangLfu(SGLang):
    """--radix-eviction-policy lfu."""
    preset = 'sglang'
    beside = ' by frequency'
    tree_of = FrequencyTree
    more_sets = {**SGLang.more_sets, 'serving.evict.policy': 'lfu'}


class SGLangInformed(SGLang):
    """A tree that knows the queue: inflight's own, after the cache of blocks in vLLM issue 48485."""
    preset = 'sglang'
    beside = ' informed by the queue'
    tree_of = InformedTree
    more_sets = {**SGLang.more_sets, 'serving.evict.policy': 'queue-informed'}

    def plan(self, step):
        self.tree.want([self.pages_of(r, r.tokens - 1) for r in self.waiting])
        super().plan(step)


class SGLangMixed(SGLang):
    """--enable-mixed-chunk: decodes join the prefill and count in its budgets."""
    preset = 'sglang-mixed'
    fails_at_most = 0.05
    mixed = True

    def started(self, step):
        """After a step decodes enter the tree before prompts; SGLang inserts the prompts first."""
        super().started(step)
        step.tokens = dict(sorted(step.tokens.items(), key=lambda given: not given[0].decodes))


class SGLangOverlap(SGLang):
    """event_loop_overlap: a step is planned when the previous one begins, without that one's results:
    - a request that ends in it is still in the batch, and decodes once more if a decode is planned;
    - its output tokens are not counted yet;
    - a request that arrives during it is not in the queue.
    Prefixes are not shared here: SGLang finds those that the step computed one plan later."""
    preset = 'sglang-overlap'
    fails_at_most = 0.05
    more_sets = {**SGLang.more_sets}

    @staticmethod
    def columns(rng, prompt, output):
        return {'max_tokens': output + rng.choice([0, 0, 3, 40])}

    def __init__(self, settings):
        super().__init__(dict(settings))
        self.door, self.unknown, self.fresh = [], [], []
        self.sampled, self.prefilled = set(), set()
        self.for_nothing = []
        self.last_begin = -1

    def arrive(self, r):
        before = len(self.waiting)
        super().arrive(r)
        if len(self.waiting) > before:
            self.door.append(self.waiting.pop())

    def left_of(self, r):
        return min(max(0, self.declared(r) - r.out + (r in self.sampled)), self.most_new_tokens)

    def available(self):
        """Here an ended request has given back its pages outside the tree, and its surplus token takes no page."""
        kept = sum(r.blocks - len(self.pages_of(r, r.computed)) for r in self.unknown)
        return super().available() + kept

    def batch(self):
        """If all requests of the batch have ended, no memory is set aside here."""
        return super().batch() if self.known else []

    def recompute(self, step, r):
        if r in self.unknown:
            raise EngineFails('here no request that has ended is retracted')
        if r in self.prefilled:
            raise EngineFails('its prompt is not in the tree yet')
        self.waiting += self.door       # here new arrivals stand before the victim
        self.door = []
        super().recompute(step, r)

    def decodes(self, step):
        """update_running_batch: requests that are known to have ended leave first."""
        self.filter_batch()
        self.counted = []
        decoding = [r for r in self.running if r.decodes]
        while sum(self.lacks(r, r.computed + 1) for r in decoding) > self.free:
            if len(decoding) == 1:
                return
            shortest = min(reversed(decoding), key=lambda r: (r.out - (r in self.sampled), -r.prompt))
            decoding.remove(shortest)
            self.recompute(step, shortest)
            if set(decoding) <= set(self.unknown):
                raise EngineFails('here the last one that is known goes on')
        self.produced = sum(r.out - (r in self.sampled) + 20 for r in decoding)
        self.limit = sum(self.declared(r) for r in decoding)
        for r in decoding:
            self.grow(r, 1)
            if r in self.unknown:
                self.for_nothing.append(r)
            else:
                self.give(step, r, 1)

    def learn(self):
        unknown, self.unknown = self.unknown, []
        for r in unknown:
            self.running.remove(r)
            super().release(r)
        self.fresh += unknown
        self.sampled = set()
        self.waiting += self.door
        self.door = []

    def settle(self):
        self.unfiltered += self.fresh
        self.counted += self.fresh
        self.fresh = []

    def plan(self, step):
        self.for_nothing = []
        on_time = [r for r in self.door if r.arrival <= self.last_begin]
        self.waiting += on_time
        self.door = [r for r in self.door if r not in on_time]
        self.known = set(self.running) - set(self.unknown)
        if not self.known:
            self.counted = []
        self.plan_once(step)
        if not step.tokens and not step.preempted:
            self.learn()
            fresh = list(self.fresh)
            self.settle()
            self.plan_once(step)
            self.counted = fresh        # until the next decode; SGLang has forgotten them
        self.learn()

    def plan_once(self, step):
        if not self.running and self.now > self.last_left:
            self.filter_batch()
        self.try_prefill(step)
        if not step.tokens and not self.running and self.unfiltered:
            self.filter_batch()
            self.try_prefill(step)
        if not step.tokens and set(self.running) - set(self.unknown):
            self.decodes(step)      # here a batch of ended requests alone makes no step

    def padding(self, step):
        return 0, len(self.for_nothing), sum(r.tokens for r in self.for_nothing)

    def started(self, step):
        prefill = any(not r.decodes for r in step.tokens)
        if prefill and (self.n_decode == 0 or self.chunked):
            self.batch_is_full = False
        if step.preempted:
            self.batch_is_full = False
            self.ratio = min(1, self.produced / (self.limit + 1))
        elif not prefill:
            floor = self.highest * self.floor_frac
            self.ratio = max(floor, self.ratio - (self.highest - floor) / self.s['decay_steps'])
        self.settle()
        self.last_begin = self.now

    def end(self, step, begin, end):
        running = list(self.running)
        out = {r: r.out for r in step.tokens}
        self.prefilled = {r for r in step.tokens if not r.decodes}
        super().end(step, begin, end)
        self.sampled = {r for r in step.tokens if r.out > out[r]}
        self.unknown = [r for r in running if r not in self.running]
        self.running = running

    def release(self, r):
        if r.finish is None:        # otherwise learn() releases it
            super().release(r)

    def left(self, r):
        self.last_left = self.now


class SGLangLpm(SGLang):
    """--schedule-policy lpm. Ties are broken by arrival; SGLang keeps the order of its last sort."""
    preset = 'sglang-lpm'

    @staticmethod
    def draw(rng):
        return {**SGLang.draw(rng), 'most_waiting': rng.choice([2, 128]),
                'in_batch': rng.choice([1, 4, 32])}

    keys = {**SGLang.keys, 'most_waiting': 'serving.order.most_waiting',
            'in_batch': 'serving.order.in_batch_tokens'}

    def sort_waiting(self):
        self.waiting.sort(key=lambda r: r.queued)
        if len(self.waiting) > self.s['most_waiting']:
            return
        to_be_computed, held_back = [], set()
        for r in self.waiting:
            r.matched = self.tree.peek(self.pages_of(r, r.tokens - 1))[0] * self.page
            if r.matched > self.s['in_batch']:
                continue
            tokens = self.tokens_of(r, r.tokens)        # SGLang's second tree has pages of one token
            if any(common(tokens, other) >= self.s['in_batch'] for other in to_be_computed):
                held_back.add(r)
            else:
                to_be_computed.append(tokens)
        self.waiting.sort(key=lambda r: (r in held_back, -r.matched if r not in held_back else 0))


class SGLangDfsWeight(SGLang):
    """--schedule-policy dfs-weight."""
    preset = 'sglang-dfs-weight'

    def sort_waiting(self):
        queue = sorted(self.waiting, key=lambda r: r.queued)
        ends = {r: self.pages_of(r, r.tokens - 1) for r in queue}
        ends = {r: pages[:self.tree.peek(pages)[0]] for r, pages in ends.items()}

        def below(path):
            return [r for r in queue if ends[r][:len(path)] == path]

        def visit(path):
            branches = {ends[r][:len(path) + 1] for r in below(path)} - {path}
            by_weight = sorted(branches, key=lambda b: (-len(below(b)), queue.index(below(b)[0])))
            for branch in by_weight:
                yield from visit(branch)
            yield from (r for r in queue if ends[r] == path)
        self.waiting = list(visit(()))
