/* The keys of `serving`: the engine's scheduler and its K/V. */
#include "config/key_fields.h"
#include "cost/draft.h"

static const struct ifl_param serving_fields[] = {
    TEXT("preset", serving.preset, NULL,
         "a published system of configs/serving, or a path; keys beside it override its own"),
    TEXT("engine", serving.engine, NULL,
         "engine of this scheduler: vllm, sglang, trtllm, tgi, lightllm; it has one effect: a "
         "summary notes if the profile's kernels are another engine's"),
    INT("max_model_len", serving.max_model_len, 0, 0, ANY, "tokens",
        "most tokens of a request, prompt and output together; 0: the model's (without a model: "
        "2^20)"),
    INT("max_queued_reqs", serving.door.max_queued_reqs, 0, 0, ANY, "sequences",
        "most sequences that wait or run in the cluster, or in a pool (vLLM's "
        "max_num_queued_reqs); an arrival beyond it is shed; 0: no limit"),
    INT("max_queued_tokens", serving.door.max_queued_tokens, 0, 0, ANY, "tokens",
        "an arrival is shed while the prompts without a first token have this many tokens "
        "together, with cached ones (vLLM's max_num_queued_tokens); 0: no limit"),
    INT("max_waiting_reqs", serving.door.max_waiting_reqs, 0, 0, ANY, "requests",
        "most requests that wait at a replica (SGLang's max_queued_requests); one beyond it is "
        "shed; 0: no limit"),
    CHOICE("shed", serving.door.shed, "arrival|worst", SHED_ARRIVAL,
           "request that max_waiting_reqs sheds: the arrival; or the waiting request, preempted "
           "ones included, with the worst priority, of equals the one that began to wait last, if "
           "it is worse than the arrival's (SGLang with priorities)"),
    CHOICE("leave", serving.leave, "step_end|next_step", LEAVE_STEP_END,
           "an aborted or timed out request on the device leaves at the end of the step in flight "
           "(vLLM), or of its next step (SGLang)"),
    CHOICE("swap", serving.swap, "step|overlap", SWAP_IN_STEP,
           "step: swaps take place at the beginning of the step that plans them; overlap, with "
           "batching prefill-first and preempt tail: beside steps, on one link per direction; a "
           "victim's blocks are free once it is in host memory, and a request swapped in runs once "
           "it is on the device"),
    TIME(
        "swap_block_s", serving.swap_block_ns, 0, 0, 1,
        "swap: overlap: time of a block on each of these links; 0: that of the hardware's profile"),
    BOOL("steady_runs", serving.steady_runs, true,
         "skip plans of steps that a module has promised to repeat"),
    BOOL(
        "check_steady", serving.check_steady, false,
        "plan each promised step anyway, compare it with the promise, and the summary with that of "
        "steady runs"),
};

const struct key_table serving_keys = {FIELDS(serving)};

static const struct ifl_param in_flight_fields[] = {
    INT("ahead", serving.in_flight.ahead, 0, 0, 8, "steps",
        "steps planned before the result of the step before them is known, in addition to one per "
        "pipeline stage (vLLM's async_scheduling, SGLang's overlap, TensorRT-LLM's overlap "
        "scheduler)"),
    BOOL("pipelined", serving.in_flight.pipelined, false,
         "each stage of parallel.pipeline may have a step of its own; false: one step at a time "
         "passes through all stages"),
    CHOICE("request", serving.in_flight.request, "one-step|chunks|tokens", OVERLAP_ONE_STEP,
           "pipelined: a request may be in one unfinished step; in several with chunks of its "
           "prompt; in several with decodes, too, as many steps apart as there are stages, whose "
           "input tokens are not known yet"),
    CHOICE("batches", serving.in_flight.batches, "shared|slots|engines", OVERLAP_SHARED,
           "pipelined: requests that a step may have: any; those that decode in its slot (slots "
           "take turns), and prompts; those of a virtual engine, one per stage, each with its part "
           "of the blocks"),
    CHOICE("seats", serving.in_flight.seats, "all|step", OVERLAP_SEATS_OF_ALL,
           "pipelined: batching.max_seqs limits the requests of all steps in flight together "
           "(vLLM, Sarathi), or of each step (Orca, TensorRT-LLM); with slots, of each slot"),
    BOOL("waits", serving.in_flight.waits, false,
         "pipelined: if nothing can be planned beside the steps in flight, the next plan is made "
         "when the oldest of them ends, even if requests arrive"),
};

const struct key_table in_flight_keys = {FIELDS(in_flight)};

