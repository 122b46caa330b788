/* A preemption: the victim is taken from the client with the most computed tokens: of its running
 * requests the one started last. Its K/V is dropped. */
#include <inflight/policy.h>

struct client {
    int64_t served_tokens;
};

static int64_t served_tokens(const void *self, const struct ifl_request *r)
{
    return ((const struct client *)ifl_client(self, r))->served_tokens;
}

static struct ifl_victim pick(const void *self, const struct ifl_view *view, struct ifl_step *step,
                              const struct ifl_request *needy)
{
    const struct ifl_requests on_device[] = {ifl_running(step), ifl_started(step)};
    const struct ifl_request *victim = NULL;
    (void)view;
    (void)needy;
    for (size_t list = 0; list < 2; list++)
        for (size_t i = 0; i < on_device[list].n; i++) {
            const struct ifl_request *r = on_device[list].of[i];
            if (r->state == IFL_RUNNING &&
                (!victim || served_tokens(self, r) >= served_tokens(self, victim)))
                victim = r;
        }
    return (struct ifl_victim){victim, IFL_RECOMPUTE, IFL_FRONT};
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct ifl_results results = ifl_results(end);
    (void)view;
    for (size_t i = 0; i < results.n; i++) {
        struct client *client = ifl_client(self, results.of[i].request);
        client->served_tokens += results.of[i].n_new;
    }
}

static const struct ifl_preempt_ops ops = {.pick = pick};

static const struct ifl_policy most_served = {
    .kind = IFL_PREEMPT,
    .name = "most-served",
    .doc = "preempts a request of the client with the most service",
    .client_bytes = sizeof(struct client),
    .on_step_end = on_step_end,
    .ops.preempt = &ops,
};

IFL_POLICIES(&most_served);
