/* The registry: policy modules by kind and name, built in or loaded from a plug-in. */
#include "config/registry.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "inflight/inputs.h"

#include "base/guard.h"
#include "config/guarded_policy.h"
#include "replica/module.h"

/* Gathered from policies/ when the program is built. */
extern const struct ifl_policy *const ifl_builtin_policies[];
extern const size_t ifl_n_builtin_policies;

enum { MAX_LOADED = 256, MAX_IN_LIST = 16 };

static const struct ifl_policy *loaded[MAX_LOADED];
static size_t n_loaded;

const struct ifl_policy *registry_at(size_t i)
{
    if (i < ifl_n_builtin_policies)
        return ifl_builtin_policies[i];
    i -= ifl_n_builtin_policies;
    return i < n_loaded ? loaded[i] : NULL;
}

bool registry_is_builtin(const struct ifl_policy *policy)
{
    size_t i = 0;
    while (i < ifl_n_builtin_policies && ifl_builtin_policies[i] != policy)
        i++;
    return i < ifl_n_builtin_policies;
}

const struct ifl_policy *registry_find(enum ifl_kind kind, const char *name)
{
    const struct ifl_policy *policy;
    for (size_t i = 0; (policy = registry_at(i)); i++)
        if (policy->kind == kind && strcmp(policy->name, name) == 0)
            return policy;
    return NULL;
}

/* ---- checks of a plug-in's modules: they return what is wrong, or NULL ---- */

/* What a parameter takes of its struct; 0 bytes: its type or size is unknown. */
struct place {
    size_t n_bytes, alignment;
};
#define PLACE(type) ((struct place){sizeof(type), _Alignof(type)})

static struct place place_of(const struct ifl_param *param)
{
    switch (param->type) {
    case IFL_INT:
    case IFL_CHOICE:
        return PLACE(int32_t);
    case IFL_REAL:
        return PLACE(double);
    case IFL_BOOL:
        return PLACE(bool);
    case IFL_TIME:
        return PLACE(int64_t);
    case IFL_COUNT:
        return PLACE(uint64_t);
    case IFL_TEXT:
        return (struct place){param->max >= 1 && param->max <= 65536 ? (size_t)param->max : 0, 1};
    }
    return (struct place){0, 1};
}

static double n_choices(const char *choices)
{
    double n = 1;
    for (const char *c = choices; *c; c++)
        n += *c == '|';
    return n;
}

static const char *check_default(const struct ifl_param *param)
{
    if (isnan(param->dflt))
        return NULL;
    if (param->type == IFL_TEXT)
        return !param->choices || strlen(param->choices) < (size_t)param->max
                   ? NULL
                   : "has a parameter whose default is longer than its field";
    if (param->type == IFL_CHOICE)
        return param->dflt >= 0 && param->dflt < n_choices(param->choices)
                   ? NULL
                   : "has a parameter whose default is none of its choices";
    return param->type == IFL_BOOL || (param->dflt >= param->min && param->dflt <= param->max)
               ? NULL
               : "has a parameter whose default is out of its range";
}

static const char *check_param(const struct ifl_param *param, size_t params_bytes)
{
    if (!param->name || !*param->name || !param->doc)
        return "has a parameter without name or doc";
    if (strcmp(param->name, "policy") == 0 || strchr(param->name, '.'))
        return "has a parameter named policy, or with a dot in its name";
    const struct place place = place_of(param);
    if (place.n_bytes == 0)
        return "has a parameter of an unknown type or size";
    if (param->offset > params_bytes || place.n_bytes > params_bytes - param->offset)
        return "has a parameter that lies outside its parameter struct";
    if (param->offset % place.alignment != 0)
        return "has a parameter whose offset is no multiple of its type's alignment";
    if (param->type == IFL_CHOICE && (!param->choices || !*param->choices))
        return "has a choice without choices";
    return check_default(param);
}

