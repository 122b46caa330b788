#include "config/guarded_policy.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/guard.h"
#include "replica/module.h"

enum call {
    INIT,
    FINISH,
    ON_JOIN,
    ON_START,
    ON_UNDO,
    ON_PREEMPT,
    ON_STEP_START,
    ON_STEP_END,
    ON_LEAVE,
    STEADY,
    PLAN,
    RANK,
    KEYS,
    ASK,
    ROOM,
    PICK,
    AHEAD,
    KEY,
    PICK_DECODE,
    ON_SENT,
    ON_FIRST_TOKEN,
    ON_END,
    N_CALLS
};

static const char *const call_names[N_CALLS] = {
    "init",          "finish",      "on_join",        "on_start", "on_undo", "on_preempt",
    "on_step_start", "on_step_end", "on_leave",       "steady",   "plan",    "rank",
    "keys",          "ask",         "room",           "pick",     "ahead",   "key",
    "pick_decode",   "on_sent",     "on_first_token", "on_end"};

struct guarded {
    struct ifl_policy marked; /* first: the registry has a pointer to it */
    const struct ifl_policy *bare;
    struct guard_call calls[N_CALLS];
    union {
        struct ifl_batching_ops batching;
        struct ifl_order_ops order;
        struct ifl_admit_ops admit;
        struct ifl_preempt_ops preempt;
        struct ifl_evict_ops evict;
        struct ifl_route_ops route;
        struct ifl_draft_ops draft;
    } ops;
    char module[640], hint[192];
};

static const struct guarded *guarded_of(const void *self)
{
    return (const struct guarded *)(const void *)module_policy_of(self);
}

/* Calls a marked function that returns nothing (MARKED), or a TYPE (MARKED_ANSWER). `g` is the
 * policy. */
#define MARKED(which, call)                                                                        \
    const struct guarded *g = guarded_of(self);                                                    \
    const struct guard_call *before = guard_enter(&g->calls[which]);                               \
    g->bare->call;                                                                                 \
    guard_leave(before)

#define MARKED_ANSWER(type, which, call)                                                           \
    const struct guarded *g = guarded_of(self);                                                    \
    const struct guard_call *before = guard_enter(&g->calls[which]);                               \
    const type answer = g->bare->call;                                                             \
    guard_leave(before);                                                                           \
    return answer

/* ---- hooks ---- */

static int call_init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    MARKED_ANSWER(int, INIT, init(self, limits, error));
}

static const char *without_words(int rc)
{
    return rc == IFL_E_NOMEM ? "its init finds no memory" : "its init fails and does not say why";
}

/* Adds the name of the module to an error of its init. */
static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const char *module = guarded_of(self)->module;
    struct ifl_error found = {0};
    const int rc = call_init(self, limits, &found);
    if (rc == 0)
        return 0;
    if (rc > 0)
        return ifl_fail(error, IFL_E_POLICY,
                        "%s answers %d to init, expected 0, IFL_E_INPUT or IFL_E_NOMEM", module,
                        rc);
    return ifl_fail(error, rc, "%s: %.600s", module,
                    found.text[0] ? found.text : without_words(rc));
}

static void finish(void *self)
{
    MARKED(FINISH, finish(self));
}

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    MARKED(ON_JOIN, on_join(self, view, r));
}

static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    MARKED(ON_START, on_start(self, view, r));
}

static void on_undo(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    MARKED(ON_UNDO, on_undo(self, view, r));
}

static void on_preempt(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    MARKED(ON_PREEMPT, on_preempt(self, view, r));
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    MARKED(ON_STEP_START, on_step_start(self, view, step));
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    MARKED(ON_STEP_END, on_step_end(self, view, end));
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    MARKED(ON_LEAVE, on_leave(self, view, r, why));
}

static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    MARKED_ANSWER(struct ifl_promise, STEADY, steady(self, view, step));
}

/* ---- answers ---- */

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    MARKED(PLAN, ops.batching->plan(self, view, step));
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    MARKED(RANK, ops.order->rank(self, view, of, n, key));
}

static enum ifl_keys keys(const void *self, const struct ifl_view *view)
{
    MARKED_ANSWER(enum ifl_keys, KEYS, ops.order->keys(self, view));
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    MARKED_ANSWER(struct ifl_admission, ASK, ops.admit->ask(self, view, step, r, n));
}

static double room(const void *self, const struct ifl_view *view, struct ifl_step *step,
                   double enough)
{
    MARKED_ANSWER(double, ROOM, ops.admit->room(self, view, step, enough));
}

static enum ifl_verdict for_all(const void *self, const struct ifl_view *view,
                                struct ifl_step *step)
{
    MARKED_ANSWER(enum ifl_verdict, ASK, ops.admit->for_all(self, view, step));
}

static struct ifl_victim pick_victim(const void *self, const struct ifl_view *view,
                                     struct ifl_step *step, const struct ifl_request *needy)
{
    MARKED_ANSWER(struct ifl_victim, PICK, ops.preempt->pick(self, view, step, needy));
}

static void ahead(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    MARKED(AHEAD, ops.preempt->ahead(self, view, step));
}

static int64_t key(const void *self, const struct ifl_view *view, const struct ifl_cached *cached)
{
    MARKED_ANSWER(int64_t, KEY, ops.evict->key(self, view, cached));
}

