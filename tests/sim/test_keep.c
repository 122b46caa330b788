/* How much methods keep of a prompt, against their code's arithmetic layer by layer. */
#include <criterion/criterion.h>
#include <math.h>

#include "replica/kv/keep.h"

/* PyramidKVCluster.update_kv (KVCache-Factory c97f9d7), layer by layer: tokens that the layer keeps
 * of a prompt, the window included. */
static int32_t pyramid_layer(const struct keep *keep, int32_t n_prompt, int32_t layer)
{
    const int32_t voted = keep->budget_tokens - keep->window_tokens;
    int32_t least = voted / keep->beta, most = 2 * voted - least;
    if (most >= n_prompt - keep->window_tokens) {
        most = n_prompt - keep->window_tokens;
        least = 2 * voted - most;
    }
    const int32_t fall = (most - least) / (keep->n_layers - 1);
    if (n_prompt < keep->budget_tokens)
        return n_prompt;
    return n_prompt < 2 * voted ? keep->budget_tokens : most - layer * fall + keep->window_tokens;
}

Test(keep, budgets_of_layers_are_those_of_the_code)
{
    static const int32_t prompts[] = {100, 1023, 1024, 1500, 1984, 2100, 4096, 100000};
    struct keep keep = {.method = KEEP_PYRAMIDKV,
                        .budget_tokens = 1024,
                        .window_tokens = 32,
                        .beta = 20,
                        .n_layers = 32};
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
        double sum = 0;
        for (int32_t layer = 0; layer < keep.n_layers; layer++)
            sum += pyramid_layer(&keep, prompts[i], layer);
        keep.tables = KEEP_TABLE_A_LAYER;
        const struct kept apart = keep_of_prompt(&keep, prompts[i], kv_block_of(16));
        keep.tables = KEEP_TABLE_OF_ALL;
        const struct kept together = keep_of_prompt(&keep, prompts[i], kv_block_of(16));
        cr_expect(fabs(apart.n_slots - sum / keep.n_layers) < 1, "%d: %d, in the mean %g",
                  prompts[i], apart.n_slots, sum / keep.n_layers);
        cr_expect_eq(together.n_slots, pyramid_layer(&keep, prompts[i], 0), "%d", prompts[i]);
        cr_expect_eq(together.n_slots - together.n_unread, apart.n_slots);
    }
}
