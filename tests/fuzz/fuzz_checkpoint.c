/* A Hugging Face directory from memory: any config.json, index and safetensors give the numbers of
 * every weight of the model they describe, or one error. The parts are separated by a byte of 0; an
 * empty index means no index file. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "architecture.h"
#include "checkpoint.h"
#include "weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { MAX_NUMBERS = 1 << 16, N_PARTS = 3 };

static char folder[] = "/tmp/inflight-fuzz-XXXXXX";
static const char *const names[N_PARTS] = {"config.json", "model.safetensors.index.json",
                                           "model.safetensors"};

static const char *path_of(int part)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, names[part]);
    return path;
}

static void remove_folder(void)
{
    for (int part = 0; part < N_PARTS; part++)
        unlink(path_of(part));
    rmdir(folder);
}

static void write_part(int part, const uint8_t *bytes, size_t n)
{
    unlink(path_of(part));
    FILE *file = n > 0 ? fopen(path_of(part), "wb") : NULL;
    if (file)
        ifl_require(fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
}

static void write_parts(const uint8_t *bytes, size_t n)
{
    for (int part = 0; part < N_PARTS; part++) {
        const uint8_t *end = part + 1 < N_PARTS && n > 0 ? memchr(bytes, 0, n) : NULL;
        const size_t n_part = end ? (size_t)(end - bytes) : n, skipped = end ? n_part + 1 : n;
        write_part(part, bytes, n_part);
        bytes += skipped;
        n -= skipped;
    }
}

static int read_one(void *checkpoint, const struct weight *weight, struct ifl_error *error)
{
    static float numbers[MAX_NUMBERS];
    const struct weight_source source = {.checkpoint = checkpoint, .n_threads = 1};
    return weight_fill(&source, weight, numbers, error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static bool has_folder;
    struct architecture architecture;
    struct checkpoint checkpoint = {0};
    struct ifl_error error = {0};
    if (!has_folder) {
        ifl_require(mkdtemp(folder) && atexit(remove_folder) == 0);
        has_folder = true;
    }
    write_parts(bytes, n_bytes);
    int rc = architecture_read(folder, NULL, &architecture, &error);
    if (rc == 0)
        rc = checkpoint_open(folder, &checkpoint, &error);
    if (rc == 0 && weights_count(&architecture.model) <= MAX_NUMBERS)
        rc = weights_for_each(&architecture.model, read_one, &checkpoint, &error);
    ifl_require(rc == 0 || (rc == error.code && *error.text));
    checkpoint_close(&checkpoint);
    return 0;
}
