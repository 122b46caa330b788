/* A Hugging Face directory's tensors, in one model.safetensors or in shards. With shards,
 * model.safetensors.index.json names the shard of each tensor. */
#ifndef GPU_CHECKPOINT_H
#define GPU_CHECKPOINT_H

#include <stdbool.h>

#include "safetensors.h"

struct checkpoint {
    char dir[512];
    struct safetensors *shards;
    size_t n_shards;
    void *index; /* the parsed index, which owns the names of shards; NULL: there is one file */
};

int checkpoint_open(const char *dir, struct checkpoint *checkpoint, struct ifl_error *error);
void checkpoint_close(struct checkpoint *checkpoint);

/* Reads the tensor of that name as fp32. Its shape must be [n_rows][n_columns], or [n_rows] if
 * n_columns is 0. */
int checkpoint_read(const struct checkpoint *checkpoint, const char *name, int64_t n_rows,
                    int64_t n_columns, float *numbers, struct ifl_error *error);

/* How the numbers of the named tensor are stored; TENSOR_OTHER if there is no such tensor. */
enum tensor_type checkpoint_type(const struct checkpoint *checkpoint, const char *name);
bool checkpoint_has(const struct checkpoint *checkpoint, const char *name);
/* Returns 1 if both tensors exist with the same shape and numbers, 0 if not, or a negative code. */
int checkpoint_equal(const struct checkpoint *checkpoint, const char *a, const char *b,
                     struct ifl_error *error);

#endif
