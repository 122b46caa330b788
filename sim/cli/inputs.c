#include "cli/inputs.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "inflight/inputs.h"

#include "base/data.h"
#include "config/registry.h"
#include "cost/hardware.h"
#include "cost/step_log.h"

enum { MAX_PATH_BYTES = 512 };

/* ---- a file ---- */

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static void note_age(struct inputs *inputs, const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0 || !S_ISREG(status.st_mode) ||
        !is_later(&status.st_mtim, &inputs->newest))
        return;
    inputs->newest = status.st_mtim;
    snprintf(inputs->newest_path, sizeof inputs->newest_path, "%s", path);
}

/* What is done with each file of an input. */
struct taking {
    struct inputs *inputs; /* NULL: it is only noted as an input (inflight/inputs.h) */
    struct checksum sum;
};

static void take(struct taking *taking, const char *path)
{
    ifl_input_note(path);
    if (!taking->inputs)
        return;
    note_age(taking->inputs, path);
    checksum_add(&taking->sum, path);
}

static void take_deployment(struct taking *taking, const char *path)
{
    char of[MAX_PATH_BYTES];
    snprintf(of, sizeof of, "%s", path);
    for (int i = 0; *of && i <= DEPLOYMENT_BASES; i++) {
        char base[MAX_PATH_BYTES];
        take(taking, of);
        deployment_find_base(of, base);
        memcpy(of, base, sizeof of);
    }
}

static void take_hardware(struct taking *taking, const char *path)
{
    char corrections[HARDWARE_PATH_BYTES];
    struct platform *platform = malloc(sizeof *platform);
    struct ifl_error error;
    take(taking, path);
    if (platform && hardware_load(path, platform, &error) == 0) {
        if (hardware_corrections(path, &platform->hardware, corrections))
            take(taking, corrections);
        take_deployment(taking, platform->deployment_path);
    }
    free(platform);
}

static void take_folder(struct taking *taking, const char *dir)
{
    char pattern[MAX_PATH_BYTES + 8];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*", dir);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        take(taking, found.gl_pathv[i]);
    globfree(&found);
}

static void take_kind(struct taking *taking, enum input_kind kind, const char *path)
{
    struct stat status;
    if (kind == INPUT_HARDWARE)
        take_hardware(taking, path);
    else if (kind == INPUT_DEPLOYMENT)
        take_deployment(taking, path);
    else if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        take_folder(taking, path);
    else
        take(taking, path);
}

static struct checksum sum_of(struct inputs *inputs, enum input_kind kind, const char *path)
{
    struct taking taking = {.inputs = inputs};
    take_kind(&taking, kind, path);
    return taking.sum;
}

/* ---- those of a point ---- */

/* "" where the point has none. */
static void path_of(const struct config *config, enum input_kind kind, char path[MAX_PATH_BYTES])
{
    struct ifl_error error;
    const struct cost_config *cost = &config->cost;
    path[0] = '\0';
    if (kind == INPUT_TRACE)
        snprintf(path, MAX_PATH_BYTES, "%s", config->workload.trace);
    if (kind == INPUT_TOKENIZER)
        snprintf(path, MAX_PATH_BYTES, "%s", config->workload.tokenizer);
    if (kind == INPUT_MODEL && *config->model &&
        data_resolve("models", config->model, path, &error) < 0)
        path[0] = '\0';
    if (kind == INPUT_HARDWARE && *config->hardware &&
        data_resolve("hardware", config->hardware, path, &error) < 0)
        path[0] = '\0';
    if (kind == INPUT_DEPLOYMENT && deployment_find(config->deployment, NULL, path, &error) < 0)
        path[0] = '\0';
    if (kind == INPUT_COST && cost->model == COST_TABLE)
        snprintf(path, MAX_PATH_BYTES, "%s", cost->dir);
    if (kind == INPUT_COST && cost->model == COST_RECORDED &&
        step_log_find(cost->dir, path, &error) < 0)
        path[0] = '\0';
}

static const struct known_input *find(const struct inputs *inputs, const char *path)
{
    for (size_t i = inputs->n; i-- > 0;)
        if (strcmp(inputs->of[i].path, path) == 0)
            return &inputs->of[i];
    return NULL;
}

