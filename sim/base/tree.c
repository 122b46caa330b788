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
    ifl_assert(parent->kind == (key ? NODE_MAP : NODE_LIST));
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

enum { MAX_NUMBER_CHARS = 4 };

/* SIZE_MAX if the key is no number. */
static size_t number_of(const char *key)
{
    const size_t n_chars = strspn(key, "0123456789");
    const bool padded = key[0] == '0' && n_chars > 1;
    if (n_chars == 0 || n_chars > MAX_NUMBER_CHARS || key[n_chars] || padded)
        return SIZE_MAX;
    return (size_t)strtoul(key, NULL, 10);
}

static struct node **slot_in(const struct node *parent, const char *key)
{
    if (!parent || parent->kind != NODE_LIST)
        return slot_of(parent, key, strlen(key));
    const size_t i = number_of(key);
    return i < parent->n ? &parent->of[i] : NULL;
}

struct node *tree_element(const struct node *parent, const char *key)
{
    struct node **slot = slot_in(parent, key);
    return slot ? *slot : NULL;
}

bool tree_is_elements(const struct node *node)
{
    bool numbers = node->kind == NODE_MAP && node->n > 0;
    for (size_t i = 0; numbers && i < node->n; i++)
        numbers = number_of(node->of[i]->key) < SIZE_MAX;
    return numbers;
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

const char *tree_text(const struct node *node)
{
    return node && node->kind == NODE_SCALAR && !tree_is_null(node) ? node->text : NULL;
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
    ifl_assert(map->kind == NODE_MAP);
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

static bool merges(const struct node *below, const struct node *top)
{
    return top->kind == NODE_MAP &&
           (below->kind == NODE_MAP || (below->kind == NODE_LIST && tree_is_elements(top)));
}

static int overlay_child(struct node *under, const struct node *top, struct ifl_error *error)
{
    struct node **slot = slot_in(under, top->key);
    const bool says_nothing = top->kind == NODE_SCALAR && !top->quoted && !*top->text;
    if (slot && merges(*slot, top))
        return tree_overlay(*slot, top, error);
    if (slot)
        return says_nothing ? 0 : replace(slot, tree_copy(top), error);
    if (under->kind == NODE_LIST)
        return tree_fail(top, error, "there is no %s in a list of %zu, expected a number from 0 on",
                         top->key, under->n);
    return tree_append(under, top->key, tree_copy(top), error);
}

int tree_overlay(struct node *under, const struct node *over, struct ifl_error *error)
{
    int code = move_to(under, over, error);
    for (size_t i = 0; i < over->n && code == 0; i++)
        code = overlay_child(under, over->of[i], error);
    return code;
}