static int32_t ask_drafts(const void *self, const struct ifl_view *view,
                          const struct ifl_request *r)
{
    MARKED_ANSWER(int32_t, ASK, ops.draft->ask(self, view, r));
}

static int32_t drafts_for_all(const void *self, const struct ifl_view *view)
{
    MARKED_ANSWER(int32_t, ASK, ops.draft->for_all(self, view));
}

static struct ifl_route pick_replica(const void *self, const struct ifl_fleet *fleet)
{
    MARKED_ANSWER(struct ifl_route, PICK, ops.route->pick(self, fleet));
}

static size_t pick_decode(const void *self, const struct ifl_fleet *fleet)
{
    MARKED_ANSWER(size_t, PICK_DECODE, ops.route->pick_decode(self, fleet));
}

static void on_sent(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    MARKED(ON_SENT, ops.route->on_sent(self, fleet, replica));
}

static void on_first_token(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    MARKED(ON_FIRST_TOKEN, ops.route->on_first_token(self, fleet, replica));
}

static void on_end(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    MARKED(ON_END, ops.route->on_end(self, fleet, replica));
}

/* ---- creating ---- */

#define MARK(policy, name) ((policy)->name = (policy)->name ? (name) : NULL)

static void mark_hooks(struct ifl_policy *policy)
{
    MARK(policy, init);
    MARK(policy, finish);
    MARK(policy, on_join);
    MARK(policy, on_start);
    MARK(policy, on_undo);
    MARK(policy, on_preempt);
    MARK(policy, on_step_start);
    MARK(policy, on_step_end);
    MARK(policy, on_leave);
    MARK(policy, steady);
}

/* What an ops struct holds beside functions stays as it is. */
static void mark_answers(struct guarded *g)
{
    switch (g->bare->kind) {
    case IFL_BATCHING:
        g->ops.batching.plan = plan;
        g->marked.ops.batching = &g->ops.batching;
        break;
    case IFL_ORDER:
        g->ops.order = *g->bare->ops.order;
        g->ops.order.rank = rank;
        MARK(&g->ops.order, keys);
        g->marked.ops.order = &g->ops.order;
        break;
    case IFL_ADMIT:
        g->ops.admit = *g->bare->ops.admit;
        g->ops.admit.ask = ask;
        MARK(&g->ops.admit, room);
        MARK(&g->ops.admit, for_all);
        g->marked.ops.admit = &g->ops.admit;
        break;
    case IFL_PREEMPT:
        g->ops.preempt = *g->bare->ops.preempt;
        g->ops.preempt.pick = pick_victim;
        MARK(&g->ops.preempt, ahead);
        g->marked.ops.preempt = &g->ops.preempt;
        break;
    case IFL_EVICT:
        g->ops.evict = *g->bare->ops.evict;
        g->ops.evict.key = key;
        g->marked.ops.evict = &g->ops.evict;
        break;
    case IFL_ROUTE:
        g->ops.route = *g->bare->ops.route;
        g->ops.route.pick = pick_replica;
        MARK(&g->ops.route, pick_decode);
        MARK(&g->ops.route, on_sent);
        MARK(&g->ops.route, on_first_token);
        MARK(&g->ops.route, on_end);
        g->marked.ops.route = &g->ops.route;
        break;
    case IFL_DRAFT: /* module_most_drafts marks `most`, which has no instance */
        g->ops.draft = *g->bare->ops.draft;
        g->ops.draft.ask = g->ops.draft.ask ? ask_drafts : NULL;
        g->ops.draft.for_all = g->ops.draft.for_all ? drafts_for_all : NULL;
        g->marked.ops.draft = &g->ops.draft;
        break;
    default: /* the registry has refused it */
        break;
    }
}

/* A part that a module has not declared has an address that no program has (replica/module.c). */
static void note_undeclared(struct guarded *g)
{
    const bool routes = g->bare->kind == IFL_ROUTE;
    const struct {
        size_t n_bytes;
        bool may_have;
        const char *words;
    } parts[] = {{g->bare->replica_bytes, routes, "no replica_bytes for ifl_at"},
                 {g->bare->request_bytes, !routes, "no request_bytes for ifl_mine"},
                 {g->bare->client_bytes, true, "no client_bytes for ifl_client"},
                 {g->bare->state_bytes, true, "no state_bytes for ifl_state"}};
    const char *before = "; it declares ";
    size_t at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].n_bytes == 0 && parts[i].may_have) {
            at +=
                (size_t)snprintf(g->hint + at, sizeof g->hint - at, "%s%s", before, parts[i].words);
            before = ", ";
        }
}

const struct ifl_policy *guarded_policy_create(const struct ifl_policy *bare, const char *kind,
                                               const char *path)
{
    struct guarded *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->marked = *bare;
    g->bare = bare;
    snprintf(g->module, sizeof g->module, "%s policy %.64s of %.500s", kind, bare->name, path);
    note_undeclared(g);
    for (int i = 0; i < N_CALLS; i++)
        g->calls[i] = (struct guard_call){g->module, call_names[i], g->hint};
    mark_hooks(&g->marked);
    mark_answers(g);
    return &g->marked;
}

void guarded_policy_free(const struct ifl_policy *policy)
{
    free((void *)(uintptr_t)policy);
}
