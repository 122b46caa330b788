/* A Hugging Face directory's tensors: one model.safetensors, or the shards that
 * model.safetensors.index.json names, each in the one that it names. */
#ifndef GPU_CHECKPOINT_H
#define GPU_CHECKPOINT_H

#include <stdbool.h>

#include "safetensors.h"

struct checkpoint {
    char dir[512];
    struct safetensors *shards;
    size_t n_shards;
    void *index; /* owns where it says that tensors are; NULL: there is one file */
};

int checkpoint_open(const char *dir, struct checkpoint *checkpoint, struct ifl_error *error);
void checkpoint_close(struct checkpoint *checkpoint);

/* The tensor of that name as fp32; it must be [n_rows][n_columns], or [n_rows] where n_columns
 * is 0. */
int checkpoint_read(const struct checkpoint *checkpoint, const char *name, int64_t n_rows,
                    int64_t n_columns, float *numbers, struct ifl_error *error);

/* How a tensor's numbers are stored; TENSOR_OTHER where there is none of that name. */
enum tensor_type checkpoint_type(const struct checkpoint *checkpoint, const char *name);
bool checkpoint_has(const struct checkpoint *checkpoint, const char *name);
/* 1 where both are there with the same shape and numbers, 0 where not; negative: an error. */
int checkpoint_equal(const struct checkpoint *checkpoint, const char *a, const char *b,
                     struct ifl_error *error);

#endif
