/* The table of keys: every key that a configuration may hold, declared once.
 *
 * The table is cut into sections, one for each map of the file. Most keys are plain fields of
 * `struct config`. A few have a shape of their own: they are read by hand and only documented here.
 * A section may belong to a policy module: its keys are the module's parameters. */
#ifndef SIM_CONFIG_KEYS_H
#define SIM_CONFIG_KEYS_H

#include "base/tree.h"
#include "config/config.h"

struct key_by_hand {
    const char *name, *takes, *dflt, *doc;
};

struct key_table {
    const struct ifl_param *fields;
    size_t n_fields;
    const struct key_by_hand *by_hand;
    size_t n_by_hand;
};

struct key_section {
    const char *where; /* dotted path of the map, "" for the file itself */
    const struct key_table *keys;
    bool is_deployment;      /* its fields are those of struct deployment, and without defaults */
    bool is_module;          /* its short form is the module's name alone */
    bool may_be_list;        /* several modules may stand in a list, asked in order */
    enum ifl_kind kind;      /* of the module */
    const char *dflt_policy; /* the module used when the file names none; NULL: it is required */
};

/* In the order in which they are written. */
extern const struct key_section key_sections[];
extern const size_t n_key_sections;

enum { MAX_KEY_CHARS = 128, MAX_KEYS_BELOW = 24 };

/* "serving" and "kv" joined by a dot; nothing to join at the top. */
const char *key_join(const char *where, const char *name, char path[MAX_KEY_CHARS]);

/* The keys of a section that fields_read skips: maps below it, and keys read by hand. NULL-ended.
 */
void key_others(const struct key_section *section, const char *others[MAX_KEYS_BELOW + 1]);

/* A key of one module of a list, such as "serving.admit.1.max_rpm", without its number; of
 * "deployment.intervals" without that word; any other key as it is. */
const char *key_plain(const char *dotted, char plain[MAX_KEY_CHARS]);

/* "serving.kv.num_blocks" of "cluster.pools.NAME.serving.kv.num_blocks", "" of the pool itself;
 * NULL: the key is of no pool. */
const char *key_in_pool(const char *dotted);

/* True for a top key that a pool may have beside its count, and for keys below one. */
bool key_is_of_pools(const char *dotted);

/* True for the path of a map of keys, such as "serving.kv"; false for a key, whatever its value. */
bool key_is_section(const char *dotted);

/* True if a word may stand for the map at `dotted`. */
bool key_has_short_form(const char *dotted);

/* The plain field of `struct config` that is the key; NULL: it is none. */
const struct ifl_param *key_field(const char *dotted);

/* 0 if the dotted key, without the number of a list's module, is in the table, as a value or
 * (unless only_values) as a map of keys. If not, the error at the node offers the nearest right
 * key. */
int key_check(const char *dotted, bool only_values, const struct node *node,
              struct ifl_error *error);

#endif
