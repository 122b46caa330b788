/* Modules that name requests which are none of their replica: a copy of a record, or the record of
 * another replica. `which` says what is named, `does` by what call. */
#include <inflight/policy.h>

enum { N_TEXT = 32 };

struct strangers {
    char which[N_TEXT];
    char does[N_TEXT];
};

static const struct ifl_param params[] = {
    {"which", IFL_TEXT, offsetof(struct strangers, which), 0, 0, N_TEXT, "copy", "", "request"},
    {"does", IFL_TEXT, offsetof(struct strangers, does), 0, 0, N_TEXT, "", "", "call"},
};

static bool is(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

/* The first request that any instance saw, and that instance. */
static const struct ifl_request *first;
static const void *keeper;
static struct ifl_request copy;
static bool copied;

static void see(const void *self, const struct ifl_request *r)
{
    if (!first) {
        first = r;
        keeper = self;
    }
}

/* A request that this instance may not name; NULL: there is none yet. */
static const struct ifl_request *stranger(const struct strangers *p, const struct ifl_request *own)
{
    if (!is(p->which, "copy"))
        return keeper == p ? NULL : first;
    if (!copied && own)
        copy = *own;
    copied = copied || own;
    return copied ? &copy : NULL;
}

static void act(struct ifl_step *step, const char *does, const struct ifl_request *r)
{
    if (is(does, "hit"))
        ifl_hit(step, r);
    if (is(does, "need"))
        ifl_need(step, r, 100);
    if (is(does, "ask"))
        ifl_ask(step, r, 1);
    if (is(does, "start"))
        ifl_start(step, r, 1);
    if (is(does, "start_padded"))
        ifl_start_padded(step, r, 1, 1);
    if (is(does, "schedule"))
        ifl_schedule(step, r, 1, 0);
    if (is(does, "schedule_drafts"))
        ifl_schedule_drafts(step, r, 1, 1, 0);
    if (is(does, "make_room"))
        ifl_make_room(step, r);
    if (is(does, "preempt"))
        ifl_preempt(step, r, IFL_RECOMPUTE, IFL_FRONT);
    if (is(does, "reject"))
        ifl_reject(step, r);
    if (is(does, "refuse"))
        ifl_refuse(step, r, "it is a stranger");
    if (is(does, "keep"))
        ifl_keep(step, r, 1);
    if (is(does, "load"))
        ifl_load(step, r, 1, IFL_LOAD_APART);
    if (is(does, "drafts"))
        ifl_drafts(step, r);
    if (is(does, "counts"))
        (void)ifl_n_out(r);
}

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct strangers *p = self;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r = ifl_next(step, IFL_IN_WAITING, &cursor);
    const struct ifl_requests running = ifl_running(step);
    if (running.n > 0)
        see(self, running.of[0]);
    const struct ifl_request *of =
        view->step > 3 ? stranger(p, running.n > 0 ? running.of[0] : NULL) : NULL;
    if (of)
        act(step, p->does, of);
    if (!ifl_schedule_ready(step, 0))
        ifl_decode_one_by_one(step, 0);
    if (r && step->n_preempted == 0)
        ifl_start(step, r, ifl_todo(r));
}

static struct ifl_victim pick(const void *self, const struct ifl_view *view, struct ifl_step *step,
                              const struct ifl_request *needy)
{
    (void)view;
    (void)step;
    see(self, needy);
    const struct ifl_request *of = stranger(self, needy);
    return (struct ifl_victim){of ? of : needy, IFL_RECOMPUTE, IFL_FRONT};
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = of[i]->arrival_ns;
}

static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    see(self, r);
    const struct ifl_request *of = stranger(self, r);
    if (of)
        ifl_rerank(view, of);
}

static const struct ifl_batching_ops batching_ops = {plan};
static const struct ifl_preempt_ops preempt_ops = {.pick = pick};
static const struct ifl_order_ops order_ops = {.rank = rank};

#define MODULE(KIND, ...)                                                                          \
    {                                                                                              \
        .kind = KIND, .name = "strangers", .doc = "names requests of others", .params = params,    \
        .n_params = 2, .params_bytes = sizeof(struct strangers), __VA_ARGS__                       \
    }

static const struct ifl_policy batching = MODULE(IFL_BATCHING, .ops.batching = &batching_ops);
static const struct ifl_policy preempt = MODULE(IFL_PREEMPT, .ops.preempt = &preempt_ops);
static const struct ifl_policy order =
    MODULE(IFL_ORDER, .on_start = on_start, .ops.order = &order_ops);

IFL_POLICIES(&batching, &preempt, &order);
