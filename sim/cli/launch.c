#include "cli/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data.h"
#include "base/guard.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/usage.h"
#include "config/registry.h"

/* ---- talking ---- */

bool launch_speaks(const struct launch *launch)
{
    return ranks_own() == 0 && !launch->quiet;
}

void launch_say(void *context, const char *text)
{
    struct launch *launch = context;
    size_t i = 0;
    pthread_mutex_lock(&launch->lock);
    while (i < launch->n_notes && strcmp(launch->notes[i], text) != 0)
        i++;
    if (i == launch->n_notes && i < LAUNCH_MAX_NOTES && (launch->notes[i] = strdup(text))) {
        launch->n_notes++;
        cli_note(NULL, text);
    }
    pthread_mutex_unlock(&launch->lock);
}

char *launch_label(const struct launch *launch, size_t point)
{
    char *label = NULL;
    size_t n_bytes;
    FILE *out = open_memstream(&label, &n_bytes);
    if (!out)
        return NULL;
    for (size_t a = 0; a < study_n_axes(launch->study); a++) {
        const char *key = study_axis(launch->study, a), *dot = strrchr(key, '.');
        fprintf(out, "%s%s=%s", a ? " " : "", dot ? dot + 1 : key,
                study_value(launch->study, point, a));
    }
    fclose(out);
    return label;
}

/* ---- the beginning ---- */

int launch_read(struct launch *launch, const struct command *command, int argc, char **argv)
{
    launch->n_threads = 1;
    guard_erase_with(progress_erase());
    pthread_mutex_init(&launch->lock, NULL);
    if (options_read(command, launch, argc, argv, &launch->configs) < 0)
        return -1;
    if (launch->n_threads < 1) {
        fprintf(stderr, "inflight %s: -j 0: expected a whole number from 1 on\n", command->name);
        return -1;
    }
    if (launch->configs.n == 1 && *launch->configs.of[0])
        return 0;
    usage_fail(command);
    return -1;
}

static int load_plugins(const struct text_list *plugins, struct ifl_error *error)
{
    int rc = 0;
    for (size_t i = 0; i < plugins->n && rc == 0; i++)
        rc = registry_load_plugin(plugins->of[i], error);
    return rc;
}

/* Points on an engine that run side by side would disturb each other's measurements. */
static int check_jobs(struct launch *launch)
{
    if (!study_any(launch->study).flies_engine || (launch->n_threads == 1 && ranks_n() == 1))
        return 0;
    if (launch->n_threads > 1)
        return ifl_fail(&launch->error, IFL_E_INPUT,
                        "--jobs is %lld, expected 1 where an engine flies in wall time",
                        launch->n_threads);
    return ifl_fail(&launch->error, IFL_E_INPUT,
                    "there are %d ranks, expected 1 where an engine flies in wall time", ranks_n());
}

int launch_load(struct launch *launch)
{
    const struct study_options study = {launch->config_path, launch->sets.of, launch->sets.n,
                                        launch->places};
    int rc = ranks_join(&launch->error);
    inputs_init(&launch->inputs, launch->plugins.of, launch->plugins.n);
    if (rc < 0)
        return rc;
    rc = load_plugins(&launch->plugins, &launch->error);
    if (rc == 0)
        rc = data_find_config(launch->configs.of[0], launch->config_path, &launch->error);
    if (rc == 0)
        rc = study_load(&study, &launch->study, &launch->error);
    if (rc == 0)
        rc = check_jobs(launch);
    return ranks_agree(rc, &launch->error);
}

/* ---- the end ---- */

/* mpirun kills the remaining ranks once one exits with an error, and the line of rank 0 must be out
 * by then. So only rank 0 exits with an error. */
int launch_end(struct launch *launch, int code)
{
    const int exit_code = code < 0 && ranks_own() == 0 ? cli_fail(&launch->error) : 0;
    ranks_leave();
    study_free(launch->study);
    for (size_t i = 0; i < launch->n_notes; i++)
        free(launch->notes[i]);
    inputs_finish(&launch->inputs);
    pthread_mutex_destroy(&launch->lock);
    return exit_code;
}
