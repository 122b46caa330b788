/* The lists as a policy sees them while it plans. Running and swapped requests are shown in order
 * of start or of rank, as they were when the plan first asked for them; the waiting queue and the
 * prefix cache are shown as they are now. */
#include "replica/step_lists.h"

#include <stdio.h>
#include <string.h>

#include "inflight/minmax.h"
#include "replica/step_builder.h"

void step_show(struct replica *replica, struct live_request *r)
{
    if (!r->in_cohort)
        return;
    cohort_sync(&replica->here.cohort, r);
    if (replica->plan.ready_all &&
        replica->plan.planning) { /* not for hooks: the plan is settled */
        r->pub.stale.n_now = 1;
        plan_note_shown(&replica->plan, true);
    }
}

IFL_APART void step_show_members(struct replica *replica)
{
    FOR_EACH_LIVE (r, &replica->here.cohort.members, AMONG_PEERS)
        step_show(replica, r);
}

/* The next request of a ranked list that is still in `state`; the cursor does not move past it.
 * Most plans find no request in prefill: those that they start themselves are not shown. */
static const struct ranked_request *peek(struct replica *replica, enum ranked_list which,
                                         enum ifl_state state, uint64_t *at)
{
    if (which == RANKED_PREFILL && replica->here.apart.n == 0)
        return NULL;
    const struct ranking *list = replica_ranking(replica, which);
    const struct ranked_request *end = list->room + list->first + list->n;
    for (; *at < list->n; ++*at)
        if (end[-1 - (ptrdiff_t)*at].r->state == state)
            return &end[-1 - (ptrdiff_t)*at];
    return NULL;
}

/* True if the key of an entry is what this plan was told as it took the list, since nothing has
 * changed that it can depend on: no hook of the order has run, no key reads the step, and the plan
 * has neither given r tokens nor started it. Hooks behind the plan may change the order's state
 * between two looks. */
static bool key_stands(const struct replica *replica, const struct ifl_request *r)
{
    const struct plan *plan = &replica->plan;
    return plan->planning && !replica->ranks.hook_ran && !replica->ranks.keys_read_plan &&
           !plan->ready_all && r->stale.n_now == 0 && r->start_serial < plan->first_start;
}

/* The key of an entry of a ranked list; asked for again if it may have changed since. */
static int64_t key_of(struct replica *replica, const struct ranked_request *one)
{
    return !replica_keys_move(replica) || key_stands(replica, one->r)
               ? one->key
               : replica_rank(replica, live(one->r));
}

/* One of the two may wait. */
static bool came_before(const struct ifl_request *a, const struct ifl_request *b)
{
    const bool a_waits = a->state == IFL_WAITING, b_waits = b->state == IFL_WAITING;
    const int64_t a_ns = a_waits ? ifl_queued_since_ns(a) : a->arrival_ns;
    const int64_t b_ns = b_waits ? ifl_queued_since_ns(b) : b->arrival_ns;
    const uint64_t a_serial = a_waits ? a->queued_serial : a->serial;
    const uint64_t b_serial = b_waits ? b->queued_serial : b->serial;
    return a_ns != b_ns ? a_ns < b_ns : a_serial < b_serial;
}

static bool goes_first(struct replica *replica, const struct ranked_request *a,
                       const struct ranked_request *b)
{
    plan_ask(&replica->plan, IFL_ORDER);
    const int64_t key_a = key_of(replica, a), key_b = key_of(replica, b);
    return key_a != key_b ? key_a < key_b : came_before(a->r, b->r);
}

/* The next waiting request behind the cursor, its hit looked up. The queue ends in front of one
 * that a step in flight still computes: it has given way since, and does not start before that step
 * ends. */
IFL_HOT static struct live_request *next_waiting(struct replica *replica, uint64_t at[2])
{
    const uint64_t was_at[2] = {at[0], at[1]};
    struct live_request *r = waiting_next(&replica->here.waiting, at);
    while (r && r->joined_ns > replica->plan.known_ns)
        r = waiting_next(&replica->here.waiting, at);
    if (r && IFL_RARE(r->pub.n_in_flight > 0)) {
        memcpy(at, was_at, sizeof was_at);
        return NULL;
    }
    if (!r)
        return NULL;
    replica_look_up(replica, r);
    plan_ask(&replica->plan, IFL_ORDER);
    return r;
}

