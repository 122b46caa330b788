#include "safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "float_bits.h"
#include "inflight/minmax.h"
#include "inflight/regular_file.h"

/* ---- the header ---- */

static const struct {
    const char *name;
    enum tensor_type type;
    unsigned n_bytes; /* of an element */
} types[] = {
    {"F32", TENSOR_F32, 4},    {"F16", TENSOR_F16, 2},       {"BF16", TENSOR_BF16, 2},
    {"F64", TENSOR_OTHER, 8},  {"I64", TENSOR_OTHER, 8},     {"U64", TENSOR_OTHER, 8},
    {"I32", TENSOR_OTHER, 4},  {"U32", TENSOR_OTHER, 4},     {"I16", TENSOR_OTHER, 2},
    {"U16", TENSOR_OTHER, 2},  {"I8", TENSOR_OTHER, 1},      {"U8", TENSOR_OTHER, 1},
    {"BOOL", TENSOR_OTHER, 1}, {"F8_E5M2", TENSOR_OTHER, 1}, {"F8_E4M3", TENSOR_OTHER, 1},
};

/* The tensor's name comes first behind the format. */
#define FAIL_TENSOR(file, error, format, ...)                                                      \
    ifl_fail_at(error, (file)->path, 0, 0, "tensor %.100s: " format, __VA_ARGS__)

static int read_type(const struct safetensors *file, const json_t *entry, struct tensor *tensor,
                     unsigned *n_bytes, struct ifl_error *error)
{
    const char *name = json_string_value(json_object_get(entry, "dtype"));
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) {
            tensor->type = types[i].type;
            *n_bytes = types[i].n_bytes;
            return 0;
        }
    return FAIL_TENSOR(file, error, "dtype is %.20s, expected a known type", tensor->name,
                       name ? name : "missing");
}

/* Reads the shape; more elements than a byte count can hold is an error. */
static int read_shape(const struct safetensors *file, const json_t *entry, struct tensor *tensor,
                      uint64_t *n_elements, struct ifl_error *error)
{
    const json_t *shape = json_object_get(entry, "shape");
    const size_t n = json_array_size(shape);
    if (!json_is_array(shape) || n > TENSOR_MAX_DIMS)
        return FAIL_TENSOR(file, error, "shape is %s, expected at most %d numbers", tensor->name,
                           json_is_array(shape) ? "longer" : "no list", TENSOR_MAX_DIMS);
    *n_elements = 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *dim = json_array_get(shape, i);
        const json_int_t size = json_integer_value(dim);
        if (!json_is_integer(dim) || size < 0 ||
            (size > 0 && *n_elements > (UINT64_C(1) << 56) / (uint64_t)size))
            return FAIL_TENSOR(file, error, "its dimension %zu is no number or too large",
                               tensor->name, i + 1);
        tensor->dims[i] = size;
        *n_elements *= (uint64_t)size;
    }
    tensor->n_dims = (int32_t)n;
    return 0;
}

static int read_offsets(const struct safetensors *file, const json_t *entry, struct tensor *tensor,
                        uint64_t n_data, struct ifl_error *error)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(from) || !json_is_integer(to) ||
        json_integer_value(from) < 0 || json_integer_value(to) < json_integer_value(from))
        return FAIL_TENSOR(file, error, "data_offsets is missing or wrong, expected [from, to]",
                           tensor->name);
    tensor->from = (uint64_t)json_integer_value(from);
    tensor->to = (uint64_t)json_integer_value(to);
    if (tensor->to > n_data)
        return FAIL_TENSOR(file, error, "its data ends at byte %llu of %llu, expected a whole file",
                           tensor->name, (unsigned long long)tensor->to,
                           (unsigned long long)n_data);
    return 0;
}

