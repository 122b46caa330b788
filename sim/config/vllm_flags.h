/* Words of vLLM's for what has another name here: its engine arguments, and those of its benchmark
 * that say what a workload is. */
#ifndef SIM_CONFIG_VLLM_FLAGS_H
#define SIM_CONFIG_VLLM_FLAGS_H

#include <stddef.h>

struct vllm_flag {
    const char *name;  /* as in vLLM's EngineArgs, with underscores */
    const char *key;   /* what it stands for here */
    const char *value; /* a flag without one: its value here, with "="; else "" */
};

/* "--max-num-seqs", "max_num_seqs" and "max-num-seqs" are one flag; of a dotted key the last part
 * counts. NULL if it is none. */
const struct vllm_flag *vllm_flag_find(const char *word);

/* "vLLM's --max-num-seqs is serving.batching.max_seqs" */
const char *vllm_flag_describe(const struct vllm_flag *flag, char *text, size_t n_bytes);

/* NULL at the end. */
const struct vllm_flag *vllm_flag_at(size_t i);

#endif
