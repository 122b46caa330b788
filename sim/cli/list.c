/* inflight list: what there is to choose from. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "inflight/report.h"
#include "inflight/trace.h"

#include "base/data.h"
#include "base/tree.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "config/config.h"
#include "config/layers.h"

enum { WRAP_COLUMNS = 100 };

static int widest(const struct name_list *names)
{
    int width = 0;
    for (size_t i = 0; i < names->n; i++)
        if ((int)strlen(names->of[i]) > width)
            width = (int)strlen(names->of[i]);
    return width;
}

/* ---- policies ---- */

static void print_param(const struct ifl_param *param)
{
    char takes[512], dflt[512];
    field_describe(param, takes, sizeof takes);
    field_print_default(param, dflt, sizeof dflt);
    printf("        %-20s %-14s %s (%s)\n", param->name, dflt, param->doc, takes);
}

static void print_policy(const struct ifl_policy *policy)
{
    printf("    %-24s %s\n", policy->name, policy->doc);
    for (size_t i = 0; i < policy->n_params; i++)
        print_param(&policy->params[i]);
}

static int list_policies(struct ifl_error *error)
{
    (void)error;
    for (int kind = 0; kind < IFL_N_KINDS; kind++) {
        const struct ifl_policy *policy;
        bool titled = false;
        for (size_t i = 0; (policy = registry_at(i)); i++) {
            if ((int)policy->kind != kind)
                continue;
            if (!titled)
                printf("%s\n", module_kind_name(policy->kind));
            titled = true;
            print_policy(policy);
        }
    }
    return 0;
}

/* ---- presets, models, hardware, deployments ---- */

static const char *text_of(const struct node *map, const char *key)
{
    const struct node *node = tree_child(map, key);
    return node && node->kind == NODE_SCALAR ? node->text : "";
}

static int print_preset(const char *name, int width, struct ifl_error *error)
{
    struct node *about;
    if (preset_about(name, &about, error) < 0)
        return error->code;
    printf("%-*s  %s, %s\n", width, name, text_of(about, "system"), text_of(about, "version"));
    printf("%-*s  from %s\n", width, "", text_of(about, "source"));
    printf("%-*s  reproduces %s\n", width, "", text_of(about, "reproduces"));
    tree_free(about);
    return 0;
}

/* Prints `about`: a line, or the first entry of a map. */
static int print_about(const char *kind, const char *name, int width, struct ifl_error *error)
{
    char path[512];
    struct node *root;
    if (data_resolve(kind, name, path, error) < 0 || tree_load(path, &root, error) < 0)
        return error->code;
    const struct node *about = tree_child(root, "about");
    if (about && about->kind != NODE_SCALAR)
        about = about->n ? about->of[0] : NULL;
    printf("%-*s  %s\n", width, name, about && about->text ? about->text : "");
    tree_free(root);
    return 0;
}

static int list_names(const char *kind, struct ifl_error *error)
{
    struct name_list names;
    int code = data_names(kind, &names, error);
    if (code < 0)
        return code;
    const int width = widest(&names);
    const bool presets = strcmp(kind, "serving") == 0;
    for (size_t i = 0; i < names.n && code == 0; i++)
        code = presets ? print_preset(names.of[i], width, error)
                       : print_about(kind, names.of[i], width, error);
    name_list_free(&names);
    return code;
}

/* Prints the file of a name. */
static int list_one(const char *kind, const char *name, struct ifl_error *error)
{
    char path[512];
    struct node *root;
    if (data_resolve(kind, name, path, error) < 0 || tree_load(path, &root, error) < 0)
        return error->code;
    const int code = tree_print(root, stdout, error);
    tree_free(root);
    return code;
}

/* ---- traces ---- */

/* Breaks after commas, indenting what follows. */
static void print_wrapped(const char *text, int indent)
{
    int column = indent;
    printf("%*s", indent, "");
    while (*text) {
        int n_chars = (int)strcspn(text, ",");
        n_chars += text[n_chars] == ',';
        if (column + n_chars > WRAP_COLUMNS && column > indent) {
            printf("\n%*s", indent, "");
            column = indent;
            text += strspn(text, " ");
            continue;
        }
        printf("%.*s", n_chars, text);
        column += n_chars;
        text += n_chars;
    }
    printf("\n");
}

static int list_traces(struct ifl_error *error)
{
    struct name_list names;
    printf("formats\n");
    for (const struct ifl_trace_format *format = ifl_trace_formats(); format->name; format++) {
        printf("    %-14s %s\n", format->name, format->doc);
        if (format->columns && *format->columns)
            print_wrapped(format->columns, 19);
    }
    printf("in all formats but bench, guidellm and vtc, beside these columns or keys\n");
    print_wrapped(ifl_trace_attributes(), 4);
    if (data_names("traces", &names, error) < 0)
        return error->code;
    printf("traces\n");
    for (size_t i = 0; i < names.n; i++)
        printf("    traces/data/%s\n", names.of[i]);
    name_list_free(&names);
    return 0;
}

static int list_keys(struct ifl_error *error)
{
    (void)error;
    config_print_keys(stdout);
    return 0;
}

static int list_figures(struct ifl_error *error)
{
    (void)error;
    for (size_t i = 0; ifl_plot_figure(i).name; i++)
        printf("%-24s  %s\n", ifl_plot_figure(i).name, ifl_plot_figure(i).doc);
    return 0;
}

static const struct topic {
    const char *name;
    const char *kind; /* of files, as data_names takes it; NULL: `list` prints the topic */
    int (*list)(struct ifl_error *error);
} topics[] = {{"policies", NULL, list_policies},
              {"presets", "serving", NULL},
              {"models", "models", NULL},
              {"hardware", "hardware", NULL},
              {"deployments", "deployments", NULL},
              {"traces", NULL, list_traces},
              {"keys", NULL, list_keys},
              {"figures", NULL, list_figures}};

/* `name`: of one file; NULL: all. */
static int list(const struct topic *topic, const char *name)
{
    struct ifl_error error;
    const int code = !topic->kind ? topic->list(&error)
                     : name       ? list_one(topic->kind, name, &error)
                                  : list_names(topic->kind, &error);
    return code < 0 ? cli_fail(&error) : 0;
}

struct request {
    struct text_list wanted, plugins;
};

static int run_command(int argc, char **argv)
{
    struct request request = {0};
    const struct text_list *wanted = &request.wanted, *plugins = &request.plugins;
    struct ifl_error error;
    if (options_read(&command_list, &request, argc, argv, &request.wanted) < 0)
        return 2;
    for (size_t i = 0; i < plugins->n; i++)
        if (registry_load_plugin(plugins->of[i], &error) < 0)
            return cli_fail(&error);
    for (size_t i = 0; wanted->n > 0 && i < sizeof topics / sizeof *topics; i++)
        if (strcmp(wanted->of[0], topics[i].name) == 0 && wanted->n <= (topics[i].kind ? 2u : 1u))
            return list(&topics[i], wanted->n == 2 ? wanted->of[1] : NULL);
    return usage_fail(&command_list);
}

static const struct option_spec options[] = {
    {"--plugin", NULL, OPTION_LIST, offsetof(struct request, plugins), "FILE.so",
     "tell of the policies and keys of this module, too", COMPLETE_FILE},
};

const struct command command_list = {
    .name = "list",
    .doc = "what there is to choose from",
    .arguments = "policies|presets|models|hardware|deployments|traces|keys|figures [NAME]",
    .example = "inflight list presets",
    .notes = "With the NAME of a preset, a model, a hardware profile or a deployment, that file is "
             "printed.",
    .completion = COMPLETE_TOPIC,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
