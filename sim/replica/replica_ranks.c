/* Ranked lists of requests on the device and in host memory, kept from one plan to the next. A list
 * is stored with the last request first. Most requests join and leave at the end with the best
 * rank, and most of the others at the opposite end; a change moves only the entries on its shorter
 * side.
 *
 * A plan sees a list as it was when the plan first asked for it. Requests that join, leave or may
 * get another key after that are noted, and are put in their places when the next plan asks. The
 * cost of a plan is therefore proportional to what has changed since the last plan, not to the
 * length of the list. If much has changed, or if the keys of the order change with each plan, all
 * keys are computed again. */
#include "replica/replica_ranks.h"

#include <gsl/gsl_heapsort.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/minmax.h"
#include "replica/replica_parts.h"
#include "replica/step_builder.h"
#include "replica/step_lists.h"

/* ---- creating ---- */

void rankings_create(struct rankings *ranks)
{
    for (int which = 0; which < N_RANKED; which++)
        ranks->by_rank[which].which = (enum ranked_list)which;
}

static int reserve_list(struct ranking *list, size_t n)
{
    if (array_grow(&list->room, list->first + list->n, n, sizeof *list->room) < 0 ||
        array_grow(&list->noted, list->n_noted, n, sizeof *list->noted) < 0)
        return IFL_E_NOMEM;
    list->cap = n;
    return 0;
}

int rankings_reserve(struct rankings *ranks, size_t n)
{
    if (array_grow(&ranks->keys, 0, n, sizeof *ranks->keys) < 0 ||
        array_grow(&ranks->asked, 0, n, sizeof *ranks->asked) < 0)
        return IFL_E_NOMEM;
    int rc = 0;
    for (int which = 0; which < N_RANKED && rc == 0; which++)
        rc = reserve_list(&ranks->by_rank[which], n);
    return rc;
}

void rankings_destroy(struct rankings *ranks)
{
    for (int which = 0; which < N_RANKED; which++) {
        free(ranks->by_rank[which].room);
        free(ranks->by_rank[which].noted);
    }
    free(ranks->asked);
    free(ranks->keys);
}

/* ---- keys of waiting requests ---- */

/* Each time that the order is asked, it sees a request that waits at the back as if it had arrived
 * when it was sent there. */
static void show_back(struct live_request *r)
{
    r->own_arrival_ns = r->pub.arrival_ns;
    r->pub.arrival_ns = r->pub.queued_ns;
}

static void show_own(struct live_request *r)
{
    r->pub.arrival_ns = r->own_arrival_ns;
}

static bool waits_at_back(const struct ifl_request *r)
{
    return r->state == IFL_WAITING && r->queued_serial != r->serial;
}

IFL_COLD static void rank_checked(struct replica *replica, const struct module *order,
                                  const struct ifl_request *const *of, size_t n, int64_t *key)
{
    static const int64_t unset = INT64_C(-0x5eed0f0dd0c0ffee); /* no order has it by chance */
    const uint64_t print = replica_print(replica, of, n);
    for (size_t i = 0; i < n; i++)
        key[i] = unset;
    order->policy->ops.order->rank(order->self, &replica->view, of, n, key);
    replica_compare(replica, order, print, of, n);
    for (size_t i = 0; i < n; i++)
        if (key[i] == unset)
            step_breach_by(replica, order->policy, "it leaves a key of a request unset");
}

static void rank(struct replica *replica, const struct ifl_request *const *of, size_t n,
                 int64_t *key)
{
    const struct module *order = &replica->fixed.modules[IFL_ORDER];
    const struct ifl_policy *before = plan_call(&replica->plan, order->policy);
    plan_set_ranking(&replica->plan, true);
    if (IFL_RARE(replica->said.checks))
        rank_checked(replica, order, of, n, key);
    else
        order->policy->ops.order->rank(order->self, &replica->view, of, n, key);
    plan_set_ranking(&replica->plan, false);
    plan_return(&replica->plan, before);
}

int64_t replica_rank(struct replica *replica, struct live_request *r)
{
    const struct ifl_request *const request = &r->pub;
    const bool at_back = waits_at_back(&r->pub);
    int64_t key;
    if (IFL_RARE(at_back))
        show_back(r);
    rank(replica, &request, 1, &key);
    if (IFL_RARE(at_back))
        show_own(r);
    return key;
}

/* The records of a long queue are out of the caches: each is looked at only if it has to be. */
static void rank_waiting(void *context, const struct ifl_request *const *of, size_t n, int64_t *key)
{
    struct replica *replica = context;
    const size_t n_looked_up = replica->kv.device.cached ? n : 0;
    const size_t n_at_back = here_sent_back(&replica->here) ? n : 0;
    for (size_t i = 0; i < n_looked_up; i++)
        replica_look_up(replica, live(of[i]));
    for (size_t i = 0; i < n_at_back; i++)
        if (waits_at_back(of[i]))
            show_back(live(of[i]));
    rank(replica, of, n, key);
    for (size_t i = 0; i < n_at_back; i++)
        if (waits_at_back(of[i]))
            show_own(live(of[i]));
}