static int read_tensor(struct safetensors *file, const char *name, const json_t *entry,
                       uint64_t n_data, struct ifl_error *error)
{
    struct tensor *tensor = &file->of[file->n];
    unsigned n_bytes = 0;
    uint64_t n_elements = 0;
    *tensor = (struct tensor){.name = name};
    if (read_type(file, entry, tensor, &n_bytes, error) < 0 ||
        read_shape(file, entry, tensor, &n_elements, error) < 0 ||
        read_offsets(file, entry, tensor, n_data, error) < 0)
        return error->code;
    if (tensor->to - tensor->from != n_elements * n_bytes)
        return FAIL_TENSOR(file, error, "its data is %llu bytes, expected %llu for its shape", name,
                           (unsigned long long)(tensor->to - tensor->from),
                           (unsigned long long)(n_elements * n_bytes));
    file->n++;
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int check_places(struct safetensors *file, uint64_t n_data, struct ifl_error *error)
{
    uint64_t at = 0;
    if (file->n > 1)
        qsort(file->of, file->n, sizeof *file->of, by_place);
    for (size_t i = 0; i < file->n; at = file->of[i++].to)
        if (file->of[i].from != at)
            return FAIL_TENSOR(file, error,
                               "its data starts at byte %llu, expected %llu, where the one before "
                               "ends",
                               file->of[i].name, (unsigned long long)file->of[i].from,
                               (unsigned long long)at);
    if (at != n_data)
        return ifl_fail_at(error, file->path, 0, 0,
                           "%llu bytes of data, expected %llu as the header has it",
                           (unsigned long long)n_data, (unsigned long long)at);
    return 0;
}

static int read_tensors(struct safetensors *file, json_t *root, uint64_t n_data,
                        struct ifl_error *error)
{
    const char *name;
    json_t *entry;
    file->of = calloc(json_object_size(root) + 1, sizeof *file->of);
    if (!file->of)
        return ifl_fail_nomem(error);
    json_object_foreach(root, name, entry) if (strcmp(name, "__metadata__") != 0 &&
                                               read_tensor(file, name, entry, n_data, error) <
                                                   0) return error->code;
    return check_places(file, n_data, error);
}

int safetensors_parse(const char *path, const char *header, size_t n_header, uint64_t n_data,
                      struct safetensors *file, struct ifl_error *error)
{
    json_error_t found;
    *file = (struct safetensors){.fd = -1};
    snprintf(file->path, sizeof file->path, "%s", path);
    json_t *root = json_loadb(header, n_header, JSON_REJECT_DUPLICATES, &found);
    file->names = root;
    if (!root && json_error_code(&found) == json_error_out_of_memory)
        return ifl_fail_nomem(error);
    if (!json_is_object(root))
        return ifl_fail_at(error, path, 0, 0, "its header is no JSON object (%.120s)",
                           root ? "another value" : found.text);
    return read_tensors(file, root, n_data, error);
}

/* ---- the file ---- */

static int read_fully(const struct safetensors *file, void *bytes, size_t n, uint64_t at,
                      struct ifl_error *error)
{
    char *to = bytes;
    while (n > 0) {
        const ssize_t got = pread(file->fd, to, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return ifl_fail(error, IFL_E_IO, "%s: %s at byte %llu, expected %zu bytes more",
                            file->path, got < 0 ? strerror(errno) : "the file ends",
                            (unsigned long long)at, n);
        to += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

static int read_length(struct safetensors *file, uint64_t n_file, uint64_t *n_header,
                       struct ifl_error *error)
{
    unsigned char bytes[8];
    if (n_file < sizeof bytes)
        return ifl_fail_at(error, file->path, 0, 0, "%llu bytes, expected a safetensors file",
                           (unsigned long long)n_file);
    if (read_fully(file, bytes, sizeof bytes, 0, error) < 0)
        return error->code;
    *n_header = 0;
    for (size_t i = sizeof bytes; i-- > 0;)
        *n_header = *n_header << 8 | bytes[i];
    if (*n_header > n_file - sizeof bytes)
        return ifl_fail_at(error, file->path, 0, 0,
                           "a header of %llu bytes in a file of %llu, expected a safetensors file",
                           (unsigned long long)*n_header, (unsigned long long)n_file);
    if (*n_header > SAFETENSORS_MAX_HEADER_BYTES)
        return ifl_fail_at(error, file->path, 0, 0,
                           "a header of %llu bytes, expected at most %d: more tensors than any "
                           "model that an engine runs",
                           (unsigned long long)*n_header, (int)SAFETENSORS_MAX_HEADER_BYTES);
    return 0;
}

static int read_header(struct safetensors *file, uint64_t n_file, struct ifl_error *error)
{
    uint64_t n_header = 0;
    char path[sizeof file->path];
    const int fd = file->fd;
    if (read_length(file, n_file, &n_header, error) < 0)
        return error->code;
    char *header = malloc(n_header + 1);
    if (!header)
        return ifl_fail_nomem(error);
    memcpy(path, file->path, sizeof path);
    int rc = read_fully(file, header, n_header, 8, error);
    if (rc == 0)
        rc = safetensors_parse(path, header, n_header, n_file - 8 - n_header, file, error);
    file->fd = fd;
    file->data_at = 8 + n_header;
    free(header);
    return rc;
}

int safetensors_open(const char *path, struct safetensors *file, struct ifl_error *error)
{
    int64_t n_bytes = 0;
    *file = (struct safetensors){.fd = -1};
    snprintf(file->path, sizeof file->path, "%s", path);
    file->fd = ifl_open_regular(path, INT64_MAX, "a safetensors file", &n_bytes, error);
    if (file->fd < 0)
        return error->code;
    return read_header(file, (uint64_t)n_bytes, error);
}

void safetensors_close(struct safetensors *file)
{
    if (file->fd >= 0)
        close(file->fd);
    free(file->of);
    json_decref(file->names);
    *file = (struct safetensors){.fd = -1};
}

const struct tensor *safetensors_find(const struct safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->n; i++)
        if (strcmp(file->of[i].name, name) == 0)
            return &file->of[i];
    return NULL;
}

/* ---- numbers ---- */

static size_t number_bytes(enum tensor_type type)
{
    return type == TENSOR_F32 ? 4 : 2;
}

size_t tensor_numbers(const struct tensor *tensor)
{
    ifl_assert(tensor->type != TENSOR_OTHER);
    return (size_t)(tensor->to - tensor->from) / number_bytes(tensor->type);
}

static void widen(enum tensor_type type, const unsigned char *bytes, float *numbers, size_t n)
{
    uint16_t half;
    for (size_t i = 0; i < n; i++) {
        if (type == TENSOR_F32) {
            memcpy(&numbers[i], bytes + 4 * i, 4);
            continue;
        }
        memcpy(&half, bytes + 2 * i, 2);
        numbers[i] = type == TENSOR_BF16 ? float_from_bf16(half) : float_from_fp16(half);
    }
}

int safetensors_read(const struct safetensors *file, const struct tensor *tensor, float *numbers,
                     size_t n_numbers, struct ifl_error *error)
{
    ifl_require(tensor->type == TENSOR_OTHER || n_numbers == tensor_numbers(tensor));
    return safetensors_read_part(file, tensor, 0, n_numbers, numbers, error);
}

int safetensors_read_part(const struct safetensors *file, const struct tensor *tensor, size_t first,
                          size_t n_numbers, float *numbers, struct ifl_error *error)
{
    unsigned char bytes[1 << 16];
    const size_t n_bytes = number_bytes(tensor->type);
    if (tensor->type == TENSOR_OTHER)
        return FAIL_TENSOR(file, error,
                           "its type is no float, expected F32, F16 or "
                           "BF16",
                           tensor->name);
    ifl_require(first + n_numbers <= tensor_numbers(tensor));
    const uint64_t at = file->data_at + tensor->from + first * n_bytes;
    for (size_t done = 0, n; done < n_numbers; done += n) {
        n = ifl_min(n_numbers - done, sizeof bytes / n_bytes);
        if (read_fully(file, bytes, n * n_bytes, at + done * n_bytes, error) < 0)
            return error->code;
        widen(tensor->type, bytes, numbers + done, n);
    }
    return 0;
}
