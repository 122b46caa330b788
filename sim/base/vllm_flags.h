/* The flags of vLLM that have a key here under another name: its engine arguments, and the workload
 * arguments of its benchmark. */
#ifndef SIM_BASE_VLLM_FLAGS_H
#define SIM_BASE_VLLM_FLAGS_H

#include <stddef.h>

struct vllm_flag {
    const char *name;  /* as in vLLM's EngineArgs, with underscores */
    const char *key;   /* the key that it means here */
    const char *value; /* of a flag that takes no value: "=" and the key's value; else "" */
};

/* The flag that a word names, NULL if none. "--max-num-seqs", "max_num_seqs" and "max-num-seqs" are
 * the same flag; of a dotted key the last part counts. */
const struct vllm_flag *vllm_flag_find(const char *word);

/* "vLLM's --max-num-seqs is serving.batching.max_seqs" */
const char *vllm_flag_describe(const struct vllm_flag *flag, char *text, size_t n_bytes);

/* NULL at the end. */
const struct vllm_flag *vllm_flag_at(size_t i);

#endif
