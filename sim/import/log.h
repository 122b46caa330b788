/* A server's log: facts and findings.
 *
 * Facts that no argument of the server has a name for:
 *   version           as the log writes it
 *   engine            vLLM: V0 or V1
 *   num_gpu_blocks    blocks of K/V, a null block included
 *   kv_tokens         vLLM: tokens of K/V, once a worker
 *   unread_tokens     vLLM: kv_tokens that are no count
 *   max_concurrency   vLLM: requests of max_model_len that the blocks hold
 *   cp_world_size     vLLM: kv_tokens is multiplied by it
 *   token_budget      vLLM: max_num_batched_tokens, as asked for or by default
 *   scheduled_tokens  vLLM: what guesses leave of token_budget to a step
 *   compiled_tokens   vLLM: where a range of tokens ends that it compiles for
 *   num_tokens        SGLang, TensorRT-LLM: tokens of K/V
 *   pool_tokens       SGLang: of the first pool that is allocated; other_pool_tokens: of later ones
 *   free_gib          SGLang: memory of a GPU that is free before it has weights
 *   loaded_gib        SGLang: what is free with them, and what they take
 *   session_tokens    TensorRT-LLM: tokens of K/V, of which the last block may have but a part
 *   gpu, gpu_gib      what a GPU is called, its memory in GiB
 *   world_size        TensorRT-LLM: processes, one a GPU
 *   llm_backend       TensorRT-LLM: PyTorch, or another one
 *   measures_memory   TensorRT-LLM: the K/V is that of a run which measures memory
 *   memory_measured   TensorRT-LLM: that run is over
 *   other_model_len   vLLM: max_model_len of a further model, as of a draft
 *   tp_ranks          vLLM, SGLang: tensor-parallel ranks that log; of SGLang, too: dp_ranks,
 *                     ep_ranks, pp_ranks, and ranks_share_attention: whether the dp_ranks are parts
 *                     of the tp_ranks
 *   start_failed      the server says that it did not start
 *   memory_lacks      what it says of memory that does not suffice
 *   api_server        vLLM: it was started as a server, not as a library
 *   library           vLLM: it was started as a library */
#ifndef SIM_IMPORT_LOG_H
#define SIM_IMPORT_LOG_H

#include "import/facts.h"

/* Reads a file, without the ANSI colours of its lines. First it finds out which server wrote the
 * file: lines that several servers print are read by the rules of that server. If neither the file
 * nor what was read before shows the server, nothing is read. `path` must outlive the facts. */
int log_read(const char *path, struct facts *facts, struct ifl_error *error);

#endif
