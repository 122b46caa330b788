#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "config/tree.h"
#include "executor_sim.h"

void fixture_module(struct fixture *f, enum ifl_kind kind, const char *name, const char *params)
{
    struct ifl_error error = {0};
    struct module_config *m = &f->modules[kind];
    struct node *map = NULL;
    free(m->params);
    m->policy = registry_find(kind, name);
    ifl_require(m->policy);
    m->params = calloc(1, m->policy->params_bytes + 1);
    if (params)
        ifl_require(tree_parse(params, strlen(params), "params", &map, &error) == 0);
    if (fields_read(map, name, m->policy->params, m->policy->n_params, NULL, m->params, &error) < 0)
        fprintf(stderr, "%s\n", error.text);
    tree_free(map);
}

void fixture_vllm(struct fixture *f, const char *batching_params, const char *tail_params)
{
    fixture_module(f, IFL_BATCHING, "prefill-first", batching_params);
    fixture_module(f, IFL_ORDER, "fcfs", NULL);
    fixture_module(f, IFL_ADMIT, "prompt-fits", NULL);
    fixture_module(f, IFL_PREEMPT, "tail", tail_params);
}

void fixture_trace(struct fixture *f, size_t n)
{
    ifl_trace_free(&f->trace);
    f->trace.n = n;
    f->trace.has_stamps = true;
    f->trace.arrival_ns = calloc(n, sizeof *f->trace.arrival_ns);
    f->trace.n_prompt = calloc(n, sizeof *f->trace.n_prompt);
    f->trace.n_output = calloc(n, sizeof *f->trace.n_output);
    f->trace.priority = calloc(n, sizeof *f->trace.priority);
}

/* ---- an executor that looks over the loop's shoulder ---- */

struct inspector {
    struct fixture *f;
    struct replica *replica;
    struct executor_sim sim;
    uint8_t *owners; /* [n_blocks] */
};

static void complain(struct inspector *x, const char *what, const struct ifl_request *r)
{
    if (!x->f->complaint[0])
        snprintf(x->f->complaint, sizeof x->f->complaint, "step %llu, request %llu: %s",
                 (unsigned long long)x->replica->view.step, (unsigned long long)r->serial, what);
}

static void inspect_work(struct inspector *x, const struct ifl_work *w)
{
    const int64_t slots = (int64_t)w->n_blocks * x->f->limits.block_tokens;
    if (w->request->state != IFL_RUNNING)
        complain(x, "computes and is not on the device", w->request);
    if (w->n_context + w->n_new > slots)
        complain(x, "computes without its blocks", w->request);
    if (w->n_new <= 0)
        complain(x, "computes nothing", w->request);
    if (w->samples != (w->n_context + w->n_new == w->request->n_tokens))
        complain(x, "samples at the wrong token", w->request);
}

/* Every block of every running request has that one owner, and a reference for it. */
static void inspect_blocks(struct inspector *x)
{
    int32_t n_held = 0;
    memset(x->owners, 0, (size_t)x->f->limits.n_blocks);
    for (const struct live_request *r = x->replica->running.head; r; r = r->next)
        for (int32_t i = 0; i < r->pub.n_blocks; i++, n_held++) {
            if (x->owners[r->blocks[i]]++)
                complain(x, "shares a block", &r->pub);
            if (x->replica->kv.n_refs[r->blocks[i]] != 1)
                complain(x, "holds a block without a reference", &r->pub);
        }
    const int32_t n_used = kv_used(&x->replica->kv) - kv_slack(&x->replica->kv);
    if (n_held != n_used && !x->f->complaint[0])
        snprintf(x->f->complaint, sizeof x->f->complaint, "%d blocks held, %d used", n_held,
                 n_used);
}

static int64_t inspector_now(void *self)
{
    return ((struct inspector *)self)->sim.now_ns;
}