IFL_APART void replica_rank_anew(struct replica *replica)
{
    replica->ranks.ranks_stale = false;
    waiting_rekey(&replica->here.waiting, rank_waiting, replica);
}

static struct standing *standing(const struct ranking *list, const struct ifl_request *r)
{
    return &live(r)->standing[list->which];
}

static struct ranked_request *of(const struct ranking *list)
{
    return list->room + list->first;
}

/* ---- a sorted list ---- */

static bool goes_before(const struct ranked_request *a, const struct ranked_request *b)
{
    return replica_ranks_before(a->r, a->key, b->r, b->key);
}

static int last_first(const void *a, const void *b)
{
    return goes_before(b, a) ? -1 : 1;
}

/* Index at which `one` belongs among the first n. */
static size_t place_of(const struct ranking *list, size_t n, struct ranked_request one)
{
    const struct ranked_request *from = of(list);
    for (; n > 1; n -= n / 2)
        from += goes_before(&one, &from[n / 2 - 1]) ? n / 2 : 0;
    from += n > 0 && goes_before(&one, from);
    return (size_t)(from - of(list));
}

static void shift(struct ranking *list, size_t to, size_t from, size_t n)
{
    memmove(of(list) + to, of(list) + from, n * sizeof *of(list));
}

static void set(struct ranking *list, size_t at, struct ranked_request one)
{
    of(list)[at] = one;
    standing(list, one.r)->key = one.key;
}

/* Moves the entries to the middle of the room, which is twice what the list can ever take. */
static void centre(struct ranking *list)
{
    const size_t first = (list->cap - list->n) / 2;
    memmove(list->room + first, of(list), list->n * sizeof *list->room);
    list->first = first;
}

static void append(struct ranking *list, const struct ifl_request *r)
{
    if (list->first + list->n == list->cap)
        centre(list);
    of(list)[list->n++].r = r;
    standing(list, r)->stands = list->kept;
}

static void open_gap(struct ranking *list, size_t at)
{
    const size_t n_behind = list->n - at;
    if (list->first == 0 || list->first + list->n == list->cap)
        centre(list);
    list->n++;
    if (n_behind <= at) {
        shift(list, at + 1, at, n_behind);
    } else {
        list->first--;
        shift(list, 0, 1, at);
    }
}

static void close_gap(struct ranking *list, size_t at)
{
    const size_t n_behind = --list->n - at;
    if (n_behind <= at) {
        shift(list, at, at + 1, n_behind);
    } else {
        shift(list, 1, 0, at);
        list->first++;
    }
}

static void put_in(struct ranking *list, struct ranked_request one)
{
    const size_t at = place_of(list, list->n, one);
    open_gap(list, at);
    set(list, at, one);
    standing(list, one.r)->stands = true;
}

/* Index of r. Most requests that move are among the best or at the other end, so both are tried
 * first; the others are found by the key that they were put in with. */
static size_t find(const struct ranking *list, const struct ifl_request *r)
{
    const size_t n_best = ifl_min(list->n, 16);
    const struct ranked_request *end = of(list) + list->n;
    if (list->n > 0 && of(list)[0].r == r)
        return 0;
    for (size_t i = 1; i <= n_best; i++)
        if (end[-(ptrdiff_t)i].r == r)
            return list->n - i;
    const size_t at = place_of(list, list->n, (struct ranked_request){standing(list, r)->key, r});
    ifl_require(at < list->n && of(list)[at].r == r);
    return at;
}

static void take_out(struct ranking *list, const struct ifl_request *r)
{
    close_gap(list, find(list, r));
    standing(list, r)->stands = false;
}

/* Moves an entry to where its new key puts it. Only the entries in between make way. */
static void move(struct ranking *list, struct ranked_request one)
{
    const size_t from = find(list, one.r), place = place_of(list, list->n, one);
    const size_t to = place > from ? place - 1 : place;
    if (to > from)
        shift(list, from, from + 1, to - from);
    else
        shift(list, to + 1, to, from - to);
    set(list, to, one);
}

/* Insertion sort: ranks change little from one plan to the next. False if they did change, and too
 * many entries had to move; the list is not sorted then. */
static bool insert_all(struct ranking *list)
{
    size_t n_moves = 0;
    for (size_t i = 1; i < list->n && n_moves <= 64 * list->n; i++) {
        const struct ranked_request one = of(list)[i];
        if (!goes_before(&of(list)[i - 1], &one))
            continue;
        const size_t at = place_of(list, i - 1, one);
        shift(list, at + 1, at, i - at);
        of(list)[at] = one;
        n_moves += i - at;
    }
    return n_moves <= 64 * list->n;
}