static bool answers(const struct ifl_policy *policy)
{
    switch (policy->kind) {
    case IFL_BATCHING:
        return policy->ops.batching && policy->ops.batching->plan;
    case IFL_ORDER:
        return policy->ops.order && policy->ops.order->rank;
    case IFL_ADMIT:
        return policy->ops.admit && policy->ops.admit->ask;
    case IFL_PREEMPT:
        return policy->ops.preempt && policy->ops.preempt->pick;
    case IFL_EVICT:
        return policy->ops.evict && policy->ops.evict->key;
    case IFL_ROUTE:
        return policy->ops.route && policy->ops.route->pick;
    case IFL_SCALE:
        return policy->ops.scale && policy->ops.scale->want;
    case IFL_DRAFT:
        return policy->ops.draft && (!policy->ops.draft->ask || policy->ops.draft->most);
    default:
        return false;
    }
}

/* What the contract has room for, and the loop does not do yet. */
static const char *not_flown(const struct ifl_policy *policy)
{
    if (policy->kind == IFL_SCALE)
        return "scales a cluster, and the clusters of this version keep their size";
    if (policy->kind != IFL_ROUTE)
        return NULL;
    if (policy->ops.route->balance)
        return "has `balance`, which is not asked in this version: running requests move by "
               "cluster.migration";
    return NULL;
}

static bool has_replica_hooks(const struct ifl_policy *policy)
{
    return policy->on_join || policy->on_start || policy->on_undo || policy->on_preempt ||
           policy->on_step_start || policy->on_step_end || policy->on_leave || policy->steady;
}

/* *of: the parameter that is wrong. */
static const char *check_params(const struct ifl_policy *policy, const struct ifl_param **of)
{
    for (size_t i = 0; i < policy->n_params; i++) {
        const char *wrong = check_param(&policy->params[i], policy->params_bytes);
        for (size_t j = 0; j < i && !wrong; j++)
            if (strcmp(policy->params[i].name, policy->params[j].name) == 0)
                wrong = "has two parameters of one name";
        *of = &policy->params[i];
        if (wrong)
            return wrong;
    }
    *of = NULL;
    return NULL;
}

/* *of: the parameter that is wrong; NULL: nothing is, or the policy as a whole. */
static const char *check_policy(const struct ifl_policy *policy, const struct ifl_param **of)
{
    *of = NULL;
    if (!policy->name || !*policy->name)
        return "has no name";
    if (!policy->doc)
        return "has no doc";
    if (!answers(policy))
        return "has no ops for its kind, or its kind is unknown";
    if (not_flown(policy))
        return not_flown(policy);
    if (policy->n_params && !policy->params)
        return "has parameters without a table";
    if (policy->params && policy->n_params == 0)
        return "has a table of parameters and n_params 0: none of them would be read";
    if (module_is_of_cluster(policy->kind) && has_replica_hooks(policy))
        return "has a hook of a replica, which is not called for modules of a cluster: their hooks "
               "are in their ops";
    if (module_is_of_cluster(policy->kind) && policy->request_bytes > 0)
        return "has request_bytes, and a module of the cluster has no part of a request";
    if (policy->kind != IFL_ROUTE && policy->replica_bytes > 0)
        return "has replica_bytes, and only a router has a part of each replica";
    const char *wrong = check_params(policy, of);
    if (wrong)
        return wrong;
    return registry_find(policy->kind, policy->name) ? "is there already" : NULL;
}

/* ---- loading ---- */

static int check_header(const struct ifl_policy_list *list, const char *path,
                        struct ifl_error *error)
{
    if (list->abi != IFL_POLICY_ABI)
        return ifl_fail_at(error, path, 0, 0, "policy ABI %u, expected %u: build it anew",
                           (unsigned)list->abi, IFL_POLICY_ABI);
    if (list->policy_bytes != sizeof(struct ifl_policy))
        return ifl_fail_at(error, path, 0, 0, "struct ifl_policy of %zu bytes, expected %zu",
                           list->policy_bytes, sizeof(struct ifl_policy));
    if (list->n < 1 || list->n > MAX_IN_LIST)
        return ifl_fail_at(error, path, 0, 0, "a list of %zu policies, expected 1 to %d", list->n,
                           MAX_IN_LIST);
    if (n_loaded + list->n > MAX_LOADED)
        return ifl_fail_at(error, path, 0, 0, "more than %d loaded policies", MAX_LOADED);
    return 0;
}

