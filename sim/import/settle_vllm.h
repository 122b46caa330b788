/* The files that turn vLLM's facts into keys: the state that they share, and their functions. */
#ifndef SIM_IMPORT_SETTLE_VLLM_H
#define SIM_IMPORT_SETTLE_VLLM_H

#include "import/settle.h"

/* The facts derived so far. Versions are numbers: 0.9.1 is 901. */
struct vllm {
    struct settled *s;
    int version;
    bool v1, chunked;
    long long max_model_len; /* 0: not said */
    long long block_size, world;
    int32_t n_window_groups; /* groups of layers with a window that have blocks of their own */
    long long window_tokens; /* window of these layers */
};

/* Sets serving.kv.windows for a model that has layers with a window, and the fields above. Call it
 * after the model is set. */
void vllm_settle_windows(struct vllm *v);

/* serving.kv.encoder and its like, after batching and the model's length: what V1's profile run
 * does with the image encoder of a vision-language model. */
void vllm_settle_encoder(struct vllm *v);

/* Returns the number of blocks given by the log; 0: the log gives none. Needs all fields of `v`,
 * and sets the block size if only the count and the concurrency determine it. */
long long vllm_logged_blocks(struct vllm *v);

#endif
