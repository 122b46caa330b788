/* A configuration from memory: any bytes give a tree and a configuration, or one error. An accepted
 * configuration must survive being written and read again. No file is touched. */
#include <stdint.h>
#include <string.h>

#include "config/layers.h"
#include "config/read.h"
#include "config/sweep.h"
#include "config/variants.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static char *print(const struct node *root)
{
    struct ifl_error error;
    char *text = NULL;
    size_t n_text = 0;
    FILE *out = open_memstream(&text, &n_text);
    ifl_require(out && tree_print(root, out, &error) == 0 && fclose(out) == 0);
    return text;
}

/* Printing is stable: a printed and parsed tree prints the same text. */
static void check_tree(const struct node *root)
{
    struct ifl_error error;
    struct node *again;
    char *once = print(root);
    ifl_require(tree_parse(once, strlen(once), "again", &again, &error) == 0);
    char *twice = print(again);
    ifl_require(strcmp(once, twice) == 0);
    tree_free(again);
    free(once);
    free(twice);
}

static bool skip_nothing(const void *context, const char *dotted)
{
    (void)context, (void)dotted;
    return false;
}

static char *write(const struct config *config, const struct node *like)
{
    static const struct key_skip all = {skip_nothing, NULL};
    struct ifl_error error;
    struct node *root = tree_node(NODE_MAP, like);
    ifl_require(root && config_write(config, &all, root, &error) == 0);
    char *text = print(root);
    tree_free(root);
    return text;
}

static void check_config(const struct config *config, const struct node *like)
{
    struct ifl_error error;
    struct config config_again;
    struct node *again;
    char *once = write(config, like);
    ifl_require(tree_parse(once, strlen(once), "again", &again, &error) == 0);
    ifl_require(config_read(again, &config_again, &error) == 0);
    char *twice = write(&config_again, like);
    ifl_require(strcmp(once, twice) == 0);
    config_finish(&config_again);
    tree_free(again);
    free(once);
    free(twice);
}

static void read_config(struct node *root)
{
    struct ifl_error error;
    struct config config;
    size_t n_points;
    struct node *sweep = tree_child(root, "sweep"), *touched;
    if (layer_expand(root, &error) < 0 || config_read(root, &config, &error) < 0)
        return;
    check_config(&config, root);
    config_finish(&config);
    if (!sweep || variants_prepare(sweep, &error) < 0 ||
        sweep_check(sweep, &n_points, &error) < 0 || variants_touched(sweep, &touched, &error) < 0)
        return;
    tree_free(touched);
    struct node *swept = tree_copy(sweep); /* laying changes the root, which holds the sweep */
    ifl_require(swept);
    ifl_require(sweep_lay(swept, n_points - 1, root, &error) == 0 || *error.text);
    tree_free(swept);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    struct node *root;
    struct ifl_error error = {0};
    if (tree_parse((const char *)bytes, n_bytes, "fuzz", &root, &error) < 0) {
        ifl_require(*error.text && !root);
        return 0;
    }
    if (root->kind == NODE_MAP)
        check_tree(root);
    read_config(root);
    tree_free(root);
    return 0;
}
