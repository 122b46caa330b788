"""A step that is planned as the one before it begins, without that one's results."""


class PlannedAhead:
    """Wraps a scheduler, so that its `plan` does not know of two things:
    - a request that ends in the step in flight is still in the running list. A token that it is given is computed
      for nothing;
    - a request that arrives during that step is not in the queue.
    When a plan gives nothing to do, the step in flight is waited for, and the next plan knows all."""

    def __init__(self, settings):
        super().__init__(settings)
        self.door, self.ended_now = [], []      # arrivals and ends that are not known yet
        self.last_begin = -1

    def at_limit(self, r):
        """The end at a limit on the length is known ahead."""
        return r.out >= r.max_new or r.tokens >= self.s['max_model_len']

    def arrive(self, r):
        before = len(self.waiting)
        super().arrive(r)
        if len(self.waiting) > before:
            self.door.append(self.waiting.pop())

    def give(self, step, r, n):
        if r not in self.ended_now:
            super().give(step, r, n)
        else:
            step.for_nothing.append(r)

    def recompute(self, step, r):
        """A request that has ended can be the victim like any other, and does not return to the queue."""
        if r not in self.ended_now:
            return super().recompute(step, r)
        if r in step.for_nothing:
            step.for_nothing.remove(r)
        self.running.remove(r)
        self.release(r)
        self.ended_now.remove(r)
        step.moved = True

    def learn(self):
        """Applies the results of the step in flight."""
        for r in self.ended_now:
            self.running.remove(r)
            self.release(r)
        self.ended_now = []
        self.waiting += self.door
        self.door = []

    def plan_unknowing(self, step):
        super().plan(step)

    def plan(self, step):
        known = [r for r in self.door if r.arrival <= self.last_begin]
        self.waiting += known
        self.door = [r for r in self.door if r not in known]
        self.plan_unknowing(step)
        if step.empty and not step.moved:
            self.learn()
            super().plan(step)
        self.learn()

    def padding(self, step):
        return 0, len(step.for_nothing), sum(r.tokens for r in step.for_nothing)

    def started(self, step):
        super().started(step)
        self.last_begin = self.now

    def end(self, step, begin, end):
        running = list(self.running)
        super().end(step, begin, end)
        self.ended_now = [r for r in running if r not in self.running]
        self.running = running

    def release(self, r):
        if r.finish is None or r in self.ended_now:
            super().release(r)
