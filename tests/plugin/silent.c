/* Orders without `keys`, with keys that change in every way that the contract allows; and modules
 * of FastServe without the optional functions that they have for speed. */
#include <inflight/policy.h>

enum by { BY_CLOCK, BY_VIEW, BY_COUNTS, BY_PROGRESS };

struct odd {
    int32_t by;
    bool asks; /* for the plan, of which it reads nothing: its keys may then depend on the step */
};

struct counted {
    uint64_t n;
};

static const struct ifl_param odd_params[] = {
    {"by", IFL_CHOICE, offsetof(struct odd, by), BY_CLOCK, 0, 0, "clock|view|counts|progress", "",
     "what keys depend on"},
    {"asks", IFL_BOOL, offsetof(struct odd, asks), 0, 0, 0, NULL, "", "asks for the plan"},
};

static int64_t key_of(const struct odd *p, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct counted *counted = ifl_state(p);
    const uint64_t own = r->serial * UINT64_C(2654435761);
    switch (p->by) {
    case BY_CLOCK:
        return (int64_t)((own + (uint64_t)view->now_ns / 3000000) % 11);
    case BY_VIEW:
        return (int64_t)((own + view->n_running + view->n_waiting +
                          (uint64_t)view->n_free_host_blocks) %
                         7);
    case BY_COUNTS:
        return (int64_t)((own + counted->n) % 13);
    default:
        return ifl_n_out(r) / 4 + 8 * (int64_t)ifl_n_now(r) + ifl_n_blocks(r) % 3;
    }
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    const struct odd *p = self;
    if (p->asks)
        (void)ifl_plan(view);
    for (size_t i = 0; i < n; i++)
        key[i] = key_of(p, view, of[i]);
}

static void count(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct counted *counted = ifl_state(self);
    (void)view;
    counted->n += 1 + r->serial % 3;
}

static void count_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    struct counted *counted = ifl_state(self);
    (void)view;
    counted->n += end->n_requests % 2;
}

/* ---- host-room, without for_all ---- */

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const bool swapped = r->state == IFL_SWAPPED;
    const int32_t hold = swapped ? ifl_n_slots(r) + n : ifl_n_tokens(r);
    const int32_t need = ifl_need(step, r, hold);
    (void)self;
    if (!swapped && view->n_free_host_blocks < 0.1 * view->limits->n_host_blocks)
        return ifl_admission(IFL_NO_HOST_BLOCKS, 0);
    return ifl_admission(need <= step->n_free_blocks ? IFL_YES : IFL_NO_BLOCKS, hold);
}

/* ---- proactive, which walks over all lists ---- */

static const struct ifl_request *last_paused(struct ifl_step *step)
{
    const struct ifl_request *last;
    for (size_t i = 0; (last = ifl_last_ranked(step, i)); i++)
        if (last->state == IFL_RUNNING && ifl_n_now(last) == 0)
            return last;
    return NULL;
}

static struct ifl_victim pick(const void *self, const struct ifl_view *view, struct ifl_step *step,
                              const struct ifl_request *needy)
{
    const struct ifl_request *last = last_paused(step);
    (void)self;
    (void)view;
    if (!last && needy->state != IFL_RUNNING)
        return (struct ifl_victim){NULL, IFL_KEEP, IFL_IN_ORDER};
    return (struct ifl_victim){last ? last : needy, IFL_SWAP, IFL_IN_ORDER};
}

static void ahead(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct ifl_request *r;
    struct ifl_cursor cursor = {{0}};
    int32_t n_seen = 0;
    (void)self;
    (void)view;
    while (step->n_free_blocks < 16 && step->n_requests > 0 && (r = last_paused(step)) &&
           step->n_free_host_blocks >= ifl_n_blocks(r))
        if (ifl_preempt(step, r, IFL_SWAP, IFL_IN_ORDER) != IFL_YES)
            return;
    while (step->n_swapped > 0 && step->n_preempted == 0 && n_seen < 16 &&
           step->n_free_blocks > 16 &&
           (r = ifl_next(step, IFL_IN_WAITING | IFL_IN_RUNNING | IFL_IN_SWAPPED, &cursor))) {
        n_seen += ifl_n_now(r) == 0;
        if (r->state == IFL_SWAPPED && step->n_free_blocks - r->n_host_blocks >= 16)
            (void)ifl_start(step, r, 0);
    }
}

static const struct ifl_order_ops odd_ops = {.rank = rank};
static const struct ifl_admit_ops bare_admit = {.ask = ask};
static const struct ifl_preempt_ops bare_preempt = {pick, ahead};

#define ODD(its_name, ...)                                                                         \
    {                                                                                              \
        .kind = IFL_ORDER, .name = its_name, .doc = "odd keys", .params = odd_params,              \
        .n_params = 2, .params_bytes = sizeof(struct odd), .state_bytes = sizeof(struct counted),  \
        .ops.order = &odd_ops, __VA_ARGS__                                                         \
    }

static const struct ifl_policy odd = ODD("odd", .on_step_end = count_end);
static const struct ifl_policy odd_in_plans =
    ODD("odd-in-plans", .on_step_end = count_end, .on_start = count, .on_undo = count,
        .on_preempt = count, .on_join = count);
static const struct ifl_policy room = {
    .kind = IFL_ADMIT, .name = "bare-host-room", .doc = "host-room", .ops.admit = &bare_admit};
static const struct ifl_policy swaps = {.kind = IFL_PREEMPT,
                                        .name = "bare-proactive",
                                        .doc = "proactive",
                                        .ops.preempt = &bare_preempt};

IFL_POLICIES(&odd, &odd_in_plans, &room, &swaps);
