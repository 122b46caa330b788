/* The tree's nodes: making, finding, copying and merging them. */
#include "base/tree.h"

#include <string.h>

/* A path longer than this is a mistake, and recursion over the tree stays shallow. */
enum { MAX_PATH_KEYS = 64 };

static char *text_copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

struct node *tree_node(enum node_kind kind, const struct node *like)
{
    struct node *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    *node = (struct node){.kind = kind, .line = like->line, .column = like->column};
    node->file = text_copy(like->file);
    if (!node->file) {
        tree_free(node);
        return NULL;
    }
    return node;
}

struct node *tree_scalar(const char *text, bool quoted, const struct node *like)
{
    struct node *node = tree_node(NODE_SCALAR, like);
    if (!node)
        return NULL;
    node->quoted = quoted;
    node->text = text_copy(text);
    if (!node->text) {
        tree_free(node);
        return NULL;
    }
    return node;
}

void tree_free(struct node *root)
{
    if (!root)
        return;
    for (size_t i = 0; i < root->n; i++)
        tree_free(root->of[i]);
    free(root->of);
    free(root->key);
    free(root->text);
    free(root->file);
    free(root);
}

static int rename_key(struct node *node, const char *key)
{
    char *copy = text_copy(key);
    if (key && !copy)
        return IFL_E_NOMEM;
    free(node->key);
    node->key = copy;
    return 0;
}

/* Doubles the array whenever its length reaches a power of two. */
static int append(struct node *parent, struct node *child)
{
    const size_t n = parent->n;
    if ((n & (n - 1)) == 0) {
        struct node **grown = realloc(parent->of, (n ? 2 * n : 1) * sizeof(struct node *));
        if (!grown)
            return IFL_E_NOMEM;
        parent->of = grown;
    }
    parent->of[parent->n++] = child;
    return 0;
}

int tree_append(struct node *parent, const char *key, struct node *child, struct ifl_error *error)
{
    if (child && rename_key(child, key) == 0 && append(parent, child) == 0)
        return 0;
    tree_free(child);
    return ifl_fail_nomem(error);
}

static int copy_children(struct node *copy, const struct node *node)
{
    for (size_t i = 0; i < node->n; i++) {
        struct node *child = tree_copy(node->of[i]);
        if (!child || append(copy, child) < 0) {
            tree_free(child);
            return IFL_E_NOMEM;
        }
    }
    return 0;
}

struct node *tree_copy(const struct node *node)
{
    struct node *copy = node->kind == NODE_SCALAR ? tree_scalar(node->text, node->quoted, node)
                                                  : tree_node(node->kind, node);
    if (!copy)
        return NULL;
    if (rename_key(copy, node->key) < 0 || copy_children(copy, node) < 0) {
        tree_free(copy);
        return NULL;
    }
    return copy;
}

/* ---- finding ---- */

static struct node **slot_of(const struct node *map, const char *key, size_t n_chars)
{
    if (!map || map->kind != NODE_MAP)
        return NULL;
    for (size_t i = 0; i < map->n; i++)
        if (strncmp(map->of[i]->key, key, n_chars) == 0 && map->of[i]->key[n_chars] == '\0')
            return &map->of[i];
    return NULL;
}

struct node *tree_child(const struct node *map, const char *key)
{
    struct node **slot = slot_of(map, key, strlen(key));
    return slot ? *slot : NULL;
}

struct node *tree_at(const struct node *root, const char *dotted)
{
    const size_t n_chars = strcspn(dotted, ".");
    struct node **slot = slot_of(root, dotted, n_chars);
    if (!slot || dotted[n_chars] == '\0')
        return slot ? *slot : NULL;
    return tree_at(*slot, dotted + n_chars + 1);
}

bool tree_is_null(const struct node *node)
{
    if (node->kind != NODE_SCALAR || node->quoted)
        return false;
    return !*node->text || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0;
}

const char *tree_describe(const struct node *node, char text[128])
{
    if (node->kind != NODE_SCALAR)
        return node->kind == NODE_MAP ? "a map" : "a list";
    if (!node->quoted && !*node->text)
        return "empty";
    snprintf(text, 128, node->quoted ? "\"%.100s\"" : "%.100s", node->text);
    /* Control characters would break the line of a message. */
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    return text;
}

