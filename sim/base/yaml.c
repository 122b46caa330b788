/* Trees from and to YAML text, by libyaml. */
#include "base/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/text_file.h"

/* Bounds on what an alias can unfold into, and on recursion. No real file comes near. */
enum { MAX_DEPTH = 64, MAX_NODES = 10000, MAX_FILE_MIB = 1 };

/* ---- reading ---- */

struct reading {
    yaml_document_t document;
    const char *name;
    const yaml_node_t *path[MAX_DEPTH]; /* from the root to the node at hand */
    size_t depth, n_nodes;
};

static int fail_at_mark(const struct reading *reading, yaml_mark_t mark, struct ifl_error *error,
                        const char *text)
{
    return ifl_fail_at(error, reading->name, (int)mark.line + 1, (int)mark.column + 1, "%s", text);
}

/* Line and column of an offset: for a byte that is no UTF-8 libyaml knows only the offset. */
static yaml_mark_t mark_of_offset(const char *text, size_t n_bytes, size_t offset)
{
    yaml_mark_t mark = {0};
    for (size_t i = 0; i < offset && i < n_bytes; i++) {
        mark.column = text[i] == '\n' ? 0 : mark.column + 1;
        mark.line += text[i] == '\n';
    }
    return mark;
}

static int fail_in_parser(const struct reading *reading, const yaml_parser_t *parser,
                          const char *text, size_t n_bytes, struct ifl_error *error)
{
    char message[256];
    if (parser->error == YAML_MEMORY_ERROR)
        return ifl_fail_nomem(error);
    snprintf(message, sizeof message, "not valid YAML: %s%s%s", parser->problem,
             parser->context ? " " : "", parser->context ? parser->context : "");
    const bool in_reader = parser->error == YAML_READER_ERROR;
    return fail_at_mark(reading,
                        in_reader ? mark_of_offset(text, n_bytes, parser->problem_offset)
                                  : parser->problem_mark,
                        error, message);
}

/* Checks the bounds on the events of the parser. libyaml builds a whole document before it returns
 * any of it, in time that grows with the square of the depth. Other errors are left to the reading
 * proper, which finds them again. */
static int check_size(const struct reading *reading, const char *text, size_t n_bytes,
                      struct ifl_error *error)
{
    yaml_parser_t parser;
    yaml_event_t event;
    size_t depth = 0, n_nodes = 0;
    int code = 0;
    if (!yaml_parser_initialize(&parser))
        return ifl_fail_nomem(error);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n_bytes);
    bool more = true;
    while (more && code == 0 && yaml_parser_parse(&parser, &event)) {
        const bool opens =
            event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT;
        depth += opens;
        depth -= event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        n_nodes += opens || event.type == YAML_SCALAR_EVENT || event.type == YAML_ALIAS_EVENT;
        more = event.type != YAML_STREAM_END_EVENT;
        if (depth > MAX_DEPTH)
            code = fail_at_mark(reading, event.start_mark, error, "nested deeper than 64 levels");
        else if (n_nodes > (size_t)2 * MAX_NODES)
            code = fail_at_mark(reading, event.start_mark, error, "more than 10000 values");
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return code;
}

static int check_node(struct reading *reading, const yaml_node_t *from, yaml_mark_t place,
                      struct ifl_error *error)
{
    for (size_t i = 0; i < reading->depth; i++)
        if (reading->path[i] == from)
            return fail_at_mark(reading, place, error, "an anchor that contains itself");
    if (reading->depth == MAX_DEPTH)
        return fail_at_mark(reading, place, error, "nested deeper than 64 levels");
    if (++reading->n_nodes > MAX_NODES)
        return fail_at_mark(reading, place, error, "more than 10000 values, aliases unfolded");
    return 0;
}

static int check_scalar(struct reading *reading, const yaml_node_t *from, yaml_mark_t place,
                        struct ifl_error *error)
{
    if (strcmp((const char *)from->tag, YAML_DEFAULT_SCALAR_TAG) != 0)
        return fail_at_mark(reading, place, error, "a tag, expected a value without one");
    if (strlen((const char *)from->data.scalar.value) != from->data.scalar.length)
        return fail_at_mark(reading, place, error, "text with a NUL character");
    return 0;
}

static int read_node(struct reading *reading, const yaml_node_t *from, yaml_mark_t place,
                     struct node **node, struct ifl_error *error);

static int read_list(struct reading *reading, const yaml_node_t *from, struct node *list,
                     struct ifl_error *error)
{
    const yaml_node_item_t *item = from->data.sequence.items.start;
    for (; item < from->data.sequence.items.top; item++) {
        const yaml_node_t *value = yaml_document_get_node(&reading->document, *item);
        struct node *child = NULL;
        int code = read_node(reading, value, value->start_mark, &child, error);
        if (code == 0)
            code = tree_append(list, NULL, child, error);
        if (code < 0)
            return code;
    }
    return 0;
}

