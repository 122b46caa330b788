#include "checkpoint.h"

#include <jansson.h>
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

/* NULL if it has not been opened. */
static const struct safetensors *shard_named(const struct checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->n_shards; i++) {
        const char *slash = strrchr(checkpoint->shards[i].path, '/');
        if (slash && strcmp(slash + 1, name) == 0)
            return &checkpoint->shards[i];
    }
    return NULL;
}

static json_t *weight_map(const struct checkpoint *checkpoint)
{
    return json_object_get(checkpoint->index, "weight_map");
}

static int open_shards(struct checkpoint *checkpoint, const char *path, struct ifl_error *error)
{
    json_t *const map = weight_map(checkpoint);
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
        if (shard_named(checkpoint, name))
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
    checkpoint->index = json_load_file(path, JSON_REJECT_DUPLICATES, &found);
    if (!checkpoint->index)
        return ifl_fail_at(error, path, found.line > 0 ? found.line : 0,
                           found.line > 0 ? found.column : 0, "%.160s, expected a JSON object",
                           found.text);
    return open_shards(checkpoint, path, error);
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
    json_decref(checkpoint->index);
    *checkpoint = (struct checkpoint){0};
}

/* ---- reading ---- */

/* Where a tensor should be; NULL if nothing says so. */
static const struct safetensors *shard_of(const struct checkpoint *checkpoint, const char *name)
{
    if (!checkpoint->index)
        return &checkpoint->shards[0];
    const char *file = json_string_value(json_object_get(weight_map(checkpoint), name));
    return file ? shard_named(checkpoint, file) : NULL;
}

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
    const struct safetensors *file = shard_of(checkpoint, name);
    const struct tensor *tensor = file ? safetensors_find(file, name) : NULL;
    const size_t n = (size_t)(n_rows * (n_columns ? n_columns : 1));
    if (!tensor)
        return ifl_fail_at(error, file ? file->path : checkpoint->dir, 0, 0,
                           "there is no tensor %s%s", name,
                           file && checkpoint->index ? ", expected it as the index has it" : "");
    const int rc = check_shape(file, tensor, n_rows, n_columns, error);
    return rc < 0 ? rc : safetensors_read(file, tensor, numbers, n, error);
}

enum tensor_type checkpoint_type(const struct checkpoint *checkpoint, const char *name)
{
    const struct safetensors *file = shard_of(checkpoint, name);
    const struct tensor *tensor = file ? safetensors_find(file, name) : NULL;
    return tensor ? tensor->type : TENSOR_OTHER;
}
