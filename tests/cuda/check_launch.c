/* What the launchers that nvcc compiled ask of the runtime: these functions stand in for CUDA's, so
 * no device is needed. Carve-outs of shared memory, grids, and launches that may overlap. */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <string.h>

#include "cuda/kernels.h"
#include "cuda/overlap.h"
#include "verdict.h"

/* ---- the runtime ---- */

static struct {
    const void *function;
    int carveout, dynamic_bytes;
} asked; /* of the last function that attributes were set of */
static struct {
    const void *function;
    struct dim3 grid;
    size_t shared_bytes;
    bool overlaps;
} launched;

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    if (asked.function != function) {
        memset(&asked, 0, sizeof asked);
        asked.carveout = -1;
    }
    asked.function = function;
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
        asked.carveout = value;
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
        asked.dynamic_bytes = value;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    (void)function;
    memset(attributes, 0, sizeof *attributes);
    attributes->ptxVersion = 90;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **args)
{
    (void)args;
    launched.function = function;
    launched.grid = config->gridDim;
    launched.shared_bytes = config->dynamicSmemBytes;
    launched.overlaps = config->numAttrs == 1 &&
                        config->attrs[0].id == cudaLaunchAttributeProgrammaticStreamSerialization &&
                        config->attrs[0].val.programmaticStreamSerializationAllowed;
    return cudaSuccess;
}

/* ---- what is launched ---- */

static const struct attn_args attn = {
    .element = ELEMENT_BF16,
    .n_heads = 32,
    .q_stride = 48 * 128,
    .kv = {.block_tokens = 16, .n_kv_heads = 8, .head_dim = 128},
};

static void expect_carveout(int failed, const char *what)
{
    verdict(!failed && asked.function == launched.function &&
                asked.carveout == cudaSharedmemCarveoutMaxShared &&
                (size_t)asked.dynamic_bytes == launched.shared_bytes,
            "%s asks for %zu bytes of shared memory, and a carve-out of %d%%", what,
            launched.shared_bytes, asked.carveout);
}

static void attention_is_launched(void)
{
    const struct attn_prefill_args prefill = {
        .attn = attn, .n_items = 100000, .n_merges = 30, .tile_rows = ATTN_TALL_TILE};
    const struct attn_decode_args decode = {.attn = attn, .n_shares = 49};
    expect_carveout(attn_prefill_launch(&prefill, NULL), "prefill");
    verdict(launched.grid.x == 800000 && launched.grid.y == 1, "prefill's grid is %u x %u",
            launched.grid.x, launched.grid.y);
    expect_carveout(attn_decode_launch(&decode, NULL), "decode");
    verdict(launched.grid.x == 49 * 8, "decode's grid is %u", launched.grid.x);
    attn_prefill_merge_launch(&prefill, NULL);
    verdict(launched.grid.x == 240 && launched.grid.y == 4, "the merge's grid is %u x %u",
            launched.grid.x, launched.grid.y);
}

static void launches_overlap_unless_told(void)
{
    const struct norm_args norm = {.element = ELEMENT_BF16, .n_rows = 3, .width = 4096};
    const struct gather_args gather = {.n_rows = 3, .width = 4096};
    norm_launch(&norm, NULL);
    verdict(launched.overlaps, "a norm starts beside the kernel before");
    gather_launch(&gather, NULL);
    verdict(!launched.overlaps, "a gather does not: a copy precedes it");
    launches_may_overlap = false;
    norm_launch(&norm, NULL);
    verdict(!launched.overlaps, "without dependent launch a norm does not");
    launches_may_overlap = true;
}

int main(void)
{
    attention_is_launched();
    launches_overlap_unless_told();
    return verdicts_end();
}
