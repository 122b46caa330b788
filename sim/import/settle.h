/* From facts to keys: the configuration that a server's settings correspond to. */
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
    bool from_log;           /* a log was read: what it does not say is missing, or a default */
    const char *log;         /* the first one, NULL: none */
    struct gpu_name profile; /* of a profile that is in no table; 0 memory_gib: there is none */
};

/* The GPU: that of the log or of the table, else that of the profile that is named. NULL: neither.
 */
const struct gpu_name *settle_gpu(const struct settled *s);

/* Puts a key, its value in YAML. */
IFL_PRINTF(3, 4)
void settle_put(struct settled *s, const char *key, const char *format, ...);
/* The same for a value that is nowhere said, with what it rests on. */
void settle_assume(struct settled *s, const char *key, const char *value, const char *says);
/* Copies a count that the server was given, if it is said and above 0; an error if it is none. */
void settle_count(struct settled *s, const char *name, const char *key);
/* The same, or a default where it is not said or 0, with what that rests on. */
void settle_count_or(struct settled *s, const char *name, const char *key, const char *dflt,
                     const char *says);
/* As settle_count for a number. */
void settle_real(struct settled *s, const char *name, const char *key);
/* The number that a fact says; `dflt` where it is not said. */
double settle_real_or(struct settled *s, const char *name, double dflt);
/* facts_decide of several flags, up to NULL. */
void settle_decide(struct settled *s, const char *const *names, enum finding_kind kind,
                   const char *key, const char *says);
/* The count that a fact says; `dflt` where it is not said. */
long long settle_number(struct settled *s, const char *name, long long dflt);
/* The same; a count below 1 that is said is an error. */
long long settle_at_least_1(struct settled *s, const char *name, long long dflt);
/* A line of the report. */
void settle_find(struct settled *s, enum finding_kind kind, struct place at, const char *what,
                 const char *key, const char *says);
/* Ends with an error at the place of a fact, or of nothing at all. */
IFL_PRINTF(3, 4)
void settle_fail(struct settled *s, const char *name, const char *format, ...);

/* The model's profile, and what the checkpoint's name and the server say about its weights. */
void settle_model(struct settled *s);
void settle_weights(struct settled *s);
/* True if the configuration names a model that can be read: *model. */
bool settle_known_model(const struct settled *s, struct model *model);
/* Their bits where the server casts them, after the above. */
void settle_width(struct settled *s);
/* The length that the checkpoint allows, where it is not that of the profile; else 0. */
long long settle_checkpoint_len(const struct settled *s);
/* Puts the length that the flag `name` says, else that of the checkpoint where it is not the
 * profile's; a length beyond both is found. */
void settle_length(struct settled *s, const char *name);

/* vLLM's size of blocks where FlashMLA is the default and no size is said. */
void settle_latent_blocks(struct settled *s);
/* vLLM's width of K/V of a model with an indexer, unless it is said. */
void settle_sparse_kv(struct settled *s);
/* K/V in fp8 where none is asked for and the checkpoint has scales for it, by a tool whose scales
 * this release follows. */
void settle_kv_scales(struct settled *s, bool modelopt, bool compressed_tensors);

/* model, hardware, parallel, engine.dtype and kv_dtype: of any server. `replicas` names the fact.
 */
void settle_common(struct settled *s, const char *tensor, const char *pipeline,
                   const char *replicas);

/* The ranks that log against the argument `tensor`: more of them are an error, and where it is not
 * said, they are as many. */
void settle_ranks(struct settled *s, const char *tensor);

/* How a server speaks of its K/V. */
struct pool_names {
    const char *block; /* the fact: tokens of a block */
    long long dflt;    /* of it, and what that rests on */
    const char *dflt_is;
    const char *tokens;  /* the fact: tokens of K/V that were asked for */
    bool rounds_up;      /* they take a block for the last ones */
    const char *missing; /* what a log that says neither tokens nor blocks lacks */
};
/* serving.kv.block_tokens and num_blocks. */
void settle_pool(struct settled *s, const struct pool_names *names);

/* The deployment, with what it rests on, unless the profile has times of its own for the host. */
void settle_deployment(struct settled *s, const char *name, const char *says);
/* The same for one of its keys, "deployment.host.step_s" for instance. */
void settle_host_time(struct settled *s, const char *key, const char *value, const char *says);

/* Orders of the queue: SGLang's --schedule-policy, and the module here. */
struct sglang_order {
    const char *name, *policy;
};
extern const struct sglang_order sglang_orders[];
extern const size_t n_sglang_orders;

/* Guesses. With those of drafts_go_ahead, or none, vLLM's asynchronous loop is the default. True:
 * SGLang has some, in the loop of the preset sglang. */
void settle_drafts_vllm(struct settled *s, bool v1);
bool drafts_go_ahead(const struct settled *s);
bool settle_drafts_sglang(struct settled *s);

/* Tiers below the device, once all other keys are there, which may not go together with them. A
 * host cache of TensorRT-LLM is of each GPU. */
void settle_tiers_vllm(struct settled *s, bool v1);
void settle_tiers_sglang(struct settled *s);
void settle_tiers_trtllm(struct settled *s, double gpus);

/* Which pool of cluster.pools a server for prompts or answers alone is: a line of the report. */
void settle_role_vllm(struct settled *s, bool v1);
void settle_role_sglang(struct settled *s);

void settle_vllm(struct settled *s);
void settle_sglang(struct settled *s);
void settle_trtllm(struct settled *s);

#endif