static const struct ifl_param kv_fields[] = {
    CHOICE("allocator", serving.kv.allocator, "paged|buddy", KV_PAGED,
           "how KV memory is allocated: by blocks, or as one contiguous run of blocks per request, "
           "a power of two, which cannot grow"),
    INT("block_tokens", serving.kv.block_tokens, 16, 1, 65536, "tokens", "tokens a KV block holds"),
    INT("num_blocks", serving.kv.num_blocks, 0, 0, ANY, "blocks",
        "KV blocks on the device, as the engine's log counts them; 0: as many as its memory holds"),
    INT("null_blocks", serving.kv.null_blocks, 0, 0, 1, "blocks",
        "blocks of num_blocks that no request gets: vLLM's null block"),
    CHOICE("sizing", serving.kv.sizing,
           "memory|whole-requests|free-share|vllm-0.1|vllm-0.2.5|vllm-0.2.6|vllm-0.3.1|vllm-0.6.4|"
           "vllm-0.6.5|vllm-0.7|vllm-0.8|vllm-0.9.1|vllm-0.12|vllm-0.14|vllm-0.17|"
           "vllm-0.20|"
           "sglang",
           KV_SIZING_MEMORY,
           "how num_blocks 0 is computed: the memory that weights, activations and workspace "
           "leave; whole requests of max_model_len beside the layers' weights (Vidur); a share of "
           "what the three leave (TensorRT-LLM); or as the engine does from that release on "
           "(vllm-*: from a step of batching.max_batched_tokens and max_seqs; up to vllm-0.6.5 "
           "that of vLLM V0, from vllm-0.7 on that of V1)"),
    BOOL(
        "flashinfer_sampler", serving.kv.flashinfer_sampler, false,
        "sizing vllm-0.8 to vllm-0.14: the engine samples with FlashInfer's kernel, which does not "
        "sort the logits, as its log says, and has more blocks"),
    CHOICE("encoder", serving.kv.encoder.use, "profiled|loaded|off", ENCODER_PROFILED,
           "sizing vllm-0.8 to vllm-0.20, with a model that reads images: its image encoder runs "
           "when the engine measures its memory; only its weights count (--skip-mm-profiling); or "
           "it is not loaded"),
    INT("encoder_items", serving.kv.encoder.items, 0, 0, ANY, "items",
        "images, or videos, that it runs for, as the engine's log says; 0: as many of the largest "
        "images as a step has tokens for"),
    INT("encoder_item_tokens", serving.kv.encoder.item_tokens, 0, 0, ANY, "tokens",
        "embeddings that it computes for one of them; 0: those of the largest image"),
    INT("encoder_kept_tokens", serving.kv.encoder.kept_tokens, 0, 0, ANY, "tokens",
        "rows of embeddings that the engine's cache has for one of them; 0: as many as computed"),
    CHOICE("encoder_rotation", serving.kv.encoder.rotation, "short|packed|together|apart",
           VISION_ROTATES_SHORT,
           "how attention of Qwen-VL's encoders rotates queries and keys, which sets the memory of "
           "its run: vLLM from 0.13 on, from 0.11.1 on, 0.11.0, or before"),
    BOOL("encoder_replicated", serving.kv.encoder.replicated, false,
         "every GPU of a replica has the whole encoder, and a share of the items (vLLM's "
         "mm_encoder_tp_mode data)"),
    REAL("memory_utilization", serving.kv.memory_utilization, 0.9, 0.01, 1, "",
         "share of GPU memory for weights, workspace and KV; free-share: share of the remaining "
         "memory for KV; sglang: mem_fraction_static, for weights and KV only"),
    REAL("swap_gib", serving.kv.swap_gib, 4, 0, 1e6, "GiB",
         "host memory for swapped blocks; without a model any value above 0 means as many blocks "
         "as on the device"),
    CHOICE("swap_full", serving.kv.swap_full, "recompute|fail", SWAP_FULL_RECOMPUTE,
           "what happens to a victim when this memory is full"),
    CHOICE("prefix_cache", serving.kv.prefix_cache, "none|hash|radix", PREFIX_CACHE_NONE,
           "cache of K/V of prefixes: none; full blocks by their hash (vLLM); a radix tree with "
           "pages of block_tokens (SGLang)"),
    CHOICE("unhashed", serving.kv.unhashed, "first|in-order", KV_UNHASHED_FIRST,
           "with a prefix cache: free blocks without cached content are used first; or all free "
           "blocks are used in the order in which they became free"),
    CHOICE("publish", serving.kv.publish, "computed|scheduled", KV_PUBLISH_COMPUTED,
           "with prefix_cache hash: a prompt's blocks can be found once the step that computes "
           "them has ended, or already by later requests in that step"),
    CHOICE("windows", serving.kv.windows, "hold|groups", KV_WINDOWS_HOLD,
           "a model whose layers have a window of attention in part: these hold all tokens, as the "
           "others do; or the window alone, in blocks of their own (vLLM from 0.9.1 on)"),
};

const struct key_table kv_keys = {FIELDS(kv)};

