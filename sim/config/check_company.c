#include "config/check_company.h"

#include <stddef.h>
#include <string.h>

#include "inflight/assert.h"

#include "config/keys.h"
#include "config/registry.h"

enum { MAX_VALUE = 8192, MAX_NEEDED = 4 };

struct company {
    const char *key; /* one that ends in a dot: all keys of that map */
    const char *expected;
    const char *needed[MAX_NEEDED]; /* one of them; NULL-ended where there are fewer */
    const char *but;                /* a key of the map that needs none of them, or NULL */
    const char *router;             /* the key is a parameter of this router; NULL: a plain key */
};

#define HOLD_OR_ROUTER "hold beside it, or a router that holds requests back"
#define TIER(of, expected_too, needed_too)                                                         \
    {                                                                                              \
        "serving.kv.tiers." of ".",                                                                \
            "a size beside it (blocks, gib or device_ratio" expected_too ")",                      \
            {"serving.kv.tiers." of ".blocks", "serving.kv.tiers." of ".gib",                      \
             "serving.kv.tiers." of ".device_ratio", needed_too},                                  \
            NULL, NULL                                                                             \
    }
#define ONE(key, needed, expected)                                                                 \
    {                                                                                              \
        key, expected, {needed}, NULL, NULL                                                        \
    }
#define ROUTER(name, key, needed, expected)                                                        \
    {                                                                                              \
        "cluster.router." key, expected, {needed}, NULL, name                                      \
    }
#define PREFETCH(of)                                                                               \
    ONE("serving.kv.tiers." of ".prefetch_tokens", "serving.kv.tiers." of ".prefetch",             \
        "prefetch beside it"),                                                                     \
        ONE("serving.kv.tiers." of ".prefetch_timeout_s", "serving.kv.tiers." of ".prefetch",      \
            "prefetch beside it"),                                                                 \
        ONE("serving.kv.tiers." of ".prefetch_token_s", "serving.kv.tiers." of ".prefetch",        \
            "prefetch beside it")

