/* Who is on the device, or in host memory, in rank order, from one plan to the next: the last one
 * first, for those at the best end come and go most.
 *
 * A plan sees such a list as it was when the plan first asked for it. Whoever comes or goes is
 * noted from then on, and so is whoever may have another key; they find their places when the next
 * plan asks. So a plan costs what has changed since the last one, not all who stand there; but
 * where much has changed, or the order ranks anew for each plan, everyone is asked again. */
#include <gsl/gsl_heapsort.h>
#include <string.h>

#include "replica.h"
#include "step_lists.h"

struct ranked_request {
    int64_t key;
    const struct ifl_request *r;
};

static struct standing *standing(const struct ranking *list, const struct ifl_request *r)
{
    return &live(r)->standing[list->which];
}

/* ---- a sorted list ---- */

static int last_first(const void *a, const void *b)
{
    const struct ranked_request *x = a, *y = b;
    return replica_ranks_before(y->r, y->key, x->r, x->key) ? -1 : 1;
}

static bool stands_before(const struct ranking *list, const struct ifl_request *a,
                          const struct ifl_request *b)
{
    return replica_ranks_before(b, standing(list, b)->key, a, standing(list, a)->key);
}

/* Where r belongs among the first n. */
static size_t place_of(const struct ranking *list, size_t n, const struct ifl_request *r)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (stands_before(list, r, list->of[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void append(struct ranking *list, const struct ifl_request *r)
{
    list->of[list->n++] = r;
    standing(list, r)->stands = list->kept;
}

static void put_in(struct ranking *list, const struct ifl_request *r, int64_t key)
{
    standing(list, r)->key = key;
    const size_t at = place_of(list, list->n, r);
    memmove(&list->of[at + 1], &list->of[at], (list->n - at) * sizeof *list->of);
    list->of[at] = r;
    list->n++;
    standing(list, r)->stands = true;
}

/* By the key that it was put in with. */
static void take_out(struct ranking *list, const struct ifl_request *r)
{
    const size_t behind = place_of(list, list->n, r);
    ifl_require(behind > 0 && list->of[behind - 1] == r);
    memmove(&list->of[behind - 1], &list->of[behind], (list->n - behind) * sizeof *list->of);
    list->n--;
    standing(list, r)->stands = false;
}

/* Ranks change little from one plan to the next. False if they did: too many had to move. */
static bool insert_all(struct ranking *list)
{
    const struct ifl_request **of = list->of;
    size_t n_moves = 0;
    for (size_t i = 1; i < list->n && n_moves <= 64 * list->n; i++) {
        const struct ifl_request *r = of[i];
        if (stands_before(list, of[i - 1], r))
            continue;
        const size_t at = place_of(list, i - 1, r);
        memmove(&of[at + 1], &of[at], (i - at) * sizeof *of);
        of[at] = r;
        n_moves += i - at;
    }
    return n_moves <= 64 * list->n;
}

/* In place: qsort may allocate, and ranks have no ties that would need a stable sort. */
static void sort(struct replica *replica, struct ranking *list)
{
    struct ranked_request *ranking = replica->ranking;
    for (size_t i = 0; i < list->n; i++)
        ranking[i] = (struct ranked_request){standing(list, list->of[i])->key, list->of[i]};
    gsl_heapsort(ranking, list->n, sizeof *ranking, last_first);
    for (size_t i = 0; i < list->n; i++)
        list->of[i] = ranking[i].r;
}

/* ---- who is noted ---- */

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
        standing(list, list->of[--list->n])->stands = false;
    list->kept = false;
}

/* A list that nobody asks for any more is dropped, before it costs more than it saves. */
void replica_note(struct ranking *list, struct live_request *r)
{
    struct standing *own = &r->standing[list->which];
    if (own->noted_at > 0)
        return;
    if (!list->taken && list->n_noted > list->n) {
        drop(list);
        return;
    }
    list->noted[list->n_noted++] = r;
    own->noted_at = list->n_noted;
}

void replica_forget(struct ranking *list, struct live_request *r)
{
    if (r->standing[list->which].noted_at > 0)
        strike(list, r);
    if (r->standing[list->which].stands)
        take_out(list, &r->pub);
}

/* ---- who belongs ---- */

static bool started_now(const struct replica *replica, const struct live_request *r)
{
    return r->pub.state == IFL_RUNNING && r->start_seq >= replica->first_start;
}

static bool belongs(const struct replica *replica, const struct ranking *list,
                    const struct live_request *r)
{
    if (list->which == RANKED_SWAPPED)
        return r->pub.state == IFL_SWAPPED;
    return r->pub.state == IFL_RUNNING && !started_now(replica, r) &&
           (list->which == RANKED_RUNNING || !ifl_decodes(&r->pub));
}

static void collect_running(struct replica *replica, struct ranking *list)
{
    FOR_EACH_LIVE (r, &replica->running, ON_DEVICE)
        if (belongs(replica, list, r))
            append(list, &r->pub);
        else
            replica_note_rank(replica, list->which, r);
}

/* Prompts come and go too fast to keep their order, and where nobody is there is none to keep. */
static void collect(struct replica *replica, struct ranking *list)
{
    drop(list);
    if (list->which == RANKED_PREFILL)
        FOR_EACH_LIVE (r, &replica->apart, AMONG_PEERS)
            if (belongs(replica, list, r))
                append(list, &r->pub);
    if (list->which == RANKED_RUNNING && (list->kept = replica->running.n > 0))
        collect_running(replica, list);
    if (list->which == RANKED_SWAPPED && (list->kept = replica->n_swapped > 0))
        for (size_t i = 0; i < replica->n_swapped; i++)
            append(list, &replica->swapped[i]->pub);
}

/* ---- a plan asks ---- */

/* Takes out who left. Who came, or may have another key: how many, in `asked`. */
static size_t read_notes(struct replica *replica, struct ranking *list)
{
    size_t n = 0, n_later = 0;
    for (size_t i = 0; i < list->n_noted; i++) {
        struct live_request *r = list->noted[i];
        struct standing *own = &r->standing[list->which];
        const bool later = list->which == RANKED_RUNNING && started_now(replica, r);
        own->noted_at = later ? n_later + 1 : 0;
        if (later)
            list->noted[n_later++] = r;
        if (belongs(replica, list, r))
            replica->asked[n++] = &r->pub;
        else if (own->stands)
            take_out(list, &r->pub);
    }
    list->n_noted = n_later;
    return n;
}

/* Whoever runs has got tokens since. */
static size_t add_members(struct replica *replica, const struct ranking *list, size_t n)
{
    if (list->which == RANKED_RUNNING)
        FOR_EACH_LIVE (r, &replica->cohort.members, AMONG_PEERS)
            if (belongs(replica, list, r))
                replica->asked[n++] = &r->pub;
    return n;
}

static void ask(struct replica *replica, const struct ifl_request *const *of, size_t n)
{
    const struct module *order = &replica->modules[IFL_ORDER];
    if (n > 0)
        order->policy->ops.order->rank(order->self, &replica->view, of, n, replica->keys);
}

static void move_asked(struct replica *replica, struct ranking *list, size_t n)
{
    ask(replica, replica->asked, n);
    for (size_t i = 0; i < n; i++) {
        const struct ifl_request *r = replica->asked[i];
        const struct standing *own = standing(list, r);
        if (own->stands && own->key == replica->keys[i])
            continue;
        if (own->stands)
            take_out(list, r);
        put_in(list, r, replica->keys[i]);
    }
}

static void rank_everyone(struct replica *replica, struct ranking *list, size_t n_asked)
{
    for (size_t i = 0; i < n_asked; i++)
        if (!standing(list, replica->asked[i])->stands)
            append(list, replica->asked[i]);
    if (list->n < 2 && !list->kept)
        return;
    ask(replica, list->of, list->n);
    for (size_t i = 0; i < list->n; i++)
        standing(list, list->of[i])->key = replica->keys[i];
    if (!insert_all(list))
        sort(replica, list);
}

void replica_take_ranking(struct replica *replica, struct ranking *list)
{
    bool few = list->kept && !replica->ranks_move;
    list->taken = true;
    if (list->which == RANKED_RUNNING)
        step_show_members(replica);
    if (!list->kept)
        collect(replica, list);
    if (!list->kept && list->n == 0)
        return;
    const size_t n = add_members(replica, list, read_notes(replica, list));
    few &= n < list->n / 4;
    (few ? move_asked : rank_everyone)(replica, list, n);
    if (list->n > 1)
        replica->step.asked |= 1u << IFL_ORDER;
}
