#include "checkpoint.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SHARDS = 1024, MAX_PATH = 512 };

/* ---- opening ---- */

static int open_shard(struct checkpoint *checkpoint, const char *name, struct ifl_error *error)
{
    char path[2 * MAX_PATH];
    snprintf(path, sizeof path, "%s/%s", checkpoint->dir, name);
    /* Counted first, so that a shard that fails is closed with the others. */
    return safetensors_open(path, &checkpoint->shards[checkpoint->n_shards++], error);
}

static bool opened(const struct checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->n_shards; i++) {
        const char *slash = strrchr(checkpoint->shards[i].path, '/');
        if (slash && strcmp(slash + 1, name) == 0)
            return true;
    }
    return false;
}

static int open_shards(struct checkpoint *checkpoint, const char *path, json_t *map,
                       struct ifl_error *error)
{
    const char *tensor;
    json_t *value;
    if (!json_is_object(map))
        return ifl_fail_at(error, path, 0, 0, "no weight_map, expected one from tensors to files");
    json_object_foreach(map, tensor, value)
    {
        const char *name = json_string_value(value);
        if (!name || !*name || strchr(name, '/') || strlen(name) > 255)
            return ifl_fail_at(error, path, 0, 0,
                               "tensor %.100s is in %.60s, expected a file of this folder", tensor,
                               name ? name : "no file");
        if (opened(checkpoint, name))
            continue;
        if (checkpoint->n_shards == MAX_SHARDS)
            return ifl_fail_at(error, path, 0, 0, "more than %d files", MAX_SHARDS);
        if (open_shard(checkpoint, name, error) < 0)
            return error->code;
    }
    return 0;
}

static int open_index(struct checkpoint *checkpoint, const char *path, struct ifl_error *error)
{
    json_error_t found;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &found);
    if (!root)
        return ifl_fail_at(error, path, found.line > 0 ? found.line : 0,
                           found.line > 0 ? found.column : 0, "%.160s, expected a JSON object",
                           found.text);
    const int rc = open_shards(checkpoint, path, json_object_get(root, "weight_map"), error);
    json_decref(root);
    return rc;
}

int checkpoint_open(const char *dir, struct checkpoint *checkpoint, struct ifl_error *error)
{
    char index[2 * MAX_PATH];
    *checkpoint = (struct checkpoint){0};
    if (strlen(dir) >= sizeof checkpoint->dir)
        return ifl_fail(error, IFL_E_INPUT, "the weights' path is longer than %d bytes", MAX_PATH);
    snprintf(checkpoint->dir, sizeof checkpoint->dir, "%s", dir);
    checkpoint->shards = calloc(MAX_SHARDS, sizeof *checkpoint->shards);
    if (!checkpoint->shards)
        return ifl_fail_nomem(error);
    snprintf(index, sizeof index, "%s/model.safetensors.index.json", dir);
    return access(index, F_OK) == 0 ? open_index(checkpoint, index, error)
                                    : open_shard(checkpoint, "model.safetensors", error);
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_shards; i++)
        safetensors_close(&checkpoint->shards[i]);
    free(checkpoint->shards);
    *checkpoint = (struct checkpoint){0};
}

/* ---- reading ---- */

static int check_shape(const struct safetensors *file, const struct tensor *tensor, int64_t n_rows,
                       int64_t n_columns, struct ifl_error *error)
{
    const int32_t n_dims = n_columns ? 2 : 1;
    if (tensor->n_dims == n_dims && tensor->dims[0] == n_rows &&
        (!n_columns || tensor->dims[1] == n_columns))
        return 0;
    return ifl_fail_at(error, file->path, 0, 0,
                       "tensor %.100s has %d dimensions, the first two %lld x %lld, expected %lld "
                       "x %lld",
                       tensor->name, tensor->n_dims, (long long)tensor->dims[0],
                       (long long)tensor->dims[1], (long long)n_rows, (long long)n_columns);
}

int checkpoint_read(const struct checkpoint *checkpoint, const char *name, int64_t n_rows,
                    int64_t n_columns, float *numbers, struct ifl_error *error)
{
    for (size_t i = 0; i < checkpoint->n_shards; i++) {
        const struct safetensors *file = &checkpoint->shards[i];
        const struct tensor *tensor = safetensors_find(file, name);
        if (!tensor)
            continue;
        const size_t n = (size_t)(n_rows * (n_columns ? n_columns : 1));
        const int rc = check_shape(file, tensor, n_rows, n_columns, error);
        return rc < 0 ? rc : safetensors_read(file, tensor, numbers, n, error);
    }
    return ifl_fail_at(error, checkpoint->dir, 0, 0, "there is no tensor %s", name);
}

enum tensor_type checkpoint_type(const struct checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->n_shards; i++) {
        const struct tensor *tensor = safetensors_find(&checkpoint->shards[i], name);
        if (tensor)
            return tensor->type;
    }
    return TENSOR_OTHER;
}