static int refuse(const char *path, size_t place, const struct ifl_policy *policy,
                  const char *wrong, const struct ifl_param *param, struct ifl_error *error)
{
    if (!policy)
        return ifl_fail_at(error, path, 0, 0, "policy %zu of its list %s", place, wrong);
    const char *kind = module_kind_name(policy->kind);
    if (!policy->name || !*policy->name)
        return ifl_fail_at(error, path, 0, 0, "policy %zu of its list, of kind %s, %s", place, kind,
                           wrong);
    const char *of = param && param->name ? param->name : "";
    return ifl_fail_at(error, path, 0, 0, "policy %zu of its list, %s %s, %s%s%s", place, kind,
                       policy->name, wrong, *of ? ": " : "", of);
}

/* Reads the texts of a policy, which are printed later: one at a wrong address crashes while the
 * plug-in is loaded, so that the message names it. */
static void read_texts(const struct ifl_policy *policy)
{
    volatile size_t n_chars = strlen(policy->doc);
    for (size_t i = 0; i < policy->n_params; i++) {
        const struct ifl_param *param = &policy->params[i];
        n_chars += strlen(param->doc);
        n_chars += param->unit ? strlen(param->unit) : 0;
        n_chars += param->choices ? strlen(param->choices) : 0;
    }
    (void)n_chars;
}

/* Adds the policies one by one, so that a list cannot name a module twice; all or none. */
static int add_list(const struct ifl_policy_list *list, const char *path, struct ifl_error *error)
{
    const size_t n_before = n_loaded;
    for (size_t i = 0; i < list->n; i++) {
        const struct ifl_policy *policy = list->of[i];
        const struct ifl_param *param = NULL;
        const char *wrong = policy ? check_policy(policy, &param) : "is NULL";
        const struct ifl_policy *guarded =
            wrong ? NULL : guarded_policy_create(policy, module_kind_name(policy->kind), path);
        if (guarded) {
            read_texts(policy);
            loaded[n_loaded++] = guarded;
            continue;
        }
        while (n_loaded > n_before)
            guarded_policy_free(loaded[--n_loaded]);
        if (!wrong)
            return ifl_fail_nomem(error);
        return refuse(path, i + 1, policy, wrong, param, error);
    }
    return 0;
}

static int add_symbol(void *library, const char *path, struct ifl_error *error)
{
    const struct ifl_policy_list *list = dlsym(library, IFL_POLICIES_SYMBOL);
    if (!list && dlsym(library, "ifl_policies_v1"))
        return ifl_fail_at(error, path, 0, 0,
                           "policy ABI 2 or before, expected %u: bring it to the headers of today",
                           IFL_POLICY_ABI);
    if (!list)
        return ifl_fail_at(error, path, 0, 0, "no symbol %s, expected a list of policies",
                           IFL_POLICIES_SYMBOL);
    const int code = check_header(list, path, error);
    return code < 0 ? code : add_list(list, path, error);
}

/* Runs the constructors of the library and reads what its tables point to. */
static int load_marked(const char *full, const char *path, struct ifl_error *error)
{
    ifl_input_note(path);
    void *library = dlopen(full, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return ifl_fail_at(error, path, 0, 0, "not a plug-in: %s", dlerror());
    const int code = add_symbol(library, path, error);
    if (code < 0)
        dlclose(library);
    return code; /* otherwise the library stays until the program ends */
}

/* The library's destructors run as the program ends, and those of others with them. */
static void note_end(const char *path)
{
    static bool others;
    static char module[600];
    static const struct guard_call call = {module, "its destructor"};
    snprintf(module, sizeof module, others ? "a plug-in, perhaps %.560s," : "plug-in %.580s", path);
    others = true;
    guard_end_in(&call);
}

static int load(const char *full, const char *path, struct ifl_error *error)
{
    static char module[600];
    static const struct guard_call call = {module, "loading"};
    snprintf(module, sizeof module, "plug-in %.580s", path);
    guard_arm();
    const struct guard_call *before = guard_enter(&call);
    const int code = load_marked(full, path, error);
    guard_leave(before);
    if (code == 0)
        note_end(path);
    return code;
}

int registry_load_plugin(const char *path, struct ifl_error *error)
{
    /* A bare name would be searched in the system's library folders. */
    char full[4096];
    const int n_chars = snprintf(full, sizeof full, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (n_chars >= (int)sizeof full || access(full, F_OK) < 0)
        return ifl_fail_at(error, path, 0, 0, "there is no such file, expected a plug-in");
    return load(full, path, error);
}