/* gsl_heapsort works in place; qsort may allocate. Ranks have no ties that would need a stable
 * sort. */
static void sort(struct ranking *list)
{
    if (!insert_all(list))
        gsl_heapsort(of(list), list->n, sizeof *of(list), last_first);
}

/* ---- notes ---- */

static void strike(struct ranking *list, struct live_request *r)
{
    struct standing *own = &r->standing[list->which];
    struct live_request *last = list->noted[--list->n_noted];
    list->noted[own->noted_at - 1] = last;
    last->standing[list->which].noted_at = own->noted_at;
    own->noted_at = 0;
}

static void drop(struct ranking *list)
{
    while (list->n_noted > 0)
        strike(list, list->noted[list->n_noted - 1]);
    while (list->n > 0)
        standing(list, of(list)[--list->n].r)->stands = false;
    list->first = 0;
    list->kept = false;
}

/* A list that plans no longer ask for is dropped once it has more notes than entries: it would cost
 * more than it saves. */
IFL_APART void replica_note(struct ranking *list, struct live_request *r)
{
    ifl_assert(list->kept);
    struct standing *own = &r->standing[list->which];
    if (own->noted_at > 0)
        return;
    if (!list->taken && list->n_noted > list->n) {
        drop(list);
        return;
    }
    list->noted[list->n_noted++] = r;
    own->noted_at = (uint32_t)list->n_noted;
}

IFL_APART void replica_forget(struct ranking *list, struct live_request *r)
{
    ifl_assert(list->kept);
    if (r->standing[list->which].noted_at > 0)
        strike(list, r);
    if (r->standing[list->which].stands)
        take_out(list, &r->pub);
}

/* ---- requests that belong to a list ---- */

static bool started_now(const struct replica *replica, const struct live_request *r)
{
    return r->pub.state == IFL_RUNNING && r->pub.start_serial >= replica->plan.first_start;
}

static bool belongs(const struct replica *replica, const struct ranking *list,
                    const struct live_request *r)
{
    if (list->which == RANKED_SWAPPED)
        return r->pub.state == IFL_SWAPPED;
    return r->pub.state == IFL_RUNNING && !started_now(replica, r) &&
           plan_shows(&replica->plan, r) &&
           (list->which == RANKED_RUNNING || !request_decodes(&r->pub));
}

static void collect_running(struct replica *replica, struct ranking *list)
{
    FOR_EACH_LIVE (r, &replica->here.running, ON_DEVICE)
        if (belongs(replica, list, r))
            append(list, &r->pub);
        else
            replica_note_rank(replica, list->which, r);
}

/* Fills the list anew. It is kept for the next plan unless it is empty, or holds prompts, which
 * come and go too fast. */
static void collect(struct replica *replica, struct ranking *list)
{
    drop(list);
    if (list->which == RANKED_PREFILL)
        FOR_EACH_LIVE (r, &replica->here.apart, AMONG_PEERS)
            if (belongs(replica, list, r))
                append(list, &r->pub);
    if (list->which == RANKED_RUNNING && replica->here.running.n > 0) {
        list->kept = !replica_overlaps(replica);
        collect_running(replica, list);
    }
    if (list->which == RANKED_SWAPPED && (list->kept = replica->here.n_swapped > 0))
        for (size_t i = 0; i < replica->here.n_swapped; i++)
            append(list, &replica->here.swapped[i]->pub);
}

/* ---- a plan asks ---- */

/* All keys are asked anew before the next look. */
static void let_keys_go(struct rankings *ranks)
{
    ranks->ranks_stale = true;
    for (int which = 0; which < N_RANKED; which++)
        ranks->by_rank[which].stale = true;
}

IFL_HOT void replica_hear_keys(struct replica *replica)
{
    const struct module *order = &replica->fixed.modules[IFL_ORDER];
    const struct ifl_order_ops *ops = order->policy->ops.order;
    const struct ifl_policy *before = plan_call(&replica->plan, order->policy);
    plan_set_ranking(&replica->plan, true);
    replica->ranks.order_keys = ops->keys ? ops->keys(order->self, &replica->view) : IFL_KEYS_MOVE;
    plan_set_ranking(&replica->plan, false);
    plan_return(&replica->plan, before);
    if (IFL_RARE(replica->ranks.order_keys > IFL_KEYS_NAMED)) {
        step_breach_answer(replica, order->policy, (int)replica->ranks.order_keys,
                           "to when its keys change, expected one of enum ifl_keys");
        replica->ranks.order_keys = IFL_KEYS_MOVE;
    }
}

