/* A deployment: how a server runs an engine on a GPU, apart from what the card itself can do.
 *
 * A deployment is a map, in a file of its own (configs/deployments/), in a hardware profile or in a
 * configuration. A map with `base: NAME` takes from that deployment the values that it does not
 * give.
 *
 * Its numbers are in sections, each with a table (deployment_sections). A new section is a struct,
 * a table of its fields, a row of deployment_sections and one of the configuration's key_sections
 * (config/keys.c).
 *
 * `intervals:` has, under the same keys, the ends [low, high] of the central 90% of what a number
 * may be. An ensemble draws from them (fit/spread.h). A number that an overlay replaces loses the
 * interval that it had in the deployment below. */
#ifndef SIM_COST_DEPLOYMENT_H
#define SIM_COST_DEPLOYMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "inflight/error.h"
#include "inflight/policy.h"

struct node;

/* Host time of a step: per layer, per step, per sequence. */
struct host_times {
    double layer_s, step_s, seq_s;
    double prompt_layer_s; /* additional time per layer of a step with prompts: between piecewise
                              CUDA graphs the host launches attention */
    double floor_s; /* least forward time: with an eager engine the host needs longer than small
                       steps do */
    double prompt_floor_layer_s; /* least forward time per layer in a step with prompts, if only
                                    steps without prompts are CUDA graphs */
    bool eager; /* kernels are not replayed from CUDA graphs: all-reduces are the eager ones */
};

struct deployment_memory {
    double workspace_gib;     /* memory other than weights, activations and KV: context, libraries,
                                 graphs */
    double activation_tokens; /* tokens of the largest step for which activations are reserved */
    double drawn_sds; /* no field of the file: deviation of an ensemble member from the count of
                         memory_engine.h, in standard deviations */
};

/* Latencies from the client to the engine and back: HTTP, tokenizer, proxies (run/workload.h). */
struct front_end {
    double request_s, prompt_token_s; /* before the engine receives the request */
    double token_s;                   /* from the end of a step until the client has its token */
    double serial_s;                  /* additional time before the engine, for one request at a
                                         time */
};

/* Exchange between the data-parallel ranks of a model with experts, in every layer (collective.h).
 */
enum exchange_method { EXCHANGE_GATHER, EXCHANGE_ALL_TO_ALL };
struct deployment_exchange {
    int32_t method;   /* enum exchange_method */
    double latency_s; /* latency of each of its two directions */
    double gb_per_s;  /* rate at which a rank receives or sends; 0: as an all-reduce of the ranks */
    double dispatch_bytes, combine_bytes; /* bytes of an element in each direction; 0: as
                                             activations */
    double imbalance; /* largest number of tokens of a rank's experts, over the mean of the ranks;
                         0 counts as 1 */
    /* If no rank has more tokens than this, all ranks compute as many as the one with most: CUDA
     * graphs have one size for all ranks. */
    int32_t padded_tokens;
    double expert_s; /* time per expert that a rank holds, per layer, with fp8 weights, whether or
                        not the expert is picked */
};

/* The all-reduce in place of the profile's lines, for the deployed number of GPUs. */
struct deployment_all_reduce {
    double latency_s, gb_per_s; /* 0 GB/s: the profile's lines are used */
    double bulk_latency_s, bulk_gb_per_s, bulk_from_bytes;
};

/* The kernels of the server relative to those of the profile: other versions take other times. */
struct deployment_kernels {
    double prompt_frac; /* factor of the time of products, element-wise work and prompts' attention
                           in a step with prompts; 0 counts as 1 */
};

/* What a server found in its prefix cache, if nothing else is known about the prompts. */
struct deployment_cache {
    double hit_frac; /* share of each prompt, from its beginning */
};

/* The distribution of a number: below the value, half a normal distribution with `low` as its 5th
 * percentile; above it, half of one with `high` as its 95th. */
