/* The keys of `serving`: the engine's scheduler and its K/V. */
#include "config/key_fields.h"
#include "cost/draft.h"

static const struct ifl_param serving_fields[] = {
    TEXT("preset", serving.preset, NULL,
         "a published system of configs/serving, or a path; keys beside it override its own"),
    TEXT("engine", serving.engine, NULL,
         "the engine whose scheduler this is: vllm, sglang, trtllm, tgi, lightllm; a summary says "
         "where the profile's kernels are another engine's, and nothing else depends on it"),
    INT("max_model_len", serving.max_model_len, 0, 0, ANY, "tokens",
        "longest prompt and output of a request; 0: the model's (without a model: 2^20)"),
    INT("max_queued_reqs", serving.door.max_queued_reqs, 0, 0, ANY, "sequences",
        "an arrival is shed that would make more of them wait or run in the cluster, or in its "
        "pool (vLLM's max_num_queued_reqs); 0: no limit"),
    INT("max_queued_tokens", serving.door.max_queued_tokens, 0, 0, ANY, "tokens",
        "an arrival is shed while prompts without a first token, cached tokens included, are "
        "so long together (vLLM's max_num_queued_tokens); 0: no limit"),
    INT("max_waiting_reqs", serving.door.max_waiting_reqs, 0, 0, ANY, "requests",
        "a request is shed when more would wait at a replica (SGLang's max_queued_requests); 0: no "
        "limit"),
    CHOICE("shed", serving.door.shed, "arrival|worst", SHED_ARRIVAL,
           "which one max_waiting_reqs sheds: the arrival, or a waiting request of a worse "
           "priority, the worst and of these the latest (SGLang with priorities)"),
    CHOICE(
        "leave", serving.leave, "step_end|next_step", LEAVE_STEP_END,
        "an aborted or timed out request on the device leaves as the step in flight ends (vLLM), "
        "or as the one behind it ends (SGLang)"),
    CHOICE("swap", serving.swap, "step|overlap", SWAP_IN_STEP,
           "swaps take place at the beginning of the step that plans them; or, with batching "
           "prefill-first and preempt tail, beside steps, over a link in each direction: a "
           "victim's blocks are free as it has come to the host, and one "
           "that comes back runs as soon as it is there"),
    TIME(
        "swap_block_s", serving.swap_block_ns, 0, 0, 1,
        "swap: overlap: time of a block on each of these links; 0: that of the hardware's profile"),
    BOOL("steady_runs", serving.steady_runs, true, "skip plans that are promised to repeat"),
    BOOL("check_steady", serving.check_steady, false,
         "plan each promised step all the same, and compare"),
};

const struct key_table serving_keys = {FIELDS(serving)};

static const struct ifl_param in_flight_fields[] = {
    INT("ahead", serving.in_flight.ahead, 0, 0, 8, "steps",
        "steps planned before the result of the one in front of them is known, beyond one a stage "
        "of a pipeline (vLLM's async_scheduling, SGLang's overlap, TensorRT-LLM's overlap "
        "scheduler)"),
    BOOL("pipelined", serving.in_flight.pipelined, false,
         "each stage of parallel.pipeline may have a step of its own; false: one step at a time "
         "passes through all stages"),
    CHOICE("request", serving.in_flight.request, "one-step|chunks|tokens", OVERLAP_ONE_STEP,
           "pipelined: a request is in one unfinished step; chunks of its prompt are in several; "
           "decodes, too, as many steps apart as there are stages, on tokens not known yet"),
    CHOICE("batches", serving.in_flight.batches, "shared|slots|engines", OVERLAP_SHARED,
           "pipelined: a step holds any requests; those that decode in its slot, slots taking "
           "turns, and prompts; those of a virtual engine, one a stage, each with its part of the "
           "blocks"),
    CHOICE("seats", serving.in_flight.seats, "all|step", OVERLAP_SEATS_OF_ALL,
           "pipelined: batching.max_seqs counts the requests of all steps in flight (vLLM, "
           "Sarathi), or of each step (Orca, TensorRT-LLM); with slots it is of each slot"),
    BOOL("waits", serving.in_flight.waits, false,
         "pipelined: where nothing can be planned beside the steps in flight, the next plan is "
         "made as the oldest of them ends, whatever arrives"),
};

