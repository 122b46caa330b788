#include "cli/inputs.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/data.h"
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

static void take(struct inputs *inputs, const char *path, struct checksum *sum)
{
    note_age(inputs, path);
    checksum_add(sum, path);
}

static void take_hardware(struct inputs *inputs, const char *path, struct checksum *sum)
{
    char corrections[HARDWARE_PATH_BYTES];
    struct platform *platform = malloc(sizeof *platform);
    struct ifl_error error;
    take(inputs, path, sum);
    if (platform && hardware_load(path, platform, &error) == 0) {
        if (hardware_corrections(path, &platform->hardware, corrections))
            take(inputs, corrections, sum);
        if (*platform->deployment_path)
            take(inputs, platform->deployment_path, sum);
    }
    free(platform);
}

static void take_folder(struct inputs *inputs, const char *dir, struct checksum *sum)
{
    char pattern[MAX_PATH_BYTES + 8];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*", dir);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        take(inputs, found.gl_pathv[i], sum);
    globfree(&found);
}

static struct checksum sum_of(struct inputs *inputs, enum input_kind kind, const char *path)
{
    struct checksum sum = {0, 0};
    struct stat status;
    if (kind == INPUT_HARDWARE)
        take_hardware(inputs, path, &sum);
    else if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        take_folder(inputs, path, &sum);
    else
        take(inputs, path, &sum);
    return sum;
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
    for (size_t i = 0; i < n_plugins; i++)
        take(inputs, plugins[i], &inputs->plugin_sum);
}

void inputs_finish(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->n; i++)
        free(inputs->of[i].path);
    free(inputs->of);
    pthread_mutex_destroy(&inputs->lock);
}