struct deployment_interval {
    int section; /* of deployment_sections; -1: num_blocks */
    int field;   /* index of the field in that section; with section -1, in deployment_fields */
    double low, high;
};
enum { DEPLOYMENT_INTERVALS = 24 };

/* A correlation between the normal numbers with which two of the intervals are drawn. */
struct deployment_correlation {
    int a, b; /* the intervals' keys (deployment_interval_key) */
    double r;
};
enum { DEPLOYMENT_CORRELATIONS = 28 };

struct deployment {
    char name[128];     /* name of the file, or of the profile that holds the map */
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
extern const struct ifl_param deployment_fields[DEPLOYMENT_FIELDS]; /* fields in no section */
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
    size_t offset; /* offset of the section's struct in struct deployment */
};
extern const struct deployment_section deployment_sections[];
extern const size_t deployment_n_sections;

/* ---- intervals ---- */

/* Reads `intervals` of a map. The map's other keys must have been read already. */
int deployment_lay_intervals(const struct node *map, const char *where,
                             struct deployment *deployment, struct ifl_error *error);
/* Sets the interval of `key`, such as "host.step_s". Returns -1 if there is no such number, or no
 * room. */
int deployment_set_interval(struct deployment *deployment, const char *key, double low,
                            double high);
/* Returns IFL_E_INPUT if a value is outside its interval, or if the correlations are impossible. */
int deployment_check_intervals(const struct deployment *deployment, struct ifl_error *error);
/* Draws numbers from the intervals of `from`, around its values, into `to`. Each is limited to the
 * range of its field; the number of blocks is at least 1. `normal` returns the standard normal
 * number of a key, independent of those of the other keys; correlations are applied to them. */
void deployment_draw(const struct deployment *from, double (*normal)(const void *context, int key),
                     const void *context, struct deployment *to);
/* Returns a number that identifies the field, the same in every deployment. */
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
/* Adds a correlation. Returns -1 if there is no room. */
int deployment_set_correlation(struct deployment *deployment, const char *a, const char *b,
                               double r);
void deployment_drop_correlations(struct deployment *deployment, int key);
/* Turns independent normal numbers, in the order of the intervals, into correlated ones. Returns
 * false if the correlations are impossible. */
bool deployment_correlate(const struct deployment *deployment, double z[DEPLOYMENT_INTERVALS]);
void deployment_write_correlations(const struct deployment *deployment, const char *indent,
                                   FILE *out);

/* ---- reading ---- */

/* `name` is the name of a file in configs/deployments or a path. The file is whole, or lays its
 * keys over those of another file that its `base` names, a path relative to its folder. */
int deployment_load(const char *name, struct deployment *deployment, struct ifl_error *error);

/* Overrides the deployment with the map at `where` ("deployment" in messages); if the map names a
 * `base`, the base comes first. A map over a zeroed deployment without a name must be complete:
 * values without a default are then required. Paths are relative to the folder `beside`; NULL: to
 * the working directory. */
int deployment_lay(const struct node *map, const char *where, const char *beside,
                   struct deployment *deployment, struct ifl_error *error);

/* Finds the file that the map's `base` names, or that a word in place of the map names, relative as
 * in deployment_lay; "" for NULL or without a base. */
int deployment_find(const struct node *map, const char *beside, char path[512],
                    struct ifl_error *error);

enum { DEPLOYMENT_BASES = 8 }; /* most files in turn that a deployment's file is laid over */
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

/* Returns the comment to write after a section (field NULL) or a field, or NULL. The section is ""
 * for fields in no section. */
typedef const char *remark_fn(void *context, const char *section, const char *field);
/* Writes the sections as a map below `deployment:`, which deployment_lay reads back to the same
 * bits. A section is left out if all its fields have defaults and have them. `remark` may be
 * NULL. */
void deployment_write(const struct deployment *deployment, remark_fn *remark, void *context,
                      FILE *out);
/* As deployment_write, as a file of configs/deployments. */
void deployment_write_file(const struct deployment *deployment, remark_fn *remark, void *context,
                           FILE *out);

#endif
