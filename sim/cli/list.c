/* inflight list: lists the policies, presets, models, keys and other things that a configuration
 * can name. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "inflight/nearest.h"
#include "inflight/report.h"
#include "inflight/trace.h"

#include "base/data.h"
#include "base/tree.h"
#include "cli/commands.h"
#include "cli/list_preset.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "config/config.h"
#include "config/key_docs.h"
#include "config/layers.h"
#include "config/registry.h"

struct listing {
    const char *pattern; /* NULL: all */
    bool names_only;
    int columns; /* of the terminal, 0: there is none */
    size_t n_shown;
    struct name_list passed_over; /* for the message of a pattern that nothing has */
    int key_width, dflt_width;    /* of keys */
    const char *titled;           /* the title that was printed last, not to be read through */
    const char *policy;
};

/* ---- what all topics share ---- */

/* A pattern without special letters is a part of the name. */
static bool matches(const char *pattern, const char *name)
{
    return !pattern || (strpbrk(pattern, "*?[") ? fnmatch(pattern, name, 0) == 0
                                                : strstr(name, pattern) != NULL);
}

static void remember(struct name_list *names, const char *name)
{
    char **of = realloc(names->of, (names->n + 1) * sizeof *of);
    if (!of)
        return;
    names->of = of;
    of[names->n] = strdup(name);
    names->n += of[names->n] != NULL;
}

static bool wanted(struct listing *of, const char *name)
{
    const bool shown = matches(of->pattern, name);
    of->n_shown += shown;
    if (!shown)
        remember(&of->passed_over, name);
    return shown;
}

/* Text that would begin in the right half of a terminal begins on the next line instead. */
static void print_text(const struct listing *of, int column, int indent, const char *text)
{
    const bool below = of->columns > 0 && column > of->columns / 2;
    const int at = below ? indent + 8 : column;
    if (below)
        printf("\n%*s", at, "");
    terminal_wrap(stdout, text, at, at, of->columns);
}

/* The name, at least a blank up to `width`, and the text. */
static void print_item(const struct listing *of, int indent, int width, const char *name,
                       const char *text)
{
    const int n_chars = (int)strlen(name);
    if (of->names_only) {
        printf("%s\n", name);
        return;
    }
    printf("%*s%s%s%s%*s", indent, "", terminal_style(stdout, STYLE_NAME), name,
           terminal_style(stdout, STYLE_NONE), ifl_max(width - n_chars, 1), "");
    print_text(of, indent + ifl_max(width, n_chars + 1), indent, text);
}

static int widest(const struct name_list *names)
{
    int width = 0;
    for (size_t i = 0; i < names->n; i++)
        width = ifl_max(width, (int)strlen(names->of[i]));
    return width;
}

/* ---- policies ---- */

static void print_policy(const struct listing *of, const struct ifl_policy *policy)
{
    char takes[512], dflt[512], text[2048];
    print_item(of, 4, 25, policy->name, policy->doc);
    for (size_t i = 0; i < policy->n_params && !of->names_only; i++) {
        const struct ifl_param *param = &policy->params[i];
        field_describe(param, takes, sizeof takes);
        field_print_default(param, dflt, sizeof dflt);
        snprintf(text, sizeof text, "%s (%s)", param->doc, takes);
        printf("        %-20s %-14s ", param->name, dflt);
        print_text(of, 29 + ifl_max((int)strlen(dflt), 14) + 1, 8, text);
    }
}

static int list_policies(struct listing *of, struct ifl_error *error)
{
    (void)error;
    for (int kind = 0; kind < IFL_N_KINDS; kind++) {
        const struct ifl_policy *policy;
        bool titled = of->names_only;
        for (size_t i = 0; (policy = registry_at(i)); i++) {
            if ((int)policy->kind != kind || !wanted(of, policy->name))
                continue;
            if (!titled)
                printf("%s\n", module_kind_name(policy->kind));
            titled = true;
            print_policy(of, policy);
        }
    }
    return 0;
}

/* ---- presets, models, hardware, deployments, configurations ---- */

