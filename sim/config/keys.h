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
    bool is_deployment;      /* its fields are those of struct deployment, without defaults */
    bool is_module;          /* its short form is the module's name alone */
    bool may_be_list;        /* several modules may stand in a list, asked in order */
    enum ifl_kind kind;      /* kind of the module */
    const char *dflt_policy; /* the module used when the file names none; NULL: it is required */
};

/* In the order in which they are written. */
extern const struct key_section key_sections[];
extern const size_t n_key_sections;

enum { MAX_KEY_CHARS = 128, MAX_KEYS_BELOW = 24 };

/* "serving" and "kv" joined by a dot; nothing to join at the top. */
const char *key_join(const char *where, const char *name, char path[MAX_KEY_CHARS]);

/* Fills `others`, NULL-ended, with the keys of a section that fields_read is to skip: maps below
 * the section, and keys read by hand. */
void key_others(const struct key_section *section, const char *others[MAX_KEYS_BELOW + 1]);

/* Writes the key as it is in the table: without the number of a list's module
 * ("serving.admit.1.max_rpm"), and without the word "intervals" in "deployment.intervals". */
const char *key_plain(const char *dotted, char plain[MAX_KEY_CHARS]);

/* Returns "serving.kv.num_blocks" for "cluster.pools.NAME.serving.kv.num_blocks", "" for the pool
 * itself, and NULL if the key is in no pool. */
const char *key_in_pool(const char *dotted);

/* True for a top-level key that a pool may have in addition to its count, and for keys below such a
 * key. */
bool key_is_of_pools(const char *dotted);

/* True for the path of a map of keys, such as "serving.kv"; false for a key, whatever its value. */
bool key_is_section(const char *dotted);

/* True if a word may stand for the map at `dotted`. */
bool key_has_short_form(const char *dotted);

/* Returns the plain field of `struct config` for the key; NULL: the key is no plain field. */
const struct ifl_param *key_field(const char *dotted);

/* Returns 0 if the dotted key, without the number of a list's module, is in the table: as a value
 * or, unless only_values, as a map of keys. Otherwise it is an error at the node, with the nearest
 * valid key in the message. */
int key_check(const char *dotted, bool only_values, const struct node *node,
              struct ifl_error *error);

#endif
