#include "checkpoint.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inflight/huggingface.h"
#include "inflight/minmax.h"

enum { MAX_SHARDS = 1024, MAX_PATH = 512 };

/* ---- opening ---- */

static int open_shard(struct checkpoint *checkpoint, const char *name, struct ifl_error *error)
{
    char path[2 * MAX_PATH];
    snprintf(path, sizeof path, "%s/%s", checkpoint->dir, name);
    /* Counted first, so that a shard that fails is closed with the others. */
    return safetensors_open(path, &checkpoint->shards[checkpoint->n_shards++], error);
}

/* The open shard of that name, or NULL. */
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
    checkpoint->index = ifl_hf_document(path, SAFETENSORS_MAX_HEADER_BYTES, error);
    if (!checkpoint->index)
        return error->code;
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

/* The shard that should hold the tensor; NULL if the index does not name it. */
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

static const struct tensor *find(const struct checkpoint *checkpoint, const char *name,
                                 const struct safetensors **file)
{
    *file = shard_of(checkpoint, name);
    return *file ? safetensors_find(*file, name) : NULL;
}

int checkpoint_read(const struct checkpoint *checkpoint, const char *name, int64_t n_rows,
                    int64_t n_columns, float *numbers, struct ifl_error *error)
{
    const struct safetensors *file;
    const struct tensor *tensor = find(checkpoint, name, &file);
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
    const struct safetensors *file;
    const struct tensor *tensor = find(checkpoint, name, &file);
    return tensor ? tensor->type : TENSOR_OTHER;
}

bool checkpoint_has(const struct checkpoint *checkpoint, const char *name)
{
    const struct safetensors *file;
    return find(checkpoint, name, &file) != NULL;
}

enum { COMPARED_NUMBERS = 4096 };

int checkpoint_equal(const struct checkpoint *checkpoint, const char *a, const char *b,
                     struct ifl_error *error)
{
    const struct safetensors *files[2];
    const struct tensor *of[2] = {find(checkpoint, a, &files[0]), find(checkpoint, b, &files[1])};
    float numbers[2][COMPARED_NUMBERS];
    if (!of[0] || !of[1] || of[0]->type == TENSOR_OTHER || of[1]->type == TENSOR_OTHER ||
        of[0]->n_dims != of[1]->n_dims || memcmp(of[0]->dims, of[1]->dims, sizeof of[0]->dims) != 0)
        return 0;
    const size_t n_all = tensor_numbers(of[0]);
    for (size_t done = 0, n; done < n_all; done += n) {
        n = ifl_min(n_all - done, COMPARED_NUMBERS);
        for (int i = 0; i < 2; i++)
            if (safetensors_read_part(files[i], of[i], done, n, numbers[i], error) < 0)
                return error->code;
        if (memcmp(numbers[0], numbers[1], n * sizeof *numbers[0]) != 0)
            return 0;
    }
    return 1;
}