static int check_key(struct reading *reading, const yaml_node_t *key, const struct node *map,
                     struct ifl_error *error)
{
    if (key->type != YAML_SCALAR_NODE || key->data.scalar.length == 0)
        return fail_at_mark(reading, key->start_mark, error, "a key that is not a word");
    const int code = check_scalar(reading, key, key->start_mark, error);
    if (code < 0)
        return code;
    const char *word = (const char *)key->data.scalar.value;
    const struct node *first = tree_child(map, word);
    if (!first)
        return 0;
    return ifl_fail_at(error, reading->name, (int)key->start_mark.line + 1,
                       (int)key->start_mark.column + 1, "key %.100s given twice, first on line %d",
                       word, first->line);
}

static int read_map(struct reading *reading, const yaml_node_t *from, struct node *map,
                    struct ifl_error *error)
{
    const yaml_node_pair_t *pair = from->data.mapping.pairs.start;
    for (; pair < from->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&reading->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(&reading->document, pair->value);
        struct node *child = NULL;
        int code = check_key(reading, key, map, error);
        if (code == 0)
            code = read_node(reading, value, key->start_mark, &child, error);
        if (code == 0)
            code = tree_append(map, (const char *)key->data.scalar.value, child, error);
        if (code < 0)
            return code;
    }
    return 0;
}

static int read_children(struct reading *reading, const yaml_node_t *from, struct node *node,
                         struct ifl_error *error)
{
    reading->path[reading->depth++] = from;
    const int code = from->type == YAML_MAPPING_NODE ? read_map(reading, from, node, error)
                                                     : read_list(reading, from, node, error);
    reading->depth--;
    return code;
}

static int read_node(struct reading *reading, const yaml_node_t *from, yaml_mark_t place,
                     struct node **node, struct ifl_error *error)
{
    const struct node at = {.file = (char *)reading->name,
                            .line = (int)place.line + 1,
                            .column = (int)place.column + 1};
    int code = check_node(reading, from, place, error);
    if (code == 0 && from->type == YAML_SCALAR_NODE)
        code = check_scalar(reading, from, place, error);
    if (code < 0)
        return code;
    if (from->type == YAML_SCALAR_NODE)
        *node = tree_scalar((const char *)from->data.scalar.value,
                            from->data.scalar.style != YAML_PLAIN_SCALAR_STYLE, &at);
    else
        *node = tree_node(from->type == YAML_MAPPING_NODE ? NODE_MAP : NODE_LIST, &at);
    if (!*node)
        return ifl_fail_nomem(error);
    if (from->type != YAML_SCALAR_NODE)
        code = read_children(reading, from, *node, error);
    if (code < 0) {
        tree_free(*node);
        *node = NULL;
    }
    return code;
}

/* Only the first document counts, so a second one is refused. */
static int check_last(const struct reading *reading, yaml_parser_t *parser, const char *text,
                      size_t n_bytes, struct ifl_error *error)
{
    yaml_document_t next;
    if (!yaml_parser_load(parser, &next))
        return fail_in_parser(reading, parser, text, n_bytes, error);
    const yaml_node_t *root = yaml_document_get_root_node(&next);
    const yaml_mark_t place = root ? root->start_mark : (yaml_mark_t){0};
    yaml_document_delete(&next);
    return root ? fail_at_mark(reading, place, error, "a second document, expected only one") : 0;
}

static int read_document(struct reading *reading, yaml_parser_t *parser, const char *text,
                         size_t n_bytes, struct node **root, struct ifl_error *error)
{
    const yaml_node_t *top = yaml_document_get_root_node(&reading->document);
    if (!top)
        return fail_at_mark(reading, (yaml_mark_t){0}, error, "nothing here, expected keys");
    const int code = check_last(reading, parser, text, n_bytes, error);
    return code < 0 ? code : read_node(reading, top, top->start_mark, root, error);
}

int tree_parse(const char *text, size_t n_bytes, const char *name, struct node **root,
               struct ifl_error *error)
{
    struct reading reading = {.name = name};
    yaml_parser_t parser;
    *root = NULL;
    int code = check_size(&reading, text, n_bytes, error);
    if (code < 0)
        return code;
    if (!yaml_parser_initialize(&parser))
        return ifl_fail_nomem(error);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n_bytes);
    if (yaml_parser_load(&parser, &reading.document)) {
        code = read_document(&reading, &parser, text, n_bytes, root, error);
        yaml_document_delete(&reading.document);
    } else {
        code = fail_in_parser(&reading, &parser, text, n_bytes, error);
    }
    yaml_parser_delete(&parser);
    return code;
}

