/* A YAML document as a tree. Every node has its place in the file.
 *
 * libyaml parses. Maps keep their order. A key given twice, an anchor that recurses and, but for
 * tree_parse_all, a document after the first are errors. A parent owns its children. One tree may
 * have nodes of several files (a preset, the file over it, an edit of the command line), so each
 * node names its file. */
#ifndef SIM_BASE_TREE_H
#define SIM_BASE_TREE_H

#include <stddef.h>
#include <stdio.h>

#include "inflight/error.h"
#include "inflight/policy.h"

enum node_kind { NODE_SCALAR, NODE_MAP, NODE_LIST };

struct node {
    enum node_kind kind;
    char *key;        /* in its parent map, NULL in a list and at the root */
    char *text;       /* scalars: as written, without quotes */
    bool quoted;      /* scalars: was in quotes, so it is text, never a number or null */
    struct node **of; /* children */
    size_t n;
    char *file;       /* "--set KEY=VALUE" for edits */
    int line, column; /* 1-based, of its key in a map, of itself elsewhere; 0 in edits */
};

/* Creates a node without children at the place of `like`; NULL if memory is short. */
struct node *tree_node(enum node_kind kind, const struct node *like);
struct node *tree_scalar(const char *text, bool quoted, const struct node *like);
/* Appends `child` to `parent` under `key` (NULL in a list). If memory is short the child is freed.
 */
int tree_append(struct node *parent, const char *key, struct node *child, struct ifl_error *error);

int tree_load(const char *path, struct node **root, struct ifl_error *error);
int tree_parse(const char *text, size_t n_bytes, const char *name, struct node **root,
               struct ifl_error *error);
/* As tree_parse, of all documents of the text: *roots is the list of them. */
int tree_parse_all(const char *text, size_t n_bytes, const char *name, struct node **roots,
                   struct ifl_error *error);
void tree_free(struct node *root);
struct node *tree_copy(const struct node *node);
/* Prints YAML text, maps in block style and lists in flow style. Parsing it gives the same tree. */
int tree_print(const struct node *root, FILE *out, struct ifl_error *error);

/* True for plain `null`, `~` or nothing at all: the key keeps its default. */
bool tree_is_null(const struct node *node);
/* A node in words, for messages: "a map", "a list", or its text, in quotes if the file has them. */
const char *tree_describe(const struct node *node, char text[128]);
/* The text of a scalar; NULL for a null, for a map or list, and for NULL. */
const char *tree_text(const struct node *node);
/* The child of a map, or NULL. */
struct node *tree_child(const struct node *map, const char *key);
/* Removes the child from the map and frees it, if there is one. */
void tree_drop(struct node *map, const char *key);
/* The element of a list at the number in `key`, from "0" on, or the child of a map; NULL if there
 * is none. */
struct node *tree_element(const struct node *parent, const char *key);
/* True for a map with only numbers as keys, which stands for some elements of a list. */
bool tree_is_elements(const struct node *node);
/* The node at "a.b.c", or NULL. */
struct node *tree_at(const struct node *root, const char *dotted);
/* Sets the child of `map` under `key`; an earlier child with that key is replaced. If memory is
 * short `child` is freed. */
int tree_set(struct node *map, const char *key, struct node *child, struct ifl_error *error);
/* Puts a copy of `value` at "a.b.c", making maps on the way. A scalar or list on the way is an
 * error. */
int tree_put(struct node *root, const char *dotted, const struct node *value,
             struct ifl_error *error);
/* Lays `over` on `under`: maps merge key by key, a map of numbers merges with the elements of a
 * list, everything else is replaced. A key without a value changes nothing. */
int tree_overlay(struct node *under, const struct node *over, struct ifl_error *error);

/* Fills the error with the node's file, line and column, and the message. */
IFL_PRINTF(3, 4)
int tree_fail(const struct node *node, struct ifl_error *error, const char *format, ...);

/* ---- typed fields ---- */

/* Reads a map into the struct at `out` by a table of fields: defaults first, then the map's values.
 *   map     may be NULL: all defaults
 *   where   the dotted path of the map, for messages ("serving.batching")
 *   fields  [n]; a field with the default NAN is required
 *   skip    NULL-ended: keys of the map to leave alone; may be NULL
 * A wrong type, a value out of range and an unknown key (with the nearest right one) are errors at
 * the node. */
int fields_read(const struct node *map, const char *where, const struct ifl_param *fields, size_t n,
                const char *const *skip, void *out, struct ifl_error *error);

/* Reads one value by its field. */
int field_read(const struct node *node, const char *where, const struct ifl_param *field, void *out,
               struct ifl_error *error);

/* The value of one field as YAML text; reading it back gives the same bits. */
void field_print(const struct ifl_param *field, const void *base, char *text, size_t n_bytes);

/* The values of a field in words, for messages and documentation: "a whole number from 1 to 8". */
void field_describe(const struct ifl_param *field, char *text, size_t n_bytes);
/* True if the number is not given: its default is below the range that the field takes. */
bool field_is_left_out(const struct ifl_param *field, const void *base);
/* The field's default as YAML text; "required" if it has none, "none" if it is below the range that
 * the field takes. */
void field_print_default(const struct ifl_param *field, char *text, size_t n_bytes);

#endif