/* As next_waiting. But if `best`, of another list, ranks before that request: NULL, and the cursor
 * stays. */
static struct live_request *next_waiting_before(struct replica *replica, struct ifl_cursor *cursor,
                                                const struct ranked_request *best)
{
    waiting_renew(&replica->here.waiting, cursor->at);
    uint64_t at[2] = {cursor->at[0], cursor->at[1]};
    struct live_request *r = next_waiting(replica, at);
    if (!r)
        return NULL;
    const struct ranked_request waiting = {replica_rank(replica, r), &r->pub};
    const bool pushed_front = at[1] == cursor->at[1];
    if (!pushed_front && !goes_first(replica, &waiting, best))
        return NULL;
    memcpy(cursor->at, at, sizeof at);
    return r;
}

/* The best request of the ranked lists. *at: the cursor's place in the list that it is in. */
static const struct ranked_request *peek_all(struct replica *replica, unsigned lists,
                                             struct ifl_cursor *cursor, uint64_t **at)
{
    const struct ranked_request *best = NULL;
    *at = &cursor->at[2];
    if (lists & (IFL_IN_RUNNING | IFL_IN_PREFILL))
        best = peek(replica, lists & IFL_IN_RUNNING ? RANKED_RUNNING : RANKED_PREFILL, IFL_RUNNING,
                    *at);
    if (lists & IFL_IN_SWAPPED) {
        const struct ranked_request *swapped =
            peek(replica, RANKED_SWAPPED, IFL_SWAPPED, &cursor->at[3]);
        if (swapped && (!best || goes_first(replica, swapped, best))) {
            best = swapped;
            *at = &cursor->at[3];
        }
    }
    return best;
}

IFL_APART static const struct ifl_request *next_of_any(struct replica *replica, unsigned lists,
                                                       struct ifl_cursor *cursor)
{
    uint64_t *at;
    const struct ranked_request *best = peek_all(replica, lists, cursor, &at);
    struct live_request *waiting = NULL;
    if (lists & IFL_IN_WAITING && replica->here.waiting.n > 0)
        waiting =
            best ? next_waiting_before(replica, cursor, best) : next_waiting(replica, cursor->at);
    if (waiting)
        return &waiting->pub;
    if (!best)
        return NULL;
    ++*at;
    return best->r;
}

IFL_COLD static bool breach_ranking(struct replica *replica, const char *call)
{
    char text[128];
    snprintf(text, sizeof text,
             "it calls %s within `rank` or `keys`, while lists wait for its keys", call);
    step_breach_by(replica, replica->fixed.modules[IFL_ORDER].policy, text);
    return false;
}

/* False: the order looks at a list while that is ranked, which is a breach. A look moves entries of
 * the queue. */
static inline bool may_look(struct replica *replica, const char *call)
{
    return !IFL_RARE(replica->plan.ranking) || breach_ranking(replica, call);
}

/* Cursor: at[0] and at[1] belong to the waiting queue, at[2] to the running or prefilling requests,
 * at[3] to the swapped ones. Most calls ask for waiting requests alone. */
IFL_HOT const struct ifl_request *step_next(struct ifl_step *step, unsigned lists,
                                            struct ifl_cursor *cursor)
{
    struct replica *replica = replica_of(step);
    const struct ifl_request *r = NULL;
    struct live_request *waiting;
    if (!may_look(replica, "ifl_next"))
        return NULL;
    replica_settle_keys(replica);
    if (IFL_RARE(replica->plan.broken))
        return NULL;
    if (IFL_RARE(lists & IFL_IN_LOADED) && !(lists & IFL_IN_WAITING)) {
        const struct live_request *loaded =
            waiting_next_loaded(&replica->here.waiting, &cursor->at[4]);
        if (loaded)
            return &loaded->pub;
    }
    lists &= ~(unsigned)IFL_IN_LOADED; /* they are the first of those that wait */
    if (lists == 0)
        return NULL;
    if (lists & IFL_IN_WAITING && replica->ranks.ranks_stale)
        replica_rank_anew(replica);
    if (lists != IFL_IN_WAITING)
        r = next_of_any(replica, lists, cursor);
    else if ((waiting = next_waiting(replica, cursor->at)))
        r = &waiting->pub;
    if (r && r->state == IFL_WAITING)
        waiting_shown(&replica->here.waiting, cursor->at, live(r));
    replica_note_said(replica, &replica->fixed.modules[IFL_ORDER], lists,
                      r ? (int64_t)r->serial : -1);
    return r;
}