/* Appends documents up to the end of the text. */
static int read_documents(struct reading *reading, yaml_parser_t *parser, const char *text,
                          size_t n_bytes, struct node *list, struct ifl_error *error)
{
    int code = 0;
    for (bool more = true; more && code == 0;) {
        struct node *root = NULL;
        if (!yaml_parser_load(parser, &reading->document))
            return fail_in_parser(reading, parser, text, n_bytes, error);
        const yaml_node_t *top = yaml_document_get_root_node(&reading->document);
        more = top;
        if (more)
            code = read_node(reading, top, top->start_mark, &root, error);
        if (more && code == 0)
            code = tree_append(list, NULL, root, error);
        yaml_document_delete(&reading->document);
    }
    return code;
}

int tree_parse_all(const char *text, size_t n_bytes, const char *name, struct node **roots,
                   struct ifl_error *error)
{
    const struct node start = {.file = (char *)name, .line = 1, .column = 1};
    struct reading reading = {.name = name};
    yaml_parser_t parser;
    *roots = NULL;
    int code = check_size(&reading, text, n_bytes, error);
    if (code < 0)
        return code;
    struct node *list = tree_node(NODE_LIST, &start);
    if (!list || !yaml_parser_initialize(&parser)) {
        tree_free(list);
        return ifl_fail_nomem(error);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n_bytes);
    code = read_documents(&reading, &parser, text, n_bytes, list, error);
    yaml_parser_delete(&parser);
    if (code < 0)
        tree_free(list);
    else
        *roots = list;
    return code;
}

int tree_load(const char *path, struct node **root, struct ifl_error *error)
{
    char *text;
    size_t n_bytes;
    *root = NULL;
    if (text_file_read(path, MAX_FILE_MIB, "a YAML configuration", &text, &n_bytes, error) < 0)
        return error->code;
    const int code = tree_parse(text, n_bytes, path, root, error);
    free(text);
    if (code == IFL_E_NOMEM)
        ifl_blame_file(error, path);
    return code;
}

/* ---- writing ---- */

static bool emit(yaml_emitter_t *emitter, const struct node *node);

/* A style that keeps every text on one line and survives reading and writing. Where plain style is
 * not possible, libyaml changes it to single quotes by itself. */
static yaml_scalar_style_t style_of(const char *text, bool quoted)
{
    for (const char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    return quoted ? YAML_SINGLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;
}

static bool emit_text(yaml_emitter_t *emitter, const char *text, bool quoted)
{
    yaml_event_t event;
    return yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                        (int)strlen(text), 1, 1, style_of(text, quoted)) &&
           yaml_emitter_emit(emitter, &event);
}

static bool emit_list(yaml_emitter_t *emitter, const struct node *list)
{
    yaml_event_t event;
    if (!yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_FLOW_SEQUENCE_STYLE) ||
        !yaml_emitter_emit(emitter, &event))
        return false;
    for (size_t i = 0; i < list->n; i++)
        if (!emit(emitter, list->of[i]))
            return false;
    return yaml_sequence_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event);
}

static bool emit_map(yaml_emitter_t *emitter, const struct node *map)
{
    yaml_event_t event;
    if (!yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE) ||
        !yaml_emitter_emit(emitter, &event))
        return false;
    for (size_t i = 0; i < map->n; i++)
        if (!emit_text(emitter, map->of[i]->key, false) || !emit(emitter, map->of[i]))
            return false;
    return yaml_mapping_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event);
}

static bool emit(yaml_emitter_t *emitter, const struct node *node)
{
    switch (node->kind) {
    case NODE_SCALAR:
        return emit_text(emitter, node->text, node->quoted);
    case NODE_LIST:
        return emit_list(emitter, node);
    case NODE_MAP:
        return emit_map(emitter, node);
    }
    return false;
}

static bool emit_document(yaml_emitter_t *emitter, const struct node *root)
{
    yaml_event_t event;
    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           yaml_emitter_emit(emitter, &event) &&
           yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
           yaml_emitter_emit(emitter, &event) && emit(emitter, root) &&
           yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(emitter, &event) &&
           yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event) &&
           yaml_emitter_flush(emitter);
}

int tree_print(const struct node *root, FILE *out, struct ifl_error *error)
{
    yaml_emitter_t emitter;
    if (!yaml_emitter_initialize(&emitter))
        return ifl_fail_nomem(error);
    yaml_emitter_set_output_file(&emitter, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    const bool done = emit_document(&emitter, root) && !ferror(out);
    yaml_emitter_delete(&emitter);
    return done ? 0 : ifl_fail(error, IFL_E_IO, "YAML cannot be written: %s", strerror(errno));
}