static const char *text_of(const struct node *map, const char *key)
{
    const struct node *node = tree_child(map, key);
    return node && node->kind == NODE_SCALAR ? node->text : "";
}

static int print_preset(const struct listing *of, const char *kind, const char *name, int width,
                        struct ifl_error *error)
{
    static const char *const keys[][2] = {{"source", "from"}, {"reproduces", "reproduces"}};
    struct node *about;
    char text[2048];
    if (preset_about(kind, name, &about, error) < 0)
        return error->code;
    snprintf(text, sizeof text, "%s, %s", text_of(about, "system"), text_of(about, "version"));
    print_item(of, 0, width, name, text);
    for (size_t i = 0; i < 2 && !of->names_only; i++) {
        snprintf(text, sizeof text, "%s %s", keys[i][1], text_of(about, keys[i][0]));
        printf("%*s", width, "");
        terminal_wrap(stdout, text, width, width, of->columns);
    }
    tree_free(about);
    return 0;
}

/* Prints `about`: a line, or the first entry of a map. */
static int print_about(const struct listing *of, const char *kind, const char *name, int width,
                       struct ifl_error *error)
{
    char path[512];
    struct node *root;
    if (data_resolve(kind, name, path, error) < 0 || tree_load(path, &root, error) < 0)
        return error->code;
    const struct node *about = tree_child(root, "about");
    if (about && about->kind != NODE_SCALAR)
        about = about->n ? about->of[0] : NULL;
    print_item(of, 0, width, name, about && about->text ? about->text : "");
    tree_free(root);
    return 0;
}

/* Prints the first comment, which says what the configuration is for. */
static int print_config(const struct listing *of, const char *name, int width,
                        struct ifl_error *error)
{
    char path[512], line[512] = "";
    if (data_resolve("configs", name, path, error) < 0)
        return error->code;
    FILE *file = fopen(path, "r");
    const bool has_comment = file && fgets(line, sizeof line, file) && line[0] == '#';
    line[strcspn(line, "\n")] = '\0';
    print_item(of, 0, width, name, has_comment ? line + 1 + strspn(line + 1, " ") : "");
    if (file)
        fclose(file);
    return 0;
}

static int print_named(const struct listing *of, const char *kind, const char *name, int width,
                       struct ifl_error *error)
{
    if (strcmp(kind, "serving") == 0 || strcmp(kind, "routing") == 0)
        return print_preset(of, kind, name, width, error);
    if (strcmp(kind, "configs") == 0)
        return print_config(of, name, width, error);
    return print_about(of, kind, name, width, error);
}

static int list_names(struct listing *of, const char *kind, struct ifl_error *error)
{
    struct name_list names;
    int code = data_names(kind, &names, error);
    if (code < 0)
        return code;
    const int width = widest(&names) + 2;
    for (size_t i = 0; i < names.n && code == 0; i++)
        if (wanted(of, names.of[i]))
            code = print_named(of, kind, names.of[i], width, error);
    name_list_free(&names);
    return code;
}

/* ---- traces ---- */

