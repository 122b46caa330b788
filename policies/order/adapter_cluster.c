/* First come, first served. But once the batch has batch_num_adapters adapters, waiting requests of
 * these adapters go before the others (S-LoRA, slora/server/router/cluster_req_queue.py,
 * ClusterReqQueue; MLSys 2024, 4.1, adapter clustering). The adapters of the batch are read once a
 * plan, before it starts any request. */
#include "inflight/policy.h"

struct adapter_cluster {
    int32_t batch_num_adapters;
};

static const struct ifl_param params[] = {
    {"batch_num_adapters", IFL_INT, offsetof(struct adapter_cluster, batch_num_adapters), 32, 1,
     1 << 20, NULL, "adapters",
     "once the batch has this many adapters, requests with these go first"},
};

static const int64_t BEHIND_NS = INT64_C(1) << 62; /* no arrival is as late */

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    const struct adapter_cluster *p = self;
    struct ifl_step *step = ifl_plan(view);
    const bool full = step && step->n_adapters >= p->batch_num_adapters;
    for (size_t i = 0; i < n; i++) {
        const bool waits = of[i]->state == IFL_WAITING;
        const bool is_new = full && waits && ifl_adapter_users(step, of[i]->adapter) == 0;
        key[i] = is_new ? of[i]->arrival_ns / 2 + BEHIND_NS : of[i]->arrival_ns / 2;
    }
}

static enum ifl_keys keys(const void *self, const struct ifl_view *view)
{
    (void)self;
    (void)view;
    return IFL_KEYS_PLAN;
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = keys};

const struct ifl_policy policy_order_adapter_cluster = {
    .kind = IFL_ORDER,
    .name = "adapter-cluster",
    .doc = "first come, first served; once the batch has enough adapters, their requests first "
           "(S-LoRA)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct adapter_cluster),
    .steady = ifl_always_steady,
    .ops.order = &ops,
};
