/* Safetensors files: where each tensor lies, and its numbers as fp32.
 *
 *     8 bytes   length n of the header, little endian
 *     n bytes   JSON: {"name": {"dtype": "BF16", "shape": [..], "data_offsets": [from, to]}, ..}
 *     the rest  the tensors' data, row by row, without holes
 *
 * Format: github.com/huggingface/safetensors. Offsets count from the end of the header. A file is
 * checked as a whole before any tensor is read: sizes, types, holes, overlaps, bytes left over.
 */
#ifndef GPU_SAFETENSORS_H
#define GPU_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

enum {
    TENSOR_MAX_DIMS = 8,
    /* Twice the 4 MB of 1000 layers with 20 tensors of 200 bytes each. The reference implementation
     * accepts 100 MB, which takes a JSON parser about a gigabyte. */
    SAFETENSORS_MAX_HEADER_BYTES = 8 << 20,
};

enum tensor_type { TENSOR_F32, TENSOR_F16, TENSOR_BF16, TENSOR_OTHER };

struct tensor {
    const char *name;
    enum tensor_type type;
    int32_t n_dims;
    int64_t dims[TENSOR_MAX_DIMS];
    uint64_t from, to; /* bytes, from the start of the data */
};

struct safetensors {
    char path[1024];
    int fd; /* -1: only the header is known */
    uint64_t data_at;
    struct tensor *of; /* in order of their data */
    size_t n;
    void *names; /* memory of the tensors' names; owned */
};

int safetensors_open(const char *path, struct safetensors *file, struct ifl_error *error);
/* Parses only the header, which n_data bytes of data follow; `path` is for messages. */
int safetensors_parse(const char *path, const char *header, size_t n_header, uint64_t n_data,
                      struct safetensors *file, struct ifl_error *error);
/* Accepts a struct after a failed open or parse. */
void safetensors_close(struct safetensors *file);

/* NULL if there is no tensor of that name. */
const struct tensor *safetensors_find(const struct safetensors *file, const char *name);
/* The number of elements; the tensor's type must be a float. */
size_t tensor_numbers(const struct tensor *tensor);
/* Reads the whole tensor as fp32; n_numbers must be its number of elements. */
int safetensors_read(const struct safetensors *file, const struct tensor *tensor, float *numbers,
                     size_t n_numbers, struct ifl_error *error);
/* Reads the elements [first, first + n_numbers) of the tensor as fp32. */
int safetensors_read_part(const struct safetensors *file, const struct tensor *tensor, size_t first,
                          size_t n_numbers, float *numbers, struct ifl_error *error);

#endif