static int inspector_submit(void *self, const struct ifl_step_desc *desc, struct ifl_error *error)
{
    struct inspector *x = self;
    for (size_t i = 0; i < desc->n_work; i++)
        inspect_work(x, &desc->work[i]);
    inspect_blocks(x);
    return executor_sim_ops.submit(&x->sim, desc, error);
}

static int inspector_next(void *self, int64_t until_ns, struct ifl_done *done,
                          struct ifl_error *error)
{
    return executor_sim_ops.next(&((struct inspector *)self)->sim, until_ns, done, error);
}

static const struct ifl_executor_ops inspector_ops = {
    .size_bytes = sizeof(struct ifl_executor_ops),
    .name = "inspector",
    .wants_work = true,
    .now = inspector_now,
    .submit = inspector_submit,
    .next = inspector_next,
};

static void inspect_end(struct inspector *x)
{
    const struct replica *replica = x->replica;
    if (x->f->complaint[0])
        return;
    if (replica->kv.n_free != replica->kv.n_blocks || kv_slack(&replica->kv) != 0 ||
        replica->host.n_free != replica->host.n_blocks)
        snprintf(x->f->complaint, sizeof x->f->complaint, "blocks are lost at the end");
    if (replica->kv_internal_slots != 0 || replica->kv_token_slots != 0)
        snprintf(x->f->complaint, sizeof x->f->complaint, "the KV accounts do not close");
}

static int create_replicas(const struct fixture *f, struct replica *replicas, uint32_t n,
                           struct ifl_error *error)
{
    struct replica_options options = {.modules = f->modules,
                                      .limits = f->limits,
                                      .allocator = f->allocator,
                                      .swap_full = f->swap_full,
                                      .wants_work = f->check_blocks};
    int rc = 0;
    for (; options.number < n && rc == 0; options.number++)
        rc = replica_create(&replicas[options.number], &options, error);
    return rc;
}

int fixture_fly(struct fixture *f, struct ifl_error *error)
{
    const uint32_t n_replicas = f->n_replicas ? f->n_replicas : 1;
    struct replica *replicas = calloc(n_replicas, sizeof *replicas);
    struct module router = {0};
    struct workload workload = {0};
    struct inspector x = {.f = f, .replica = replicas};
    struct flight flight = {
        .replicas = replicas,
        .n_replicas = n_replicas,
        .router = &router,
        .seed = f->seed,
        .workload = &workload,
        .executor = f->check_blocks ? &inspector_ops : &executor_sim_ops,
        .executor_self = f->check_blocks ? (void *)&x : (void *)&x.sim,
        .recorder = (struct ifl_recorder *)(void *)&f->capture,
        .steady_runs = !f->no_steady_runs,
        .check_steady = f->check_steady,
    };
    struct cost *cost = cost_create_linear(&f->linear, error);
    executor_sim_create(&x.sim, cost, n_replicas, error);
    x.owners = calloc((size_t)f->limits.n_blocks + 1, 1);
    int rc = create_replicas(f, replicas, n_replicas, error);
    if (rc == 0 && f->modules[IFL_ROUTE].policy)
        rc = module_create(&router, &f->modules[IFL_ROUTE], &f->limits, error);
    if (rc == 0)
        rc = workload_create(&workload, &f->trace, f->concurrency, error);
    if (rc == 0)
        rc = flight_run(&flight, error);
    if (rc == 0 && f->check_blocks)
        inspect_end(&x);
    f->n_plans = flight.n_plans;
    f->n_repeats = flight.n_repeats;
    free(x.owners);
    executor_sim_destroy(&x.sim);
    cost_destroy(cost);
    workload_destroy(&workload);
    module_destroy(&router);
    for (uint32_t i = 0; i < n_replicas; i++)
        replica_destroy(&replicas[i]);
    free(replicas);
    return rc;
}

void fixture_free(struct fixture *f)
{
    for (int kind = 0; kind < IFL_N_KINDS; kind++)
        free(f->modules[kind].params);
    ifl_trace_free(&f->trace);
    capture_free(&f->capture);
    *f = (struct fixture){0};
}