static const struct ifl_param keep_fields[] = {
    CHOICE("method", serving.kv.keep.method, "all|snapkv|pyramidkv|h2o|streaming-llm", KEEP_ALL,
           "which K/V a request keeps: all; at the end of its prompt, the tokens that the window "
           "attends to (snapkv, pyramidkv); at each step, the tokens with most attention (h2o), or "
           "the first and the last ones (streaming-llm)"),
    INT("budget_tokens", serving.kv.keep.budget_tokens, 0, 0, ANY, "tokens",
        "tokens that a request keeps of its prompt; h2o, streaming-llm: of all its tokens; 0: all"),
    INT("window_tokens", serving.kv.keep.window_tokens, 32, 1, ANY, "tokens",
        "last tokens, always kept; snapkv, pyramidkv: their attention selects the rest"),
    INT("sink_tokens", serving.kv.keep.sink_tokens, 4, 0, ANY, "tokens",
        "streaming-llm: first tokens, always kept; the rest of the budget are last tokens"),
    INT("kernel_tokens", serving.kv.keep.kernel_tokens, 5, 1, 1001, "tokens",
        "snapkv, pyramidkv: width of the pooling of attention scores, an odd number"),
    CHOICE("pooling", serving.kv.keep.pooling, "mean|max", KEEP_POOL_MEAN,
           "snapkv, pyramidkv: by mean or by maximum"),
    CHOICE("place", serving.kv.keep.place, "gather|in-place", KEEP_GATHERED,
           "kept K/V moves to the first blocks of the request, and the other blocks are freed; or "
           "it stays in place, and only blocks without kept K/V of any head are freed"),
    CHOICE("tables", serving.kv.keep.tables, "one|layers", KEEP_TABLE_OF_ALL,
           "pyramidkv: one block table for all layers, with the length of the first layer's; or "
           "one table per layer"),
    INT("beta", serving.kv.keep.beta, 20, 1, ANY, "",
        "pyramidkv: the last layer keeps (budget - window) / beta tokens and the window"),
};

const struct key_table keep_keys = {FIELDS(keep)};

static const struct ifl_param speculation_fields[] = {
    TEXT("acceptance", serving.speculation.acceptance, "0.7",
         "probability that a guessed token is accepted if all before it are: one number for all "
         "places, or one for each, as 0.85,0.6,0.3; later places are never accepted"),
    TEXT("clients", serving.speculation.clients, "",
         "the same for requests of the clients named, as code=0.9;chat=0.7,0.5"),
    CHOICE("proposer", serving.speculation.proposer, "lookup|model|head", PROPOSER_LOOKUP,
           "source of guesses: a look-up in the text, which only costs pass_s and seq_s; a draft "
           "model; a head of some layers on the target's states (EAGLE, MTP)"),
    CHOICE("verify", serving.speculation.verify, "drawn|real", VERIFY_DRAWN,
           "on an engine: the number of accepted guesses is drawn, as in the simulator; or guesses "
           "are accepted that equal the tokens the engine samples"),
    TEXT("weights", serving.speculation.weights, "random",
         "executor cpu, cuda with proposer model: weights of the draft model, random or a "
         "directory"),
    INT("longest_match", serving.speculation.longest_match, 5, 1, 64, "tokens",
        "executor cpu, cuda with proposer lookup: most last tokens that are looked up, tried first "
        "(prompt_lookup_max)"),
    INT("shortest_match", serving.speculation.shortest_match, 5, 1, 64, "tokens",
        "fewest last tokens that are looked up (prompt_lookup_min)"),
    TEXT("model", serving.speculation.model, "", "proposer model: a model of configs/models"),
    INT("layers", serving.speculation.layers, 1, 0, 1000, "layers",
        "proposer head: layers like the target's; 0: a head alone (Medusa)"),
    INT("passes", serving.speculation.passes, 0, 0, 64, "passes",
        "passes of the draft model or head in a step, one after another; 0: one per guess"),
    INT("width", serving.speculation.width, 1, 1, 64, "tokens",
        "tokens per request and pass: the branches of a tree"),
    REAL("pass_s", serving.speculation.pass_s, 0, 0, 1, "s", "host time of each pass"),
    REAL("seq_s", serving.speculation.seq_s, 0, 0, 1, "s",
         "host time per step of each request with guesses"),
    REAL("step_s", serving.speculation.step_s, 0, 0, 1, "s", "host time of each step with guesses"),
    REAL("lm_head_frac", serving.speculation.lm_head_frac, 1, 0, 1, "of the vocabulary",
         "proposer head: fraction that it can guess (EAGLE-3's draft vocabulary, FR-Spec)"),
    INT("lookahead_tokens", serving.speculation.lookahead_tokens, -1, -1, 4096, "tokens",
        "K/V slots that a request holds after its guesses (vLLM's num_lookahead_tokens); -1: with "
        "a draft model or head, the most guesses of a step, else 0"),
    BOOL("prompts_look_ahead", serving.speculation.prompts_look_ahead, true,
         "a prompt holds these slots, too, from its start (vLLM)"),
};

const struct key_table speculation_keys = {FIELDS(speculation)};
