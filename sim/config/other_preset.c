/* Reads a study's first point with another preset than the file's. */
#include <string.h>

#include "config/layers.h"
#include "config/other_preset.h"
#include "config/study_parts.h"
#include "config/sweep.h"

/* What the file says of its server whatever the scheduler, from most to least: a preset may have no
 * place for all of it. */
static const struct stay {
    const char *keys[4]; /* of `serving`, NULL-ended */
} stays[] = {
    {{"max_model_len", "kv", "batching.max_seqs", "batching.max_batched_tokens"}},
    {{"max_model_len", "kv", "batching.max_seqs"}},
    {{"max_model_len", "kv"}},
    {{"max_model_len", "kv.memory_utilization"}},
};

enum { N_STAYS = sizeof stays / sizeof *stays };

/* Modules are the preset's: the file's own would stay over them. */
static int keep(struct node *upper, const struct stay *what, struct ifl_error *error)
{
    struct node *serving = tree_node(NODE_MAP, upper);
    const struct node *own = tree_child(upper, "serving");
    int rc = serving ? 0 : ifl_fail_nomem(error);
    for (size_t i = 0; rc == 0 && i < sizeof what->keys / sizeof *what->keys && what->keys[i];
         i++) {
        const struct node *value = own ? tree_at(own, what->keys[i]) : NULL;
        if (value)
            rc = tree_put(serving, what->keys[i], value, error);
    }
    if (rc == 0)
        return tree_set(upper, "serving", serving, error);
    tree_free(serving);
    return rc;
}

static int read_with(const struct study *study, const struct node *upper, const struct stay *what,
                     const char *preset, struct config *config, struct ifl_error *error)
{
    struct node *own = tree_copy(upper), *root = NULL;
    int rc = own ? keep(own, what, error) : ifl_fail_nomem(error);
    if (rc == 0)
        rc = preset_load("serving", preset, &root, error);
    if (rc == 0)
        rc = layer_lay(root, own, error);
    if (rc == 0)
        rc = study_read_layers(study, root, 0, config, error);
    if (rc == 0)
        snprintf(config->serving.preset, sizeof config->serving.preset, "%s", preset);
    tree_free(own);
    tree_free(root);
    return rc;
}

int study_read_other_preset(const struct study *study, const char *preset, struct config *config,
                            struct ifl_error *error)
{
    struct node *upper = tree_copy(study->user);
    int rc = upper ? sweep_lay(study->sweep, 0, upper, error) : ifl_fail_nomem(error);
    for (size_t i = 0; rc == 0 && i < N_STAYS; i++) {
        const int read = read_with(study, upper, &stays[i], preset, config, error);
        if (read == IFL_E_INPUT && i + 1 < N_STAYS)
            continue;
        rc = read;
        break;
    }
    tree_free(upper);
    return rc;
}