const struct key_table in_flight_keys = {FIELDS(in_flight)};

static const struct ifl_param kv_fields[] = {
    CHOICE("allocator", serving.kv.allocator, "paged|buddy", KV_PAGED,
           "how KV memory is handed out: by the block, or a contiguous run of a power of two of "
           "blocks a request, which cannot grow"),
    INT("block_tokens", serving.kv.block_tokens, 16, 1, 65536, "tokens", "tokens a KV block holds"),
    INT("num_blocks", serving.kv.num_blocks, 0, 0, ANY, "blocks",
        "KV blocks on the device, as the engine's log counts them; 0: as many as its memory holds"),
    INT("null_blocks", serving.kv.null_blocks, 0, 0, 1, "blocks",
        "of num_blocks, blocks that no request ever gets: vLLM's null block"),
    CHOICE("sizing", serving.kv.sizing,
           "memory|whole-requests|free-share|vllm-0.1|vllm-0.2.5|vllm-0.2.6|vllm-0.3.1|vllm-0.6.4|"
           "vllm-0.6.5|vllm-0.7|vllm-0.8|vllm-0.9.1|vllm-0.17|vllm-0.20|sglang",
           KV_SIZING_MEMORY,
           "how they are counted: what weights, activations and workspace leave, whole requests of "
           "max_model_len beside the layers' weights (Vidur), a share of what the three leave "
           "(TensorRT-LLM), or as the engine does from that release on (vllm-*: by a step of "
           "batching.max_batched_tokens and max_seqs; up to vllm-0.6.5 that of vLLM V0, from "
           "vllm-0.7 on that of V1)"),
    REAL("memory_utilization", serving.kv.memory_utilization, 0.9, 0.01, 1, "",
         "share of the GPU's memory for weights, workspace and KV; free-share: of the rest, KV; "
         "sglang: mem_fraction_static, for weights and KV alone"),
    REAL("swap_gib", serving.kv.swap_gib, 4, 0, 1e6, "GiB",
         "host memory for swapped blocks; where no model is named any above 0 has room for as many "
         "as the device"),
    CHOICE("swap_full", serving.kv.swap_full, "recompute|fail", SWAP_FULL_RECOMPUTE,
           "what happens when it is full"),
    CHOICE("prefix_cache", serving.kv.prefix_cache, "none|hash|radix", PREFIX_CACHE_NONE,
           "K/V of prefixes is kept and shared: full blocks by their hash (vLLM), or in a tree "
           "with pages of block_tokens (SGLang)"),
    CHOICE("unhashed", serving.kv.unhashed, "first|in-order", KV_UNHASHED_FIRST,
           "with a prefix cache: free blocks that hold nothing to be found are used before any "
           "cached one is lost, or all in the order in which they became free"),
    CHOICE("publish", serving.kv.publish, "computed|scheduled", KV_PUBLISH_COMPUTED,
           "with prefix_cache hash: a prompt's blocks are found once computed, or by those behind "
           "it in the very step that computes them"),
};

const struct key_table kv_keys = {FIELDS(kv)};