static const struct company keys[] = {
    ONE("workload.arrivals.rate_rps", "workload.arrivals.process",
        "process poisson, gamma or constant beside it"),
    ONE("workload.arrivals.cv", "workload.arrivals.process", "process gamma beside it"),
    ONE("workload.arrivals.concurrency", "workload.arrivals.process", "process closed beside it"),
    ONE("workload.arrivals.sine_amplitude_frac", "workload.arrivals.process",
        "process poisson, gamma or constant beside it"),
    ONE("workload.arrivals.sine_period_s", "workload.arrivals.sine_amplitude_frac",
        "sine_amplitude_frac beside it"),
    ONE("workload.arrivals.sine_phase_s", "workload.arrivals.sine_amplitude_frac",
        "sine_amplitude_frac beside it"),
    ONE("workload.predictor.sigma", "workload.predictor.model", "model lognormal beside it"),
    ONE("workload.predictor.bucket_tokens", "workload.predictor.model", "model buckets beside it"),
    ONE("workload.predictor.miss_frac", "workload.predictor.model", "model buckets beside it"),
    ONE("workload.patience.mean_s", "workload.patience.process", "a process beside it"),
    ONE("workload.patience.cv", "workload.patience.process", "a process beside it"),
    {"workload.retry.", "most beside it", {"workload.retry.most"}, "workload.retry.seed", NULL},
    ONE("workload.beams.fork_frac", "workload.beams.search", "search beside it"),
    ONE("serving.shed", "serving.max_waiting_reqs", "serving.max_waiting_reqs beside it"),
    ONE("serving.swap_block_s", "serving.swap", "serving.swap overlap beside it"),
    {"serving.in_flight.",
     "pipelined beside it",
     {"serving.in_flight.pipelined"},
     "serving.in_flight.ahead",
     NULL},
    ONE("serving.kv.flashinfer_sampler", "serving.kv.sizing", "sizing vllm-0.8 to vllm-0.14"),
    ONE("serving.kv.encoder", "serving.kv.sizing", "sizing vllm-0.8 to vllm-0.20"),
    ONE("serving.kv.encoder_items", "serving.kv.sizing", "sizing vllm-0.8 to vllm-0.20"),
    ONE("serving.kv.encoder_item_tokens", "serving.kv.sizing", "sizing vllm-0.8 to vllm-0.20"),
    ONE("serving.kv.encoder_kept_tokens", "serving.kv.sizing", "sizing vllm-0.8 to vllm-0.20"),
    ONE("serving.kv.encoder_rotation", "serving.kv.sizing", "sizing vllm-0.8 to vllm-0.20"),
    ONE("serving.kv.encoder_replicated", "serving.kv.sizing", "sizing vllm-0.8 to vllm-0.20"),
    ONE("serving.kv.unhashed", "serving.kv.prefix_cache", "prefix_cache beside it"),
    ONE("serving.kv.publish", "serving.kv.prefix_cache", "prefix_cache beside it"),
    ONE("serving.kv.keep.method", "serving.kv.keep.budget_tokens", "budget_tokens beside it"),
    ONE("serving.kv.keep.", "serving.kv.keep.method", "method beside it"),
    ONE("serving.speculation.", "serving.draft.policy", "a policy that guesses tokens"),
    TIER("host", "", NULL),
    TIER("disk", "", NULL),
    TIER("store", ", or hit_frac", "serving.kv.tiers.store.hit_frac"),
    PREFETCH("disk"),
    PREFETCH("store"),
    ONE("engine.kv_group_elements", "engine.kv_dtype", "kv_dtype int8 or int4 beside it"),
    ONE("engine.kv_scale_bytes", "engine.kv_dtype", "kv_dtype int8 or int4 beside it"),
    /* A router may hold requests back, too. */
    {"cluster.gateway.max_held",
     HOLD_OR_ROUTER,
     {"cluster.gateway.hold", "cluster.router"},
     NULL,
     NULL},
    {"cluster.gateway.order",
     HOLD_OR_ROUTER,
     {"cluster.gateway.hold", "cluster.router"},
     NULL,
     NULL},
    {"cluster.gateway.classes",
     HOLD_OR_ROUTER,
     {"cluster.gateway.hold", "cluster.router"},
     NULL,
     NULL},
    ONE("cluster.gateway.queue_depth", "cluster.gateway.hold", "hold beside it"),
    ONE("cluster.gateway.kv_frac", "cluster.gateway.hold", "hold beside it"),
    ONE("cluster.gateway.stale_s", "cluster.gateway.hold", "hold beside it"),
    ROUTER("block-cost", "index_blocks", "cluster.router.cached", "cached: guesses beside it"),
    ROUTER("block-cost", "guess_s", "cluster.router.cached", "cached: guesses beside it"),
    ROUTER("least-outstanding", "counts_sent", "cluster.news.interval_s",
           "cluster.news.interval_s beside it"),
    ROUTER("scores", "guess_s", "cluster.router.precise", "the weight precise beside it"),
    ROUTER("scores", "queue_cap", "cluster.router.load", "the weight load beside it"),
    ROUTER("scores", "idle_reqs", "cluster.router.active", "the weight active beside it"),
    ROUTER("scores", "busy_score", "cluster.router.active", "the weight active beside it"),
    ROUTER("scores", "token_cap", "cluster.router.tokens", "the weight tokens beside it"),
    ROUTER("scores", "output_ratio", "cluster.router.tokens", "the weight tokens beside it"),
    ONE("cluster.handover.", "cluster.pools", "pools with roles"),
    /* token_bytes is of the model: tiers and swaps move as many over links of their own. */
    {"cluster.links.",
     "pools with roles, or cluster.migration.interval_s",
     {"cluster.pools", "cluster.migration.interval_s"},
     "cluster.links.token_bytes",
     NULL},
    ONE("cluster.migration.", "cluster.migration.interval_s", "interval_s beside it"),
    ONE("output.timeline_from_s", "output.timeline", "timeline beside it"),
    ONE("output.timeline_to_s", "output.timeline", "timeline beside it"),
    ONE("output.timeline_every", "output.timeline", "timeline beside it"),
    ONE("live.faults.stall_s", "live.faults.stall_every_s", "stall_every_s beside it"),
    ONE("live.faults.dead_from_s", "live.faults.dead_replica", "dead_replica beside it"),
    ONE("live.chat.turn", "live.chat.message", "message beside it"),
};
enum { N_KEYS = sizeof keys / sizeof *keys };
_Static_assert(N_KEYS <= 64, "company_said and company_there have a bit for each");

static bool is_there(const struct node *node)
{
    return node && !tree_is_null(node);
}