static const struct known_input *learn(struct inputs *inputs, enum input_kind kind,
                                       const char *path)
{
    struct known_input *of = realloc(inputs->of, (inputs->n + 1) * sizeof *of);
    if (!of)
        return NULL;
    inputs->of = of;
    of[inputs->n].path = strdup(path);
    if (!of[inputs->n].path)
        return NULL;
    of[inputs->n].sum = sum_of(inputs, kind, path);
    return &of[inputs->n++];
}

static int sum_one(struct inputs *inputs, enum input_kind kind, const char *path,
                   struct checksum *sum, struct ifl_error *error)
{
    pthread_mutex_lock(&inputs->lock);
    const struct known_input *known = find(inputs, path);
    if (!known)
        known = learn(inputs, kind, path);
    if (known)
        *sum = known->sum;
    pthread_mutex_unlock(&inputs->lock);
    return known ? 0 : ifl_fail_nomem(error);
}

/* Those of all pools: one that changes changes the sum. */
static int sum_kind(struct inputs *inputs, const struct config *config, enum input_kind kind,
                    struct checksum *sum, struct ifl_error *error)
{
    char path[MAX_PATH_BYTES];
    for (size_t i = 0; i < config_n_pools(config); i++) {
        struct checksum one = {0, 0};
        path_of(config_of_pool(config, i), kind, path);
        if (*path && sum_one(inputs, kind, path, &one, error) < 0)
            return error->code;
        *sum = i == 0 ? one : checksum_join(*sum, one);
    }
    return 0;
}

int inputs_sum(struct inputs *inputs, const struct config *config, struct input_sums *sums,
               struct ifl_error *error)
{
    memset(sums, 0, sizeof *sums);
    for (enum input_kind kind = 0; kind < INPUT_PLUGINS; kind++)
        if (sum_kind(inputs, config, kind, &sums->of[kind], error) < 0)
            return error->code;
    sums->of[INPUT_PLUGINS] = inputs->plugin_sum;
    return 0;
}

void inputs_note(const struct config *config)
{
    char path[MAX_PATH_BYTES];
    struct taking taking = {.inputs = NULL};
    for (size_t i = 0; i < config_n_pools(config); i++)
        for (enum input_kind kind = 0; kind < INPUT_PLUGINS; kind++) {
            path_of(config_of_pool(config, i), kind, path);
            if (*path)
                take_kind(&taking, kind, path);
        }
    for (size_t i = 0; i < config_n_pools(config); i++) {
        const struct cost_config *cost = &config_of_pool(config, i)->cost;
        if (cost->model == COST_RECORDED && step_log_find_work(cost->dir, path))
            take(&taking, path);
    }
}

void inputs_describe(const struct inputs *inputs, const struct config *config, enum input_kind kind,
                     char text[640])
{
    static const char *const names[N_INPUTS] = {
        "trace", "tokenizer", "model", "hardware profile", "deployment", "cost.dir", "plug-in"};
    char path[MAX_PATH_BYTES];
    if (kind == INPUT_PLUGINS)
        snprintf(path, sizeof path, "%s", inputs->n_plugins == 1 ? inputs->plugins[0] : "");
    else
        path_of(config, kind, path);
    snprintf(text, 640, "%s%s%s", *path ? names[kind] : "the list of plug-ins, or one of them,",
             *path ? " " : "", path);
}

bool inputs_newer_than(const struct inputs *inputs, const struct timespec *when)
{
    return is_later(&inputs->newest, when);
}

/* ---- all ---- */

IFL_FOR_ASSERTS static inline bool no_plugins_yet(void)
{
    size_t i = 0;
    while (registry_at(i) && registry_is_builtin(registry_at(i)))
        i++;
    return !registry_at(i);
}

void inputs_init(struct inputs *inputs, const char *const *plugins, size_t n_plugins)
{
    ifl_assert(no_plugins_yet());
    *inputs = (struct inputs){.plugins = plugins, .n_plugins = n_plugins};
    pthread_mutex_init(&inputs->lock, NULL);
    struct taking taking = {.inputs = inputs};
    for (size_t i = 0; i < n_plugins; i++)
        take(&taking, plugins[i]);
    inputs->plugin_sum = taking.sum;
}

void inputs_finish(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->n; i++)
        free(inputs->of[i].path);
    free(inputs->of);
    pthread_mutex_destroy(&inputs->lock);
}
