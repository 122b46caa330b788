/* A server's log: facts and findings.
 *
 * Facts that no argument of the server has a name for:
 *   version           as the log writes it
 *   engine            vLLM: V0 or V1
 *   num_gpu_blocks    blocks of K/V, a null block included
 *   kv_tokens         vLLM: tokens of K/V, once a worker
 *   max_concurrency   vLLM: requests of max_model_len that the blocks hold
 *   cp_world_size     vLLM: kv_tokens is multiplied by it
 *   token_budget      vLLM: max_num_batched_tokens, as asked for or by default
 *   num_tokens        SGLang, TensorRT-LLM: tokens of K/V
 *   gpu, gpu_gib      what a GPU is called, its memory in GiB
 *   world_size        TensorRT-LLM: processes, one a GPU
 *   api_server        vLLM: it was started as a server, not as a library */
#ifndef SIM_IMPORT_LOG_H
#define SIM_IMPORT_LOG_H

#include "import/facts.h"

/* Reads a file; of a line with ANSI colours, what is left without them. A byte of 0 and a line of
 * more than 1 MiB are errors: such a file is no log. `path` must outlive the facts. */
int log_read(const char *path, struct facts *facts, struct ifl_error *error);

#endif