IFL_HOT void replica_ask_keys(struct replica *replica)
{
    ifl_assert(!replica->ranks.keys_asked);
    const bool moved = replica_keys_move(replica);
    replica->ranks.keys_asked = true;
    replica->ranks.hook_ran = false;
    replica_hear_keys(replica);
    replica->ranks.keys_change = moved || replica_keys_move(replica);
    if (replica->ranks.keys_change)
        let_keys_go(&replica->ranks);
    waiting_set_moves(&replica->here.waiting, replica->ranks.order_keys == IFL_KEYS_MOVE);
    replica_check_keys(replica);
}

/* Takes out requests that have left. Requests that came, or may have another key, go to `asked`;
 * returns how many. */
static size_t read_notes(struct replica *replica, struct ranking *list)
{
    size_t n = 0, n_later = 0;
    for (size_t i = 0; i < list->n_noted; i++) {
        struct live_request *r = list->noted[i];
        struct standing *own = &r->standing[list->which];
        const bool later = list->which == RANKED_RUNNING && started_now(replica, r);
        own->noted_at = later ? (uint32_t)n_later + 1 : 0;
        if (later)
            list->noted[n_later++] = r;
        if (belongs(replica, list, r))
            replica->ranks.asked[n++] = &r->pub;
        else if (own->stands)
            take_out(list, &r->pub);
    }
    list->n_noted = n_later;
    return n;
}

/* Members have got tokens since the last plan, and many orders rank by these, so that their keys
 * are asked for, too. */
static size_t add_members(struct replica *replica, const struct ranking *list, size_t n)
{
    if (list->which == RANKED_RUNNING && replica->ranks.order_keys != IFL_KEYS_NAMED)
        FOR_EACH_LIVE (r, &replica->here.cohort.members, AMONG_PEERS)
            if (belongs(replica, list, r))
                replica->ranks.asked[n++] = &r->pub;
    return n;
}

/* Asks for the keys of the first n requests of `asked`. */
static void ask(struct replica *replica, size_t n)
{
    if (n > 0)
        rank(replica, replica->ranks.asked, n, replica->ranks.keys);
}

static void move_asked(struct replica *replica, struct ranking *list, size_t n)
{
    ask(replica, n);
    for (size_t i = 0; i < n; i++) {
        const struct ranked_request one = {replica->ranks.keys[i], replica->ranks.asked[i]};
        const struct standing *own = standing(list, one.r);
        if (!own->stands)
            put_in(list, one);
        else if (own->key != one.key)
            move(list, one);
    }
}

/* The first n_ranked entries are in the order of their former keys. Most keys are the same again:
 * then neither entries nor records are written to. */
static void rank_all(struct replica *replica, struct ranking *list, size_t n_ranked, size_t n_asked)
{
    const int64_t *keys = replica->ranks.keys;
    for (size_t i = 0; i < n_asked; i++)
        if (!standing(list, replica->ranks.asked[i])->stands)
            append(list, replica->ranks.asked[i]);
    bool in_order = list->n == n_ranked;
    for (size_t i = 0; i < list->n; i++)
        replica->ranks.asked[i] = of(list)[i].r;
    ask(replica, list->n);
    for (size_t i = 0; i < list->n; i++)
        if (i >= n_ranked || of(list)[i].key != keys[i]) {
            set(list, i, (struct ranked_request){keys[i], replica->ranks.asked[i]});
            in_order = false;
        }
    if (!in_order)
        sort(list);
}

IFL_APART void replica_each_standing(struct replica *replica, const struct ranking *list,
                                     key_fn *see)
{
    for (size_t i = 0; list->kept && !list->stale && i < list->n; i++) {
        struct live_request *r = live(of(list)[i].r);
        const struct standing *own = &r->standing[list->which];
        const bool asked_anyway = r->in_cohort && replica->ranks.order_keys != IFL_KEYS_NAMED;
        if (belongs(replica, list, r) && own->stands && own->noted_at == 0 && !asked_anyway)
            see(replica, r, own->key);
    }
}

void replica_take_ranking(struct replica *replica, struct ranking *list)
{
    ifl_assert(!list->taken);
    list->taken = replica->ranks.asked_for_lists = true;
    replica_settle_keys(replica);
    const bool was_kept = list->kept;
    bool few = was_kept && !list->stale;
    list->stale = false;
    if (list->which == RANKED_RUNNING)
        step_show_members(replica);
    if (!list->kept)
        collect(replica, list);
    if (!list->kept && list->n == 0)
        return;
    const size_t n = add_members(replica, list, read_notes(replica, list));
    few &= n < list->n / 4;
    if (few)
        move_asked(replica, list, n);
    else
        rank_all(replica, list, was_kept ? list->n : 0, n);
    if (list->n > 1)
        plan_ask(&replica->plan, IFL_ORDER);
}
