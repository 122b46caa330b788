/* What a policy sees of the lists while it plans: snapshots in order of start or of rank, taken
 * when they are first asked for, and the waiting queue as it is. */
#include "step_lists.h"

#include <gsl/gsl_heapsort.h>
#include <string.h>

struct ranked_request {
    int64_t key;
    const struct ifl_request *r;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked_request *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->r->arrival_ns != y->r->arrival_ns)
        return x->r->arrival_ns < y->r->arrival_ns ? -1 : 1;
    return x->r->serial < y->r->serial ? -1 : 1;
}

/* ---- sorting ---- */

/* Whoever was on the device when it was ranked last stands where he stood then, newcomers behind.
 */
static void recall_order(struct replica *replica, const struct snapshot *list)
{
    struct ranked_request *of = replica->ranking;
    size_t n_places = replica->n_ranked_last, n = 0;
    memset(of, 0, n_places * sizeof *of);
    for (size_t i = 0; i < list->n; i++) {
        const struct live_request *r = live(list->of[i]);
        const bool known = r->ranked_start == r->start_seq + 1;
        of[known ? r->ranked_at : n_places++] =
            (struct ranked_request){replica->keys[i], list->of[i]};
    }
    for (size_t i = 0; i < n_places; i++)
        if (of[i].r)
            of[n++] = of[i];
}

/* The swapped ones are kept in the order itself. */
static void note_order(struct replica *replica, enum ranked_list which, size_t n)
{
    for (size_t i = 0; i < n && which == RANKED_SWAPPED; i++)
        replica->swapped[i] = live(replica->ranking[i].r);
    if (which != RANKED_RUNNING)
        return;
    replica->n_ranked_last = n;
    for (size_t i = 0; i < n; i++) {
        struct live_request *r = live(replica->ranking[i].r);
        r->ranked_start = r->start_seq + 1;
        r->ranked_at = i;
    }
}