static const struct ifl_param *router_param(const char *router, const char *key)
{
    const struct ifl_policy *policy = registry_find(IFL_ROUTE, router);
    const char *name = strrchr(key, '.') + 1;
    ifl_assert(policy);
    size_t i = 0;
    while (i < policy->n_params && strcmp(policy->params[i].name, name) != 0)
        i++;
    ifl_assert(i < policy->n_params);
    return &policy->params[i];
}

/* A value that cannot be read is refused where it is read. */
static bool is_default(const struct node *node, const char *key, const char *router)
{
    const struct ifl_param *of = router ? router_param(router, key) : key_field(key);
    struct ifl_error unread;
    _Alignas(max_align_t) char value[MAX_VALUE];
    char text[MAX_VALUE], dflt[MAX_VALUE];
    ifl_assert(of);
    struct ifl_param field = *of;
    field.offset = 0;
    if (field_read(node, key, &field, value, &unread) < 0)
        return true;
    field_print(&field, value, text, sizeof text);
    field_print_default(&field, dflt, sizeof dflt);
    return strcmp(text, dflt) == 0;
}

/* A router that only a preset names is not looked for: its parameters may be another one's. */
static bool names_router(const struct node *layer, const char *router)
{
    const struct node *policy = tree_at(layer, "cluster.router.policy");
    return is_there(policy) && policy->kind == NODE_SCALAR && strcmp(policy->text, router) == 0;
}

static bool needs_others(const struct company *of, const char *key)
{
    for (size_t i = 0; i < MAX_NEEDED && of->needed[i]; i++)
        if (strcmp(key, of->needed[i]) == 0)
            return false;
    return !of->but || strcmp(key, of->but) != 0;
}

/* The first key of the rule that the layer says, not at its default; NULL if it says none. */
static const struct node *find_said(const struct company *of, const struct node *layer,
                                    char key[MAX_KEY_CHARS])
{
    char map[MAX_KEY_CHARS];
    const size_t n_chars = strlen(of->key);
    const bool is_map = of->key[n_chars - 1] == '.';
    snprintf(map, sizeof map, "%.*s", (int)(is_map ? n_chars - 1 : n_chars), of->key);
    const struct node *node = tree_at(layer, map);
    if (!is_map) {
        snprintf(key, MAX_KEY_CHARS, "%s", of->key);
        if (of->router && !names_router(layer, of->router))
            return NULL;
        return is_there(node) && !is_default(node, key, of->router) ? node : NULL;
    }
    for (size_t i = 0; node && i < node->n; i++) {
        key_join(map, node->of[i]->key, key);
        if (is_there(node->of[i]) && key_field(key) && needs_others(of, key) &&
            !is_default(node->of[i], key, NULL))
            return node->of[i];
    }
    return NULL;
}

/* The same, for all pools or for one. */
static const struct node *find_said_anywhere(const struct company *of, const struct node *upper,
                                             char key[MAX_KEY_CHARS])
{
    const struct node *pools = tree_at(upper, "cluster.pools");
    const struct node *found = find_said(of, upper, key);
    for (size_t i = 0; pools && i < pools->n && !found; i++)
        found = find_said(of, pools->of[i], key);
    return found;
}

uint64_t company_said(const struct node *upper)
{
    char key[MAX_KEY_CHARS];
    uint64_t rules = 0;
    for (size_t i = 0; i < N_KEYS; i++)
        rules |= (uint64_t)(find_said_anywhere(&keys[i], upper, key) != NULL) << i;
    return rules;
}

uint64_t company_there(const struct node *root)
{
    uint64_t rules = 0;
    for (size_t i = 0; i < N_KEYS; i++)
        for (size_t k = 0; k < MAX_NEEDED && keys[i].needed[k]; k++)
            rules |= (uint64_t)is_there(tree_at(root, keys[i].needed[k])) << i;
    return rules;
}

int company_refuse(const struct node *upper, uint64_t rules, struct ifl_error *error)
{
    char key[MAX_KEY_CHARS];
    for (size_t i = 0; i < N_KEYS; i++) {
        const struct node *node = rules >> i & 1 ? find_said_anywhere(&keys[i], upper, key) : NULL;
        if (node)
            return tree_fail(node, error,
                             "%s is set and %s is not, so that it has no effect, expected %s", key,
                             keys[i].needed[0], keys[i].expected);
    }
    return 0;
}
