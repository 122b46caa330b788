/* A deployment: how a server runs an engine on a GPU, apart from what the card itself can do.
 *
 * A deployment is a map, in a file of its own (configs/deployments/), in a hardware profile or in a
 * configuration. A map with `base: NAME` has the values of that deployment where it gives none.
 *
 * Its numbers stand in sections, a table each (deployment_sections). A new section is a struct, a
 * table of its fields, a row of deployment_sections and one of the configuration's key_sections
 * (config/keys.c).
 *
 * `intervals:` has, under the same keys, the ends [low, high] of the central 90% of what a number
 * may be. An ensemble draws from them (fit/spread.h). A number that is given anew, by an overlay,
 * loses the interval that the deployment below gave it. */
#ifndef SIM_COST_DEPLOYMENT_H
#define SIM_COST_DEPLOYMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "inflight/error.h"
#include "inflight/policy.h"

struct node;

/* Of a step: for each layer, once, for each sequence. */
struct host_times {
    double layer_s, step_s, seq_s;
    double prompt_layer_s; /* more for each layer of a step with prompts: between CUDA graphs of
                              pieces, attention is launched by the host */
    double floor_s; /* least forward time: an eager engine's host takes longer than small steps */
    double prompt_floor_layer_s; /* least forward time of a layer in a step with prompts, where only
                                    steps without prompts are CUDA graphs */
    bool eager; /* kernels are not replayed from CUDA graphs: all-reduces are the eager ones */
};

struct deployment_memory {
    double workspace_gib;     /* beside weights, activations and KV: context, libraries, graphs */
    double activation_tokens; /* tokens of the largest step for which activations are reserved */
    double drawn_sds; /* no field of the file: how far a member of an ensemble lies from the count
                         of memory_engine.h, in standard deviations */
};

/* From the client to the engine, and back: HTTP, tokenizer, proxies (run/workload.h). */
struct front_end {
    double request_s, prompt_token_s; /* before the engine has the request */
    double token_s;                   /* from the end of a step until the client has its token */
    double serial_s;                  /* more before the engine, of one request at a time */
};

/* Between the data-parallel ranks of a model with experts, in every layer (collective.h). */
enum exchange_method { EXCHANGE_GATHER, EXCHANGE_ALL_TO_ALL };
struct deployment_exchange {
    int32_t method;   /* enum exchange_method */
    double latency_s; /* of each of its two ways */
    double gb_per_s;  /* of what a rank receives or sends; 0: as an all-reduce of the ranks */
    double dispatch_bytes, combine_bytes; /* of an element on each way; 0: as activations */
    double imbalance; /* most tokens of the experts of a rank, over the mean of ranks; 0 is 1 */
    /* Where no rank has more tokens than this, all have as many as the one with most: CUDA graphs
     * are of one size for all ranks. */
    int32_t padded_tokens;
    double expert_s; /* of each expert that a rank holds, in a layer, with weights in fp8, whatever
                        it is picked for */
};

/* In place of the profile's lines, for the number of GPUs that is deployed. */
struct deployment_all_reduce {
    double latency_s, gb_per_s; /* 0 GB/s: the profile's lines count */
    double bulk_latency_s, bulk_gb_per_s, bulk_from_bytes;
};

/* The kernels of the server against those of the profile: other versions take other times. */
struct deployment_kernels {
    double prompt_frac; /* of the time of products, element-wise work and prompts' attention in a
                           step with prompts; 0 is 1 */
};

/* What a server found in its prefix cache, where only that is known of its prompts. */
struct deployment_cache {
    double hit_frac; /* of each prompt, from its beginning */
};

/* Below the value, half a normal distribution with `low` as its 5th percentile; above it, half of
 * one with `high` as its 95th. */
struct deployment_interval {
    int section; /* of deployment_sections; -1: num_blocks */
    int field;   /* of that section; of deployment_fields */
    double low, high;
};
enum { DEPLOYMENT_INTERVALS = 24 };

/* Between the normal numbers that two of the intervals are drawn with. */
struct deployment_correlation {
    int a, b; /* keys of the intervals, deployment_interval_key */
    double r;
};
enum { DEPLOYMENT_CORRELATIONS = 28 };

struct deployment {
    char name[128];     /* of the file, or of the profile that holds the map */
    char about[256];    /* the server and its software */
    char source[512];   /* where the numbers come from */
    char assumed[512];  /* the numbers that no measurement covers; empty if none */
    int32_t num_blocks; /* KV blocks that the server reports; 0: they are computed */
    struct host_times host;
    struct deployment_memory memory;
    struct front_end front_end;
    struct deployment_all_reduce all_reduce;
    struct deployment_exchange exchange;
    struct deployment_cache cache;
    struct deployment_kernels kernels;
    size_t n_intervals;
    struct deployment_interval intervals[DEPLOYMENT_INTERVALS];
    size_t n_correlations;
    struct deployment_correlation correlations[DEPLOYMENT_CORRELATIONS];
};

/* ---- the table ---- */