/* Breaks after commas, indenting what follows. */
static void print_wrapped(const struct listing *of, const char *text, int indent)
{
    const int most = of->columns ? of->columns : 100;
    int column = indent;
    printf("%*s", indent, "");
    while (*text) {
        int n_chars = (int)strcspn(text, ",");
        n_chars += text[n_chars] == ',';
        if (column + n_chars > most && column > indent) {
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

static int list_formats(struct listing *of, struct ifl_error *error)
{
    (void)error;
    for (const struct ifl_trace_format *format = ifl_trace_formats(); format->name; format++) {
        if (!wanted(of, format->name))
            continue;
        print_item(of, 4, 15, format->name, format->doc);
        if (format->columns && *format->columns && !of->names_only)
            print_wrapped(of, format->columns, 19);
    }
    return 0;
}

static int list_traces(struct listing *of, struct ifl_error *error)
{
    struct name_list names;
    if (!of->pattern && !of->names_only) {
        printf("formats\n");
        list_formats(of, error);
        printf("in all formats except bench, guidellm and vtc, in addition to these columns or "
               "keys\n");
        print_wrapped(of, ifl_trace_attributes(), 4);
        printf("traces\n");
    }
    if (data_names("traces", &names, error) < 0)
        return error->code;
    for (size_t i = 0; i < names.n; i++)
        if (wanted(of, names.of[i]))
            printf("%straces/data/%s\n", of->names_only ? "" : "    ", names.of[i]);
    name_list_free(&names);
    return 0;
}

/* ---- keys ---- */

static void fit_key(void *context, const struct key_doc *doc)
{
    struct listing *of = context;
    if (!matches(of->pattern, doc->key))
        return;
    of->key_width = ifl_max(of->key_width, (int)strlen(doc->key));
    of->dflt_width = ifl_max(ifl_max(of->dflt_width, 7), (int)strlen(doc->dflt));
}

static bool is_titled(const struct listing *of, const struct key_doc *doc)
{
    return !doc->policy || (of->titled == doc->section && of->policy == doc->policy);
}

static void print_key(void *context, const struct key_doc *doc)
{
    struct listing *of = context;
    char text[2048];
    if (!wanted(of, doc->key))
        return;
    if (of->names_only) {
        printf("%s\n", doc->key);
        return;
    }
    if (!is_titled(of, doc))
        printf("\n%s: {policy: %s}\n", doc->section, doc->policy);
    of->titled = doc->section;
    of->policy = doc->policy;
    snprintf(text, sizeof text, "%s (%s)", doc->doc, doc->takes);
    printf("%s%-*s%s  %-*s  ", terminal_style(stdout, STYLE_NAME), of->key_width, doc->key,
           terminal_style(stdout, STYLE_NONE), of->dflt_width, doc->dflt);
    print_text(of, of->key_width + of->dflt_width + 4, 0, text);
}

static int list_keys(struct listing *of, struct ifl_error *error)
{
    (void)error;
    config_each_key(fit_key, of);
    if (of->key_width > 0 && !of->names_only) {
        printf("%-*s  %-*s  ", of->key_width, "KEY", of->dflt_width, "DEFAULT");
        print_text(of, of->key_width + of->dflt_width + 4, 0, "MEANING (and what it takes)");
    }
    config_each_key(print_key, of);
    return 0;
}

static int list_figures(struct listing *of, struct ifl_error *error)
{
    (void)error;
    for (size_t i = 0; ifl_plot_figure(i).name; i++)
        if (wanted(of, ifl_plot_figure(i).name))
            print_item(of, 0, 26, ifl_plot_figure(i).name, ifl_plot_figure(i).doc);
    return 0;
}

/* ---- one file ---- */

static bool is_name(const char *kind, const char *word)
{
    struct name_list names;
    struct ifl_error unused;
    bool found = data_is_path(word);
    if (data_names(kind, &names, &unused) < 0)
        return false;
    for (size_t i = 0; i < names.n && !found; i++)
        found = strcmp(names.of[i], word) == 0;
    name_list_free(&names);
    return found;
}

static int print_file(const char *kind, const char *name, struct ifl_error *error)
{
    char path[512];
    struct node *root;
    if (data_resolve(kind, name, path, error) < 0 || tree_load(path, &root, error) < 0)
        return error->code;
    int code = tree_print(root, stdout, error);
    if (code == 0 && strcmp(kind, "serving") == 0)
        code = list_preset_rest(name, root, error);
    tree_free(root);
    return code;
}

/* ---- the command ---- */

static const struct topic {
    const char *name, *one; /* "presets" and "preset" say the same */
    const char *kind;       /* of files, as data_names takes it; NULL: `list` prints the topic */
    int (*list)(struct listing *of, struct ifl_error *error);
} topics[] = {{"policies", "policy", NULL, list_policies},
              {"presets", "preset", "serving", NULL},
              {"routers", "router", "routing", NULL},
              {"models", "model", "models", NULL},
              {"links", "link", "links", NULL},
              {"hardware", "hardware", "hardware", NULL},
              {"deployments", "deployment", "deployments", NULL},
              {"configs", "config", "configs", NULL},
              {"traces", "trace", NULL, list_traces},
              {"formats", "format", NULL, list_formats},
              {"keys", "key", NULL, list_keys},
              {"figures", "figure", NULL, list_figures}};

enum { N_TOPICS = sizeof topics / sizeof *topics };

static const struct topic *topic_named(const char *word)
{
    for (size_t i = 0; i < N_TOPICS; i++)
        if (strcmp(word, topics[i].name) == 0 || strcmp(word, topics[i].one) == 0)
            return &topics[i];
    return NULL;
}

static int fail_topic(const char *word)
{
    const char *names[N_TOPICS];
    for (size_t i = 0; i < N_TOPICS; i++)
        names[i] = topics[i].name;
    fprintf(stderr, "inflight list: unknown topic %s, ", word);
    cli_suggest(word, names, N_TOPICS);
    return 2;
}

static int fail_pattern(const struct topic *topic, const struct listing *of)
{
    const char *near =
        ifl_nearest(of->pattern, (const char *const *)of->passed_over.of, of->passed_over.n);
    fprintf(stderr, "inflight list: unknown %s %s, ", topic->one, of->pattern);
    if (near)
        fprintf(stderr, "did you mean %s?\n", near);
    else
        fprintf(stderr, "`inflight list %s` names all\n", topic->name);
    return 2;
}

static int list(const struct topic *topic, struct listing *of)
{
    struct ifl_error error;
    int code;
    if (topic->kind && of->pattern && is_name(topic->kind, of->pattern))
        code = print_file(topic->kind, of->pattern, &error);
    else if (topic->kind)
        code = list_names(of, topic->kind, &error);
    else
        code = topic->list(of, &error);
    return code < 0 ? cli_fail(&error) : 0;
}

struct request {
    struct text_list words, plugins;
    bool names_only;
};

static int run_command(int argc, char **argv)
{
    struct request request = {0};
    const struct text_list *words = &request.words, *plugins = &request.plugins;
    struct ifl_error error;
    if (options_read(&command_list, &request, argc, argv, &request.words) < 0)
        return 2;
    for (size_t i = 0; i < plugins->n; i++)
        if (registry_load_plugin(plugins->of[i], &error) < 0)
            return cli_fail(&error);
    if (words->n < 1 || words->n > 2)
        return usage_fail(&command_list);
    const struct topic *topic = topic_named(words->of[0]);
    if (!topic)
        return fail_topic(words->of[0]);
    struct listing listing = {.pattern = words->n == 2 ? words->of[1] : NULL,
                              .names_only = request.names_only,
                              .columns = terminal_columns(stdout)};
    int code = list(topic, &listing);
    if (code == 0 && listing.pattern && listing.n_shown == 0 && listing.passed_over.n > 0)
        code = fail_pattern(topic, &listing);
    name_list_free(&listing.passed_over);
    return code;
}

static const struct option_spec options[] = {
    {"--names", NULL, OPTION_FLAG, offsetof(struct request, names_only), NULL,
     "only the names, one per line", COMPLETE_NOTHING},
    {"--plugin", NULL, OPTION_LIST, offsetof(struct request, plugins), "FILE.so",
     "also list the policies and keys of this module", COMPLETE_FILE},
};

const struct command command_list = {
    .name = "list",
    .doc = "list policies, presets, models, keys and other names",
    .arguments =
        "policies|presets|routers|models|links|hardware|deployments|configs|traces|formats|keys|"
        "figures "
        "[PATTERN]",
    .example = "inflight list keys arrivals",
    .notes =
        "PATTERN is a part of the names to list, or a pattern such as vllm-v1*. The whole name of "
        "a preset, a model, a hardware profile, a deployment or a configuration prints its file; "
        "for a preset, then also the preset with all that it extends, and its defaults.",
    .completion = COMPLETE_TOPIC,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