struct ifl_requests step_running(struct ifl_step *step)
{
    struct replica *replica = replica_of(step);
    const struct snapshot *list = &replica->plan.by_start;
    if (!list->taken) {
        step_show_members(replica);
        plan_take_by_start(&replica->plan, &replica->here.running);
    }
    return (struct ifl_requests){list->of, list->n};
}

const struct ifl_request *step_last_ranked(struct ifl_step *step, size_t at)
{
    struct replica *replica = replica_of(step);
    if (!may_look(replica, "ifl_last_ranked"))
        return NULL;
    const struct ranking *list = replica_ranking(replica, RANKED_RUNNING);
    const struct ifl_request *r = at < list->n ? list->room[list->first + at].r : NULL;
    replica_note_said(replica, &replica->fixed.modules[IFL_ORDER], at, r ? (int64_t)r->serial : -1);
    return r;
}

struct ifl_requests step_started(struct ifl_step *step)
{
    const struct snapshot *list = &replica_of(step)->plan.started;
    return (struct ifl_requests){list->of, list->n};
}

struct ifl_requests step_scheduled(struct ifl_step *step)
{
    struct replica *replica = replica_of(step);
    return plan_list_scheduled(&replica->plan, &replica->here.cohort);
}

bool step_took_part(struct ifl_step *step, const struct ifl_request *request)
{
    struct replica *replica = replica_of(step);
    const struct live_request *r = live(request);
    if (!step_knows(replica, request))
        return false;
    if (IFL_RARE(replica->plan.planning)) {
        step_breach(replica,
                    "it asks whether a request took part (ifl_took_part) before the plan is "
                    "made");
        return false;
    }
    if (request->state == IFL_RUNNING && r->pub.start_serial >= replica->plan.first_start)
        return true;
    return replica_computes(replica, r);
}

int64_t step_oldest_waiting_ns(struct ifl_step *step)
{
    struct replica *replica = replica_of(step);
    const struct live_request *r;
    uint64_t at[2] = {0, 0};
    int64_t oldest_ns = IFL_NEVER;
    if (!may_look(replica, "ifl_oldest_waiting_ns"))
        return IFL_NEVER;
    while ((r = waiting_next(&replica->here.waiting, at)))
        if (r->pub.arrival_ns < oldest_ns)
            oldest_ns = r->pub.arrival_ns;
    return oldest_ns;
}

struct ifl_hit step_hit(struct ifl_step *step, const struct ifl_request *r)
{
    struct replica *replica = replica_of(step);
    if (!step_knows(replica, r))
        return (struct ifl_hit){0};
    if (r->state != IFL_WAITING)
        return replica->moving.on ? (struct ifl_hit){0} : replica_hit(replica, live(r));
    replica_look_up(replica, live(r));
    struct ifl_hit hit = replica_hit(replica, live(r));
    hit.n_below = ifl_max(live(r)->n_below - hit.n_cached, 0);
    return hit;
}

/* A node is named by its last block, counted from 1. */
uint32_t step_above(struct ifl_step *step, uint32_t node)
{
    const struct kv_pool *kv = &replica_of(step)->kv.device;
    if (!kv->cached || node <= (uint32_t)kv->n_fresh || node > (uint32_t)kv->n_blocks)
        return 0;
    return (uint32_t)(kv_entry(&kv->cache, node - 1)->parent + 1);
}
