#include "config/check_company.h"

#include <string.h>

#include "inflight/assert.h"

#include "config/keys.h"

enum { MAX_VALUE = 64 };

struct company {
    const char *key, *needed, *expected;
    const char *or_needed; /* NULL: nothing else does */
};

#define HOLD_OR_ROUTER "hold beside it, or a router that holds requests back"

static const struct company keys[] = {
    {"workload.patience.mean_s", "workload.patience.process", "a process beside it", NULL},
    {"workload.patience.cv", "workload.patience.process", "a process beside it", NULL},
    {"workload.retry.backoff_s", "workload.retry.most", "most beside it", NULL},
    {"workload.retry.factor", "workload.retry.most", "most beside it", NULL},
    {"workload.retry.max_backoff_s", "workload.retry.most", "most beside it", NULL},
    {"workload.retry.jitter_frac", "workload.retry.most", "most beside it", NULL},
    {"serving.shed", "serving.max_waiting_reqs", "serving.max_waiting_reqs beside it", NULL},
    /* A router may hold requests back, too. */
    {"cluster.gateway.max_held", "cluster.gateway.hold", HOLD_OR_ROUTER, "cluster.router"},
    {"cluster.gateway.order", "cluster.gateway.hold", HOLD_OR_ROUTER, "cluster.router"},
    {"cluster.gateway.classes", "cluster.gateway.hold", HOLD_OR_ROUTER, "cluster.router"},
    {"cluster.gateway.queue_depth", "cluster.gateway.hold", "hold beside it", NULL},
    {"cluster.gateway.kv_frac", "cluster.gateway.hold", "hold beside it", NULL},
    {"cluster.gateway.stale_s", "cluster.gateway.hold", "hold beside it", NULL},
    {"cluster.migration.threshold", "cluster.migration.interval_s", "interval_s beside it", NULL},
    {"cluster.migration.pairs", "cluster.migration.interval_s", "interval_s beside it", NULL},
    {"cluster.migration.request", "cluster.migration.interval_s", "interval_s beside it", NULL},
    {"cluster.migration.awaited", "cluster.migration.interval_s", "interval_s beside it", NULL},
    {"cluster.migration.max_stages", "cluster.migration.interval_s", "interval_s beside it", NULL},
    {"cluster.migration.last_stage_blocks", "cluster.migration.interval_s", "interval_s beside it",
     NULL},
    {"cluster.migration.max_moves", "cluster.migration.interval_s", "interval_s beside it", NULL},
    {"cluster.migration.watermark_frac", "cluster.migration.interval_s", "interval_s beside it",
     NULL},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

static bool is_said(const struct node *root, const char *key)
{
    const struct node *node = tree_at(root, key);
    return node && !tree_is_null(node);
}

static bool is_default(const struct config *config, const char *key)
{
    const struct ifl_param *field = key_field(key);
    char value[MAX_VALUE], dflt[MAX_VALUE];
    ifl_assert(field);
    field_print(field, config, value, sizeof value);
    field_print_default(field, dflt, sizeof dflt);
    return strcmp(value, dflt) == 0;
}

int check_company(const struct node *root, const struct config *config, struct ifl_error *error)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        const struct company *of = &keys[i];
        if (!is_said(root, of->key) || is_said(root, of->needed) ||
            (of->or_needed && is_said(root, of->or_needed)) || is_default(config, of->key))
            continue;
        return tree_fail(tree_at(root, of->key), error,
                         "%s is set and %s is not, so that it has no effect, expected %s", of->key,
                         of->needed, of->expected);
    }
    return 0;
}