/* Where `one` belongs among the first n, which are sorted. */
static size_t place_of(const struct ranked_request *of, size_t n, const struct ranked_request *one)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (by_rank(one, &of[middle]) < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Ranks change little from one plan to the next. False if they did: too many had to move. */
static bool insert_all(struct ranked_request *of, size_t n)
{
    size_t n_moves = 0;
    for (size_t i = 1; i < n && n_moves <= 64 * n; i++) {
        const struct ranked_request one = of[i];
        if (by_rank(&of[i - 1], &one) < 0)
            continue;
        const size_t at = place_of(of, i - 1, &one);
        memmove(&of[at + 1], &of[at], (i - at) * sizeof *of);
        of[at] = one;
        n_moves += i - at;
    }
    return n_moves <= 64 * n;
}

/* Sorted in place: qsort may allocate, and ranks have no ties that would need a stable sort. */
static void sort_by_rank(struct replica *replica, enum ranked_list which)
{
    const struct module *order = &replica->modules[IFL_ORDER];
    struct snapshot *list = &replica->by_rank[which];
    struct ranked_request *ranking = replica->ranking;
    if (list->n < 2)
        return;
    replica->step.asked |= 1u << IFL_ORDER;
    order->policy->ops.order->rank(order->self, &replica->view, list->of, list->n, replica->keys);
    for (size_t i = 0; i < list->n && which != RANKED_RUNNING; i++)
        ranking[i] = (struct ranked_request){replica->keys[i], list->of[i]};
    if (which == RANKED_RUNNING)
        recall_order(replica, list);
    if (!insert_all(ranking, list->n))
        gsl_heapsort(ranking, list->n, sizeof *ranking, by_rank);
    note_order(replica, which, list->n);
    for (size_t i = 0; i < list->n; i++)
        list->of[i] = ranking[i].r;
}

/* ---- snapshots ---- */

void step_show(struct replica *replica, struct live_request *r)
{
    if (!r->in_cohort)
        return;
    cohort_sync(&replica->cohort, r);
    if (replica->ready_all && replica->view.asked) { /* not for hooks: the plan is settled */
        r->pub.n_now = 1;
        replica->shown = true;
    }
}

static void take_running(struct replica *replica, struct snapshot *list)
{
    for (struct live_request *r = replica->running.head; r; r = r->next) {
        if (r->start_seq >= replica->first_start)
            break;
        step_show(replica, r);
        list->of[list->n++] = &r->pub;
    }
}

static void take_prefill(struct replica *replica, struct snapshot *list)
{
    for (size_t i = 0; i < replica->n_apart; i++) {
        const struct live_request *r = replica->apart[i];
        if (r->start_seq < replica->first_start && !ifl_decodes(&r->pub))
            list->of[list->n++] = &r->pub;
    }
}

static void take_swapped(struct replica *replica, struct snapshot *list)
{
    for (size_t i = 0; i < replica->n_swapped; i++)
        list->of[list->n++] = &replica->swapped[i]->pub;
}

static const struct snapshot *ranked_list(struct replica *replica, enum ranked_list which)
{
    static void (*const take[])(struct replica *, struct snapshot *) = {
        [RANKED_RUNNING] = take_running,
        [RANKED_SWAPPED] = take_swapped,
        [RANKED_PREFILL] = take_prefill,
    };
    struct snapshot *list = &replica->by_rank[which];
    if (!list->taken) {
        list->taken = true;
        list->n = 0;
        take[which](replica, list);
        sort_by_rank(replica, which);
    }
    return list;
}

/* The next of a ranked list that is still in `state`, without moving past it. */
static const struct ifl_request *peek(struct replica *replica, enum ranked_list which,
                                      enum ifl_state state, uint64_t *at)
{
    const struct snapshot *list = ranked_list(replica, which);
    while (*at < list->n && list->of[*at]->state != state)
        ++*at;
    return *at < list->n ? list->of[*at] : NULL;
}

static bool ranks_before(struct replica *replica, const struct ifl_request *a,
                         const struct ifl_request *b)
{
    replica->step.asked |= 1u << IFL_ORDER;
    const struct ranked_request x = {replica_rank(replica, live(a)), a};
    const struct ranked_request y = {replica_rank(replica, live(b)), b};
    return by_rank(&x, &y) < 0;
}

/* Cursor: at[0] and at[1] belong to the waiting queue, at[2] to the running or prefilling ones,
 * at[3] to the swapped ones. */
const struct ifl_request *step_next(struct ifl_step *step, unsigned lists,
                                    struct ifl_cursor *cursor)
{
    struct replica *replica = replica_of(step);
    const struct ifl_request *best = NULL;
    int from = -1;
    if (replica->broken)
        return NULL;
    if (lists & (IFL_IN_RUNNING | IFL_IN_PREFILL)) {
        best = peek(replica, lists & IFL_IN_RUNNING ? RANKED_RUNNING : RANKED_PREFILL, IFL_RUNNING,
                    &cursor->at[2]);
        from = 2;
    }
    if (lists & IFL_IN_SWAPPED) {
        const struct ifl_request *r = peek(replica, RANKED_SWAPPED, IFL_SWAPPED, &cursor->at[3]);
        if (r && (!best || ranks_before(replica, r, best))) {
            best = r;
            from = 3;
        }
    }
    if (lists & IFL_IN_WAITING) {
        if (replica->ranks_stale)
            replica_rank_anew(replica);
        waiting_renew(&replica->waiting, cursor->at);
        uint64_t at[2] = {cursor->at[0], cursor->at[1]};
        struct live_request *r = waiting_next(&replica->waiting, at);
        if (r)
            replica_look_up(replica, r);
        const bool pushed_front = r && at[1] == cursor->at[1];
        if (r)
            step->asked |= 1u << IFL_ORDER;
        if (r && (!best || pushed_front || ranks_before(replica, &r->pub, best))) {
            memcpy(cursor->at, at, sizeof at);
            return &r->pub;
        }
    }
    if (best)
        cursor->at[from]++;
    return best;
}

struct ifl_requests step_running(struct ifl_step *step)
{
    struct replica *replica = replica_of(step);
    struct snapshot *list = &replica->by_start;
    if (!list->taken) {
        list->taken = true;
        list->n = 0;
        take_running(replica, list);
    }
    return (struct ifl_requests){list->of, list->n};
}

struct ifl_requests step_ranked(struct ifl_step *step)
{
    const struct snapshot *list = ranked_list(replica_of(step), RANKED_RUNNING);
    return (struct ifl_requests){list->of, list->n};
}

struct ifl_requests step_started(struct ifl_step *step)
{
    const struct snapshot *list = &replica_of(step)->started;
    return (struct ifl_requests){list->of, list->n};
}

int64_t step_oldest_waiting_ns(struct ifl_step *step)
{
    struct replica *replica = replica_of(step);
    const struct live_request *r;
    uint64_t at[2] = {0, 0};
    int64_t oldest_ns = IFL_NEVER;
    while ((r = waiting_next(&replica->waiting, at)))
        if (r->pub.arrival_ns < oldest_ns)
            oldest_ns = r->pub.arrival_ns;
    return oldest_ns;
}
