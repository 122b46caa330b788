/* Reading one point: the fields of the table, then the keys with a shape of their own. */
#include "config/read.h"

#include <math.h>
#include <string.h>

#include "inflight/nearest.h"

#include "config/keys.h"
#include "config/registry.h"
#include "cost/deployment.h"

/* ---- modules ---- */

static int fail_module(const struct node *name, const struct key_section *section,
                       struct ifl_error *error)
{
    const struct ifl_policy *policy;
    const char *words[512];
    char list[384] = "";
    size_t n = 0, at = 0;
    for (size_t i = 0; (policy = registry_at(i)) && n < 512; i++) {
        if (policy->kind != section->kind)
            continue;
        words[n++] = policy->name;
        if (at < sizeof list)
            at +=
                (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", policy->name);
    }
    char found[128];
    tree_describe(name, found);
    for (int kind = 0; kind < IFL_N_KINDS; kind++)
        if (registry_find((enum ifl_kind)kind, found))
            return tree_fail(
                name, error, "unknown %s policy %s: a policy of that name is of the kind %s",
                module_kind_name(section->kind), found, module_kind_name((enum ifl_kind)kind));
    const char *near = ifl_nearest(found, words, n);
    if (near)
        return tree_fail(name, error, "unknown %s policy %s, did you mean %s?",
                         module_kind_name(section->kind), found, near);
    return tree_fail(name, error, "unknown %s policy %s, expected one of %s",
                     module_kind_name(section->kind), found, list);
}

static bool is_null(const struct node *node)
{
    return node && tree_is_null(node);
}

static int fail_no_policy(const struct node *root, const struct node *map, const char *where,
                          struct ifl_error *error)
{
    const struct node *serving = tree_at(root, "serving");
    const struct node *preset = tree_at(root, "serving.preset");
    const struct node *name = tree_child(map, "policy");
    const bool has_preset = preset && !is_null(preset);
    if (is_null(map) || is_null(name))
        return tree_fail(is_null(map) ? map : name, error, "%s%s is null, expected a policy%s",
                         where, is_null(map) ? "" : ".policy",
                         has_preset ? ": null takes away that of serving.preset" : "");
    const struct node *near = map ? map : has_preset ? preset : serving ? serving : root;
    return tree_fail(near, error, "%s.policy is missing, expected %s", where,
                     has_preset ? "the preset or you to name one"
                                : "serving.preset, or a policy of each kind");
}

/* Where errors of the module are: at its name, or at the map around. */
static void note_place(struct module_config *module, const struct node *node)
{
    snprintf(module->file, sizeof module->file, "%.255s", node->file);
    module->line = node->line;
    module->column = node->column;
}

/* Reads one module, at `where`. `map` is NULL if the file has no such key. */
static int read_module(const struct node *root, const struct node *map, const char *where,
                       const struct key_section *section, struct module_config *module,
                       struct ifl_error *error)
{
    static const char *const policy_key[] = {"policy", NULL};
    if (map && map->kind != NODE_MAP && !tree_is_null(map)) /* the message is fields_read's */
        return fields_read(map, where, NULL, 0, NULL, NULL, error);
    const struct node *name = tree_child(map, "policy");
    if (is_null(name))
        name = NULL;
    if (!name && !section->dflt_policy)
        return fail_no_policy(root, map, where, error);
    const bool is_word = !name || name->kind == NODE_SCALAR;
    const struct ifl_policy *policy =
        is_word ? registry_find(section->kind, name ? name->text : section->dflt_policy) : NULL;
    if (!policy)
        return fail_module(name, section, error);
    module->policy = policy;
    if (map)
        note_place(module, name ? name : map);
    module->params = calloc(1, policy->params_bytes + 1);
    if (!module->params)
        return ifl_fail_nomem(error);
    return fields_read(map, where, policy->params, policy->n_params, policy_key, module->params,
                       error);
}

/* The admit modules, in the order in which they are asked: `serving.admit` is one, or a list. */
static int read_admits(const struct node *root, const struct node *list,
                       const struct key_section *section, struct serving_config *serving,
                       struct ifl_error *error)
{
    char number[24], where[MAX_KEY_CHARS];
    if (list->n < 1 || list->n > 1 + MAX_MORE_ADMITS)
        return tree_fail(list, error, "%s is a list of %zu, expected 1 to %d modules",
                         section->where, list->n, 1 + MAX_MORE_ADMITS);
    for (size_t i = 0; i < list->n; i++) {
        snprintf(number, sizeof number, "%zu", i);
        if (read_module(root, list->of[i], key_join(section->where, number, where), section,
                        serving_admit(serving, i), error) < 0)
            return error->code;
    }
    return 0;
}

static int read_modules(const struct node *root, const struct key_section *section,
                        struct serving_config *serving, struct ifl_error *error)
{
    const struct node *node = tree_at(root, section->where);
    if (section->may_be_list && node && node->kind == NODE_LIST)
        return read_admits(root, node, section, serving, error);
    return read_module(root, node, section->where, section, &serving->modules[section->kind],
                       error);
}

/* ---- the pieces of a rate: [[from_s, rate_rps], ...] ---- */

static const struct ifl_param piece_from = {
    "from_s", IFL_REAL, 0, 0, 0, 1e9, NULL, "s", "start of the piece"};
static const struct ifl_param piece_rate = {"rate_rps",   IFL_REAL,           0, 0, 0, 1e9, NULL,
                                            "requests/s", "rate of the piece"};

static int read_piece(const struct node *pair, struct ifl_arrivals *arrivals,
                      struct ifl_error *error)
{
    static const char *const where = "workload.arrivals.pieces";
    char found[128];
    const size_t i = arrivals->n_pieces;
    if (pair->kind != NODE_LIST || pair->n != 2)
        return tree_fail(pair, error, "%s holds %s, expected pairs [from_s, rate_rps]", where,
                         pair->kind == NODE_LIST ? "a list of another length"
                                                 : tree_describe(pair, found));
    if (field_read(pair->of[0], where, &piece_from, &arrivals->piece_from_s[i], error) < 0 ||
        field_read(pair->of[1], where, &piece_rate, &arrivals->piece_rate_rps[i], error) < 0)
        return error->code;
    if (i == 0 && arrivals->piece_from_s[0] != 0)
        return tree_fail(pair, error, "%s begins at %.15g s, expected 0", where,
                         arrivals->piece_from_s[0]);
    if (i && arrivals->piece_from_s[i] <= arrivals->piece_from_s[i - 1])
        return tree_fail(pair, error, "%s: from_s is %.15g after %.15g, expected ascending times",
                         where, arrivals->piece_from_s[i], arrivals->piece_from_s[i - 1]);
    arrivals->n_pieces++;
    return 0;
}

static int read_pieces(const struct node *root, struct ifl_arrivals *arrivals,
                       struct ifl_error *error)
{
    const struct node *list = tree_at(root, "workload.arrivals.pieces");
    char found[128];
    arrivals->n_pieces = 0;
    if (!list || tree_is_null(list))
        return 0;
    if (list->kind != NODE_LIST || list->n > IFL_MAX_RATE_PIECES)
        return tree_fail(
            list, error, "workload.arrivals.pieces is %s, expected a list of at most %d pairs",
            list->kind == NODE_LIST ? "longer" : tree_describe(list, found), IFL_MAX_RATE_PIECES);
    for (size_t i = 0; i < list->n; i++)
        if (read_piece(list->of[i], arrivals, error) < 0)
            return error->code;
    const size_t last = arrivals->n_pieces - 1;
    if (arrivals->n_pieces && arrivals->piece_rate_rps[last] <= 0)
        return tree_fail(list->of[last], error,
                         "workload.arrivals.pieces ends with a rate of 0, expected one above 0: "
                         "later requests would never arrive");
    return 0;
}

/* ---- of a GPU: {a100-80gb-sxm: 2.1, ...}, or a number ---- */

static int read_rate(const struct node *node, const char *where, const struct ifl_param *param,
                     struct gpu_rates *rates, struct ifl_error *error)
{
    const size_t at = rates->n;
    snprintf(rates->hardware[at], sizeof rates->hardware[at], "%s", node->key ? node->key : "");
    if (field_read(node, where, param, &rates->of[at], error) < 0)
        return error->code;
    rates->n++;
    return 0;
}

/* `section`.`param`: a number, or a map of names to numbers. */
static int read_rates(const struct node *root, const char *section, const struct ifl_param *param,
                      struct gpu_rates *rates, struct ifl_error *error)
{
    char found[128], where[MAX_KEY_CHARS];
    const struct node *map = tree_at(root, key_join(section, param->name, where));
    if (!map || tree_is_null(map))
        return 0;
    if (map->kind == NODE_SCALAR) {
        if (read_rate(map, section, param, rates, error) < 0)
            return error->code;
        rates->hardware[0][0] = '\0';
        return 0;
    }
    if (map->kind != NODE_MAP || map->n > MAX_RATES)
        return tree_fail(
            map, error, "%s is %s, expected a number or a map of at most %d names to %s", where,
            map->kind == NODE_MAP ? "longer" : tree_describe(map, found), MAX_RATES, param->doc);
    for (size_t i = 0; i < map->n; i++) {
        struct ifl_param of_one = *param;
        of_one.name = map->of[i]->key;
        if (read_rate(map->of[i], where, &of_one, rates, error) < 0)
            return error->code;
    }
    return 0;
}

double gpu_rate_of(const struct gpu_rates *rates, const char *hardware)
{
    for (size_t i = 0; i < rates->n; i++)
        if (!*rates->hardware[i] || strcmp(rates->hardware[i], hardware) == 0)
            return rates->of[i];
    return (double)NAN;
}

/* Objectives alone name the criterion; beside another one they contradict it. */
static int settle_criterion(const struct node *root, struct capacity_config *capacity,
                            struct ifl_error *error)
{
    const struct node *criterion = tree_at(root, "capacity.criterion");
    const struct node *objectives = tree_at(root, "capacity.objectives");
    const bool asks = objectives && objectives->kind == NODE_MAP && objectives->n > 0;
    if (asks && (!criterion || tree_is_null(criterion)))
        capacity->criterion = CAPACITY_OBJECTIVES;
    if (asks && capacity->criterion != CAPACITY_OBJECTIVES)
        return tree_fail(criterion, error,
                         "capacity.criterion is %s beside capacity.objectives, expected "
                         "objectives, or one of the two alone",
                         criterion->text);
    return 0;
}

static const struct ifl_param price = {
    "usd_per_gpu_hour", IFL_REAL, 0, 0, 0, 1e9, NULL, "USD", "prices"};
static const struct ifl_param watts = {"watts_per_gpu", IFL_REAL, 0, 0, 1e-3, 1e6, NULL, "W",
                                       "watts"};

/* capacity.placement.KEY: a list of whole numbers, each once; left out: the defaults. */
static int read_degrees(const struct node *root, const char *key, const struct degrees *dflt,
                        struct degrees *of, struct ifl_error *error)
{
    const struct ifl_param param = {key, IFL_INT, 0, 1, 1, 65536, NULL, "", "a degree"};
    char found[128], where[MAX_KEY_CHARS];
    const struct node *list = tree_at(root, key_join("capacity.placement", key, where));
    *of = *dflt;
    if (!list || tree_is_null(list))
        return 0;
    if (list->kind != NODE_LIST || list->n == 0 || list->n > MAX_DEGREES)
        return tree_fail(list, error, "%s is %s, expected a list of 1 to %d whole numbers", where,
                         list->kind != NODE_LIST ? tree_describe(list, found)
                         : list->n == 0          ? "empty"
                                                 : "longer",
                         MAX_DEGREES);
    for (of->n = 0; of->n < (int32_t)list->n; of->n++) {
        const struct node *node = list->of[of->n];
        if (field_read(node, "capacity.placement", &param, &of->of[of->n], error) < 0)
            return error->code;
        for (int32_t i = 0; i < of->n; i++)
            if (of->of[i] == of->of[of->n])
                return tree_fail(node, error, "%s has %d twice, expected each number once", where,
                                 of->of[i]);
    }
    return 0;
}

static int read_placement(const struct node *root, struct placement_config *of,
                          struct ifl_error *error)
{
    static const struct degrees powers = {4, {1, 2, 4, 8}}, one = {1, {1}};
    const struct node *map = tree_at(root, "capacity.placement");
    of->on = map && !tree_is_null(map);
    if (read_degrees(root, "tensor", &powers, &of->tensor, error) < 0 ||
        read_degrees(root, "pipeline", &one, &of->pipeline, error) < 0)
        return error->code;
    return read_degrees(root, "counts", &one, &of->counts, error);
}

static int read_capacity(const struct node *root, struct capacity_config *capacity,
                         struct ifl_error *error)
{
    if (read_rates(root, "capacity", &price, &capacity->usd_per_gpu_hour, error) < 0 ||
        read_rates(root, "capacity", &watts, &capacity->watts_per_gpu, error) < 0 ||
        read_placement(root, &capacity->placement, error) < 0)
        return error->code;
    return settle_criterion(root, capacity, error);
}

/* A configuration with a target alone can be flown, too. */
static void settle_rate(struct config *config)
{
    struct ifl_arrivals *arrivals = &config->workload.arrivals;
    if (arrivals->rate_rps == 0)
        arrivals->rate_rps = config->capacity.target_rps;
}

/* ---- the deployment ---- */

/* Keeps the map, since it is laid over the profile's deployment, which is not loaded here. Reading
 * it over another one finds its errors. */
static int read_deployment(const struct node *root, struct config *config, struct ifl_error *error)
{
    const struct node *map = tree_child(root, "deployment");
    struct deployment any = {.name = "any"};
    if (!map || tree_is_null(map))
        return 0;
    config->deployment = tree_copy(map);
    return config->deployment ? deployment_lay(map, "deployment", NULL, &any, error)
                              : ifl_fail_nomem(error);
}

/* ---- all of it ---- */

static int read_section(const struct node *root, const struct key_section *section,
                        struct config *config, struct ifl_error *error)
{
    const char *others[MAX_KEYS_BELOW + 1];
    if (section->is_module)
        return read_modules(root, section, &config->serving, error);
    if (section->is_deployment)
        return 0;
    key_others(section, others);
    return fields_read(*section->where ? tree_at(root, section->where) : root, section->where,
                       section->keys->fields, section->keys->n_fields, others, config, error);
}

int config_read(const struct node *root, struct config *config, struct ifl_error *error)
{
    int code = 0;
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < n_key_sections && code == 0; i++)
        code = read_section(root, &key_sections[i], config, error);
    if (code == 0)
        code = read_pieces(root, &config->workload.arrivals, error);
    if (code == 0)
        code = read_capacity(root, &config->capacity, error);
    if (code == 0)
        settle_rate(config);
    config->links.spec.bytes_per_s = config->links.gb_per_s * 1e9;
    for (int i = 0; i < N_TIERS; i++)
        config->serving.kv.tiers[i].link.bytes_per_s = config->serving.kv.tiers[i].gb_per_s * 1e9;
    if (code == 0)
        code = read_deployment(root, config, error);
    if (code < 0)
        config_finish(config);
    return code;
}

void config_finish(struct config *config)
{
    for (size_t i = 0; i < config->n_pools; i++) {
        config_finish(config->pools[i].config);
        free(config->pools[i].config);
    }
    free(config->pools);
    config->pools = NULL;
    config->n_pools = 0;
    tree_free(config->deployment);
    config->deployment = NULL;
    for (size_t i = 0; i < N_MODULES; i++) {
        free(config->serving.modules[i].params);
        config->serving.modules[i] = (struct module_config){0};
    }
}