enum { DEPLOYMENT_FIELDS = 4, DEPLOYMENT_HOST_FIELDS = 7, DEPLOYMENT_MEMORY_FIELDS = 2 };
enum { DEPLOYMENT_FRONT_END_FIELDS = 4 };
enum { DEPLOYMENT_ALL_REDUCE_FIELDS = 5, DEPLOYMENT_EXCHANGE_FIELDS = 8 };
enum { DEPLOYMENT_CACHE_FIELDS = 1, DEPLOYMENT_KERNELS_FIELDS = 1 };
extern const struct ifl_param deployment_fields[DEPLOYMENT_FIELDS]; /* those in no section */
extern const struct ifl_param deployment_host_fields[DEPLOYMENT_HOST_FIELDS];
extern const struct ifl_param deployment_memory_fields[DEPLOYMENT_MEMORY_FIELDS];
extern const struct ifl_param deployment_front_end_fields[DEPLOYMENT_FRONT_END_FIELDS];
extern const struct ifl_param deployment_all_reduce_fields[DEPLOYMENT_ALL_REDUCE_FIELDS];
extern const struct ifl_param deployment_exchange_fields[DEPLOYMENT_EXCHANGE_FIELDS];
extern const struct ifl_param deployment_cache_fields[DEPLOYMENT_CACHE_FIELDS];
extern const struct ifl_param deployment_kernels_fields[DEPLOYMENT_KERNELS_FIELDS];

struct deployment_section {
    const char *name;
    const struct ifl_param *fields;
    size_t n_fields;
    size_t offset; /* of the section's struct in struct deployment */
};
extern const struct deployment_section deployment_sections[];
extern const size_t deployment_n_sections;

/* ---- intervals ---- */

/* Reads `intervals` of a map; its other keys are laid already. */
int deployment_lay_intervals(const struct node *map, const char *where,
                             struct deployment *deployment, struct ifl_error *error);
/* `key` as "host.step_s". -1 if there is no such number, or no room. */
int deployment_set_interval(struct deployment *deployment, const char *key, double low,
                            double high);
/* IFL_E_INPUT if a value lies outside of its interval, or if no numbers can be correlated so. */
int deployment_check_intervals(const struct deployment *deployment, struct ifl_error *error);
/* Puts draws from the intervals of `from`, around its values, into `to`; each within what the field
 * takes, and a block at least. `normal` gives the standard normal number of a key, independent of
 * the others'; correlations are laid over them. */
void deployment_draw(const struct deployment *from, double (*normal)(const void *context, int key),
                     const void *context, struct deployment *to);
/* The same number for the same field in every deployment. */
int deployment_interval_key(const struct deployment_interval *of);
/* The interval key of "host.step_s"; -1: no number has that name. */
int deployment_key_of(const char *name);
/* The name of the number with that interval key. */
const char *deployment_key_name(int key, char name[64]);
void deployment_write_intervals(const struct deployment *deployment, const char *indent, FILE *out);

/* ---- deployment_correlations.c ---- */

/* Reads a list of [number, number, correlation] into the deployment. */
int deployment_lay_correlations(const struct node *list, const char *path,
                                struct deployment *deployment, struct ifl_error *error);
/* -1 if there is no room. */
int deployment_set_correlation(struct deployment *deployment, const char *a, const char *b,
                               double r);
void deployment_drop_correlations(struct deployment *deployment, int key);
/* The normal numbers of the intervals, in their order, from independent ones. False: no numbers can
 * be correlated so. */
bool deployment_correlate(const struct deployment *deployment, double z[DEPLOYMENT_INTERVALS]);
void deployment_write_correlations(const struct deployment *deployment, const char *indent,
                                   FILE *out);

/* ---- reading ---- */

/* `name` is the name of a file in configs/deployments or a path. The file is whole, or lays its
 * keys over those of another file that its `base` names, a path relative to its folder. */
int deployment_load(const char *name, struct deployment *deployment, struct ifl_error *error);

/* Lays the map at `where` ("deployment" in messages) over the deployment: over that of `base` if
 * the map names one. A map over a zeroed deployment without a name has to be whole: a value without
 * a default is then required. Paths are relative to the folder `beside`; NULL: to the working
 * directory. */
int deployment_lay(const struct node *map, const char *where, const char *beside,
                   struct deployment *deployment, struct ifl_error *error);

/* The file that the map's `base` names, or the word that stands for such a map, relative as in
 * deployment_lay; "" for NULL and without a base. */
int deployment_find(const struct node *map, const char *beside, char path[512],
                    struct ifl_error *error);
/* The file that the `base` of a deployment's file names; "" without one, or if either cannot be
 * read. */
void deployment_find_base(const char *path, char base_path[512]);

/* Fills the sections that a whole deployment may lack with their defaults. */
int deployment_fill_optional(struct deployment *deployment, struct ifl_error *error);

/* ---- the sections `host` and `memory` that profiles had before, in microseconds ---- */

extern const char *const deployment_old_sections[]; /* NULL-ended */
/* Fills the deployment from the profile's sections, which are required. */
int deployment_read_old(const struct node *root, struct deployment *deployment,
                        struct ifl_error *error);

/* ---- writing ---- */

/* The comment behind a section (field NULL) or a field, or NULL for none. The section is "" for the
 * fields that are in none. */
typedef const char *remark_fn(void *context, const char *section, const char *field);
/* Writes the sections as a map below `deployment:`, which deployment_lay reads back to the same
 * bits. A section is left out if all its fields have defaults and have them. `remark` may be
 * NULL. */
void deployment_write(const struct deployment *deployment, remark_fn *remark, void *context,
                      FILE *out);
/* The same as a file of configs/deployments. */
void deployment_write_file(const struct deployment *deployment, remark_fn *remark, void *context,
                           FILE *out);

#endif