int tree_fail(const struct node *node, struct ifl_error *error, const char *format, ...)
{
    char text[sizeof error->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ifl_fail_at(error, node->file, node->line, node->column, "%s", text);
}

/* ---- changing ---- */

void tree_drop(struct node *map, const char *key)
{
    struct node **slot = slot_of(map, key, strlen(key));
    if (!slot)
        return;
    tree_free(*slot);
    map->n--;
    memmove(slot, slot + 1, (size_t)(map->of + map->n - slot) * sizeof(struct node *));
}

/* Puts `child` in the place of *slot, under the same key. */
static int replace(struct node **slot, struct node *child, struct ifl_error *error)
{
    if (!child || rename_key(child, (*slot)->key) < 0) {
        tree_free(child);
        return ifl_fail_nomem(error);
    }
    tree_free(*slot);
    *slot = child;
    return 0;
}

int tree_set(struct node *map, const char *key, struct node *child, struct ifl_error *error)
{
    struct node **slot = slot_of(map, key, strlen(key));
    return slot ? replace(slot, child, error) : tree_append(map, key, child, error);
}

/* Moves *map to the map under `key`, which is made if it does not exist. */
static int enter(struct node **map, const char *key, const struct node *value, const char *dotted,
                 struct ifl_error *error)
{
    struct node **slot = slot_of(*map, key, strlen(key));
    if (slot && (*slot)->kind != NODE_MAP && !tree_is_null(*slot)) {
        char found[128];
        return tree_fail(value, error, "%s cannot be set: its part %s is %s, not a map", dotted,
                         key, tree_describe(*slot, found));
    }
    if (!slot || (*slot)->kind != NODE_MAP) {
        const int code = tree_set(*map, key, tree_node(NODE_MAP, value), error);
        if (code < 0)
            return code;
    }
    *map = tree_child(*map, key);
    ifl_require(*map);
    return 0;
}

int tree_put(struct node *root, const char *dotted, const struct node *value,
             struct ifl_error *error)
{
    struct node *map = root;
    const char *rest = dotted;
    for (int depth = 0; depth < MAX_PATH_KEYS; depth++) {
        char key[128];
        const size_t n_chars = strcspn(rest, ".");
        if (n_chars == 0 || n_chars >= sizeof key)
            return tree_fail(value, error, "%.200s is not a key, expected words joined by dots",
                             *dotted ? dotted : "an empty name");
        snprintf(key, sizeof key, "%.*s", (int)n_chars, rest);
        if (rest[n_chars] == '\0')
            return tree_set(map, key, tree_copy(value), error);
        const int code = enter(&map, key, value, dotted, error);
        if (code < 0)
            return code;
        rest += n_chars + 1;
    }
    return tree_fail(value, error, "%.100s... has more than %d parts", dotted, MAX_PATH_KEYS);
}

/* A merged map takes the place of its upper layer, if that is a place in a file. */
static int move_to(struct node *node, const struct node *place, struct ifl_error *error)
{
    if (!place->line)
        return 0;
    char *file = text_copy(place->file);
    if (!file)
        return ifl_fail_nomem(error);
    free(node->file);
    node->file = file;
    node->line = place->line;
    node->column = place->column;
    return 0;
}

int tree_overlay(struct node *under, const struct node *over, struct ifl_error *error)
{
    if (move_to(under, over, error) < 0)
        return error->code;
    for (size_t i = 0; i < over->n; i++) {
        const struct node *top = over->of[i];
        struct node *below = tree_child(under, top->key);
        const bool says_nothing = top->kind == NODE_SCALAR && !top->quoted && !*top->text;
        int code = 0;
        if (below && below->kind == NODE_MAP && top->kind == NODE_MAP)
            code = tree_overlay(below, top, error);
        else if (!below || !says_nothing)
            code = tree_set(under, top->key, tree_copy(top), error);
        if (code < 0)
            return code;
    }
    return 0;
}
