/* A safetensors file from memory: any bytes give a table of tensors that lie within the data, one
 * behind the other, or one error. */
#include <stdint.h>
#include <string.h>

#include "safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void check(const struct safetensors *file, uint64_t n_data)
{
    uint64_t at = 0;
    for (size_t i = 0; i < file->n; at = file->of[i++].to)
        ifl_require(file->of[i].from == at && file->of[i].to >= at &&
                    safetensors_find(file, file->of[i].name) == &file->of[i]);
    ifl_require(at == n_data);
}

/* The first byte splits the rest into header and data. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    struct safetensors file;
    struct ifl_error error = {0};
    if (n_bytes == 0)
        return 0;
    const uint64_t n_data = bytes[0];
    if (safetensors_parse("fuzz", (const char *)bytes + 1, n_bytes - 1, n_data, &file, &error) == 0)
        check(&file, n_data);
    else
        ifl_require(*error.text);
    safetensors_close(&file);
    return 0;
}
