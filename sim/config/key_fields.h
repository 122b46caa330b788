/* How the tables of keys are written down: a line for each plain field of struct config. */
#ifndef SIM_CONFIG_KEY_FIELDS_H
#define SIM_CONFIG_KEY_FIELDS_H

#include "config/keys.h"

#include <math.h>

#define AT(member) offsetof(struct config, member)
#define CAP(member) ((double)sizeof((struct config *)0)->member)
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* name, where it is stored, default, range, unit, one line */
#define INT(key, member, dflt, min, max, unit, doc)                                                \
    {                                                                                              \
        key, IFL_INT, AT(member), dflt, min, max, NULL, unit, doc                                  \
    }
#define COUNT(key, member, dflt, unit, doc)                                                        \
    {                                                                                              \
        key, IFL_COUNT, AT(member), dflt, 0, INFINITY, NULL, unit, doc                             \
    }
#define REAL(key, member, dflt, min, max, unit, doc)                                               \
    {                                                                                              \
        key, IFL_REAL, AT(member), dflt, min, max, NULL, unit, doc                                 \
    }
#define TIME(key, member, dflt, min, max, doc)                                                     \
    {                                                                                              \
        key, IFL_TIME, AT(member), dflt, min, max, NULL, "s", doc                                  \
    }
#define BOOL(key, member, dflt, doc)                                                               \
    {                                                                                              \
        key, IFL_BOOL, AT(member), dflt, 0, 1, NULL, "", doc                                       \
    }
#define CHOICE(key, member, choices, dflt, doc)                                                    \
    {                                                                                              \
        key, IFL_CHOICE, AT(member), dflt, 0, 0, choices, "", doc                                  \
    }
#define TEXT(key, member, dflt, doc)                                                               \
    {                                                                                              \
        key, IFL_TEXT, AT(member), 0, 0, CAP(member), dflt, "", doc                                \
    }
#define TEXT_REQUIRED(key, member, doc)                                                            \
    {                                                                                              \
        key, IFL_TEXT, AT(member), NAN, 0, CAP(member), NULL, "", doc                              \
    }

/* The least rate and the least period: 0 has no meaning for either, and no real value is smaller.
 */
#define SMALL 1e-9

#define ANY INT32_MAX
#define A_BILLION 1e9 /* seconds: 32 years, still exact to 128 ns as a double */

/* Initialisers of a struct key_table from the arrays NAME_fields and NAME_by_hand. */
#define FIELDS(table) .fields = table##_fields, .n_fields = COUNT_OF(table##_fields)
#define BY_HAND(table) .by_hand = table##_by_hand, .n_by_hand = COUNT_OF(table##_by_hand)

/* ---- keys_workload.c ---- */
extern const struct key_table workload_keys, filter_keys, arrivals_keys, predictor_keys,
    patience_keys, retry_keys, beams_keys;
/* ---- keys_adapters.c ---- */
extern const struct key_table adapters_keys, adapter_serving_keys;
/* ---- keys_serving.c ---- */
extern const struct key_table serving_keys, in_flight_keys, kv_keys, keep_keys, speculation_keys;
/* ---- keys_tiers.c ---- */
extern const struct key_table tiers_keys, tier_host_keys, tier_disk_keys, tier_store_keys;
/* ---- keys_machine.c ---- */
extern const struct key_table cost_keys, engine_keys, parallel_keys, deployment_keys,
    deployment_host_keys, deployment_memory_keys, deployment_front_end_keys,
    deployment_all_reduce_keys, deployment_exchange_keys, deployment_cache_keys,
    deployment_kernels_keys;
/* ---- keys_cluster.c ---- */
extern const struct key_table cluster_keys, news_keys, gateway_keys, router_keys, handover_keys,
    links_keys;
/* ---- keys_migration.c ---- */
extern const struct key_table migration_keys;
/* ---- keys_output.c ---- */
extern const struct key_table slo_keys, output_keys, capacity_keys, objectives_keys, placement_keys;
/* ---- keys_live.c ---- */
extern const struct key_table live_keys, live_limits_keys, live_answers_keys, live_chat_keys,
    live_faults_keys;

#endif
