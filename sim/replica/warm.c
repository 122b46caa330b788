#include "replica/warm.h"

#include <stddef.h>

enum { LINE_BYTES = 64 };

/* All of this is likely to be written. */
static inline void fetch(const void *of, size_t n_bytes)
{
    const char *at = of, *end = at + n_bytes;
    for (at -= (uintptr_t)at % LINE_BYTES; at < end; at += LINE_BYTES)
        __builtin_prefetch(at, 1);
}

void replica_warm(const struct replica *replica)
{
    const struct cohort *cohort = &replica->here.cohort;
    fetch(&replica->plan, offsetof(struct plan, scheduled));
    fetch(&replica->view, sizeof replica->view);
    fetch(&replica->fixed, offsetof(struct replica_fixed, modules));
    fetch(&replica->on, offsetof(struct listeners, bounds));
    fetch(&replica->here, offsetof(struct here, cohort));
    fetch(cohort, offsetof(struct cohort, ragged) + offsetof(struct ragged, of));
    fetch(&replica->kv, offsetof(struct accounts, device) + offsetof(struct kv_pool, buddy));
    fetch(&replica->in_flight, sizeof replica->in_flight);
    fetch(&replica->wakes, sizeof replica->wakes);
    fetch(&replica->leaving, sizeof replica->leaving);
    fetch(&replica->moving, offsetof(struct moving, handed));
}

static void fetch_cohort(const struct cohort *cohort)
{
    const int64_t next = cohort->tick + 1;
    if (!cohort->due)
        return;
    fetch(&cohort->grow[cohort->phase], 1);
    fetch(&cohort->n_counted[cohort->phase], 1);
    fetch(&cohort->unused_slots[cohort_place(cohort, next)], 1);
    fetch(&cohort->finishes[cohort_place(cohort, next) / 64], 1);
    fetch(cohort->fresh, 1);
    if (cohort->n_gaps > 0)
        fetch(&cohort->gaps[cohort->n_gaps - 1], 1);
    if (cohort->n > 0)
        fetch(&cohort->due[cohort_place(cohort, cohort->next_finish_tick)], 1);
    if (cohort->members.tail)
        fetch(&cohort->members.tail->links, 1);
}

void replica_warm_lists(const struct replica *replica, bool joins)
{
    const struct waiter_run *near = &replica->here.waiting.near,
                            *line = &replica->here.waiting.line;
    const struct live_request *next = replica->here.pool.free;
    fetch_cohort(&replica->here.cohort);
    fetch(replica->in_flight.ends_ns, LINE_BYTES);
    fetch(replica->plan.planned, 1);
    fetch(replica->plan.started.of, 1);
    fetch(replica->leaving.gone, 1);
    if (near->of)
        fetch(&near->of[near->head], 1);
    if (line->of)
        fetch(&line->of[line->head], 1);
    if (joins && next)
        fetch(next, sizeof *next);
}

void replica_warm_end(const struct replica *replica)
{
    const struct cohort *cohort = &replica->here.cohort;
    if (cohort->n == 0 || cohort_is_ragged(cohort))
        return;
    const struct live_request *r = cohort->due[cohort_place(cohort, cohort->next_finish_tick)];
    fetch(r, offsetof(struct live_request, own));
}