static const struct ifl_param keep_fields[] = {
    CHOICE("method", serving.kv.keep.method, "all|snapkv|pyramidkv|h2o|streaming-llm", KEEP_ALL,
           "which K/V a request keeps: all; at the end of its prompt what the window attends to "
           "(snapkv, pyramidkv); at each step what has drawn most attention (h2o), or the first "
           "and the last tokens (streaming-llm)"),
    INT("budget_tokens", serving.kv.keep.budget_tokens, 0, 0, ANY, "tokens",
        "that a request keeps of its prompt; h2o, streaming-llm: in all; 0: all"),
    INT("window_tokens", serving.kv.keep.window_tokens, 32, 1, ANY, "tokens",
        "the last ones, which stay; snapkv, pyramidkv: they vote"),
    INT("sink_tokens", serving.kv.keep.sink_tokens, 4, 0, ANY, "tokens",
        "streaming-llm: the first ones, which stay; the rest of the budget are the last"),
    INT("kernel_tokens", serving.kv.keep.kernel_tokens, 5, 1, 1001, "tokens",
        "snapkv, pyramidkv: votes are pooled over so many neighbours, an odd number"),
    CHOICE("pooling", serving.kv.keep.pooling, "mean|max", KEEP_POOL_MEAN,
           "snapkv, pyramidkv: by their mean, or their maximum"),
    CHOICE("place", serving.kv.keep.place, "gather|in-place", KEEP_GATHERED,
           "what is kept moves to the first blocks of the request, which gives back the others; or "
           "stays where it is, and only blocks that no head keeps anything of are given back"),
    CHOICE("tables", serving.kv.keep.tables, "one|layers", KEEP_TABLE_OF_ALL,
           "pyramidkv: one block table for all layers, as long as the first layer needs, or a "
           "table a layer"),
    INT("beta", serving.kv.keep.beta, 20, 1, ANY, "",
        "pyramidkv: the last layer keeps (budget - window) / beta tokens beside the window"),
};

const struct key_table keep_keys = {FIELDS(keep)};

static const struct ifl_param speculation_fields[] = {
    TEXT("acceptance", serving.speculation.acceptance, "0.7",
         "how likely a guessed token holds if those before it do: one number for all, or one for "
         "each place, as 0.85,0.6,0.3, behind the last of which none holds"),
    TEXT("clients", serving.speculation.clients, "",
         "the same for requests of some clients, as code=0.9;chat=0.7,0.5"),
    CHOICE(
        "proposer", serving.speculation.proposer, "lookup|model|head", PROPOSER_LOOKUP,
        "what guesses: a look-up in the text, which costs pass_s and seq_s alone; a draft model; "
        "a head of some layers on the target's states (EAGLE, MTP)"),
    CHOICE(
        "verify", serving.speculation.verify, "drawn|real", VERIFY_DRAWN,
        "on an engine: as many guesses hold as are drawn, as in the simulator, or those that the "
        "engine would have sampled itself"),
    TEXT("weights", serving.speculation.weights, "random",
         "executor cpu, cuda with proposer model: of the draft model, random or a directory"),
    INT("longest_match", serving.speculation.longest_match, 5, 1, 64, "tokens",
        "executor cpu, cuda with proposer lookup: as many last tokens are looked for first "
        "(prompt_lookup_max)"),
    INT("shortest_match", serving.speculation.shortest_match, 5, 1, 64, "tokens",
        "and not fewer than these (prompt_lookup_min)"),
    TEXT("model", serving.speculation.model, "", "proposer model: a model of configs/models"),
    INT("layers", serving.speculation.layers, 1, 0, 1000, "layers",
        "proposer head: layers like the target's; 0: a head alone (Medusa)"),
    INT("passes", serving.speculation.passes, 0, 0, 64, "passes",
        "of the draft model or head in a step, one after the other; 0: one for each guess"),
    INT("width", serving.speculation.width, 1, 1, 64, "tokens",
        "that a pass feeds of each request: the branches of a tree"),
    REAL("pass_s", serving.speculation.pass_s, 0, 0, 1, "s", "host time that each pass adds"),
    REAL("seq_s", serving.speculation.seq_s, 0, 0, 1, "s",
         "host time that each request with guesses adds to a step"),
    REAL("step_s", serving.speculation.step_s, 0, 0, 1, "s",
         "host time that a step with guesses adds"),
    REAL("lm_head_frac", serving.speculation.lm_head_frac, 1, 0, 1, "of the vocabulary",
         "proposer head: tokens that it chooses among (EAGLE-3's draft vocabulary, FR-Spec)"),
    INT("lookahead_tokens", serving.speculation.lookahead_tokens, -1, -1, 4096, "tokens",
        "for which a request holds K/V slots behind its guesses (vLLM's num_lookahead_tokens); -1: "
        "with a draft model or head as many as may be guessed, else none"),
    BOOL("prompts_look_ahead", serving.speculation.prompts_look_ahead, true,
         "a prompt holds them, too, from its start (vLLM)"),
};

const struct key_table speculation_keys = {FIELDS(speculation)};
