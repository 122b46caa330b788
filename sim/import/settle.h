/* Turns facts into keys: makes the configuration that a server's settings correspond to. */
#ifndef SIM_IMPORT_SETTLE_H
#define SIM_IMPORT_SETTLE_H

#include "base/tree.h"

#include "import/facts.h"
#include "import/names.h"

struct model;

/* A configuration in the making. The first error stays, and later calls do nothing. */
struct settled {
    struct facts *facts;
    struct node *root;
    struct ifl_error *error;
    int code;
    bool from_log;           /* a log was read: values that it does not have are missing or
                                defaults */
    const char *log;         /* the first log; NULL: none */
    struct gpu_name profile; /* the GPU of a profile that is in no table; 0 memory_gib: there is
                                none */
};

/* Returns the GPU: that of the log or of the table, else that of the profile that is named; NULL if
 * there is neither. */
const struct gpu_name *settle_gpu(const struct settled *s);

/* Sets a key to a value in YAML. */
IFL_PRINTF(3, 4)
void settle_put(struct settled *s, const char *key, const char *format, ...);
/* As settle_put, for a value that no source gives; `says` is what it rests on. */
void settle_assume(struct settled *s, const char *key, const char *value, const char *says);
/* Copies a count from the server's settings if it is given and above 0; a value that is no count is
 * an error. */
void settle_count(struct settled *s, const char *name, const char *key);
/* As settle_count, with a default, and what it rests on, if the count is not given or 0. */
void settle_count_or(struct settled *s, const char *name, const char *key, const char *dflt,
                     const char *says);
/* As settle_count, for a real number. */
void settle_real(struct settled *s, const char *name, const char *key);
/* Returns the number in a fact; `dflt` if it is not given. */
double settle_real_or(struct settled *s, const char *name, double dflt);
/* facts_decide for several flags; the list ends with NULL. */
void settle_decide(struct settled *s, const char *const *names, enum finding_kind kind,
                   const char *key, const char *says);
/* Returns the count in a fact; `dflt` if it is not given. */
long long settle_number(struct settled *s, const char *name, long long dflt);
/* As settle_number; a given count below 1 is an error. */
long long settle_at_least_1(struct settled *s, const char *name, long long dflt);
/* Adds a line to the report. */
void settle_find(struct settled *s, enum finding_kind kind, struct place at, const char *what,
                 const char *key, const char *says);
/* Stops with an error at the place of the fact `name`, or without a place if there is none. */
IFL_PRINTF(3, 4)
void settle_fail(struct settled *s, const char *name, const char *format, ...);

/* The model's profile, and what the checkpoint's name and the server say about its weights. */
void settle_model(struct settled *s);
void settle_weights(struct settled *s);
/* True if the configuration names a model that can be read: *model. */
bool settle_known_model(const struct settled *s, struct model *model);
/* Sets the width of the weights if the server casts them. Call it after settle_model and
 * settle_weights. */
void settle_width(struct settled *s);
/* Returns the length that the checkpoint allows if it differs from that of the profile; otherwise
 * 0. */
long long settle_checkpoint_len(const struct settled *s);
/* Sets the length from the flag `name`, else from the checkpoint if that differs from the profile;
 * a length beyond both becomes a finding. */
void settle_length(struct settled *s, const char *name);

/* Sets vLLM's block size if FlashMLA is the default and no size is given. */
void settle_latent_blocks(struct settled *s);
/* Sets vLLM's width of K/V for a model with an indexer, unless it is given. */
void settle_sparse_kv(struct settled *s);
/* Sets K/V in fp8 if no format is requested and the checkpoint has scales for it from a tool that
 * this release supports. */
void settle_kv_scales(struct settled *s, bool modelopt, bool compressed_tensors);

/* Sets model, hardware, parallel, engine.dtype and kv_dtype, for any server. `replicas` names the
 * fact with the number of replicas. */
void settle_common(struct settled *s, const char *tensor, const char *pipeline,
                   const char *replicas);

/* Ranks that write the log. */
struct rank_names {
    const char *fact, *name; /* the fact with their number, and what the log calls one */
    const char *argument;    /* the fact: as many are asked for */
    const char *key;
    const char *says; /* what the number rests on if the argument is not given */
};
/* Compares the number of ranks that write the log with the argument: more ranks are an error; if
 * the argument is not given, their number is used. */
void settle_ranks(struct settled *s, const struct rank_names *names);
/* Those that share the model, by the argument of that name. */
struct rank_names tensor_ranks(const char *argument);

/* The names of a server's settings about K/V. */
struct pool_names {
    const char *block; /* the fact: tokens of a block */
    long long dflt;    /* default of the block size, and what it rests on */
    const char *dflt_is;
    const char *tokens;  /* the fact: tokens of K/V that were asked for */
    bool rounds_up;      /* the last tokens take a block of their own */
    const char *missing; /* the name of what a log with neither tokens nor blocks lacks */
};
/* Sets serving.kv.block_tokens and num_blocks. */
void settle_pool(struct settled *s, const struct pool_names *names);

/* Stops if the log is of a server that did not start, and has no size of its K/V. */
void settle_started(struct settled *s);

/* Sets the deployment, with what it rests on, unless the profile has host times of its own. */
void settle_deployment(struct settled *s, const char *name, const char *says);
/* As settle_deployment, for one of its keys, such as "deployment.host.step_s". */
void settle_host_time(struct settled *s, const char *key, const char *value, const char *says);

/* Orders of the queue: SGLang's --schedule-policy, and the module here. */
struct sglang_order {
    const char *name, *policy;
};
extern const struct sglang_order sglang_orders[];
extern const size_t n_sglang_orders;

/* Settings of speculation. With the proposers of drafts_go_ahead, or without speculation, vLLM's
 * asynchronous loop is the default. settle_drafts_sglang returns true if SGLang speculates in the
 * loop of the preset sglang. */
void settle_drafts_vllm(struct settled *s, bool v1);
bool drafts_go_ahead(const struct settled *s);
bool settle_drafts_sglang(struct settled *s);

/* Set the tiers below the device. Call them when all other keys are set, since some exclude tiers.
 * A host cache of TensorRT-LLM is per GPU. */
void settle_tiers_vllm(struct settled *s, bool v1);
void settle_tiers_sglang(struct settled *s);
void settle_tiers_trtllm(struct settled *s, double gpus);

/* Adds a line to the report that says which pool of cluster.pools a server is that only prefills or
 * only decodes. */
void settle_role_vllm(struct settled *s, bool v1);
void settle_role_sglang(struct settled *s);

void settle_vllm(struct settled *s);
void settle_sglang(struct settled *s);
void settle_trtllm(struct settled *s);
/* True if the server is TensorRT-LLM's PyTorch executor, not the C++ one. */
bool trtllm_is_pytorch(const struct facts *facts, bool from_log);

#endif
