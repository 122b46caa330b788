#include <ctype.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/completion.h"

const char *completion_words(const struct option_spec *option, char words[64])
{
    const char *value = option->value ? option->value : "";
    bool is_choice = strchr(value, '|') != NULL;
    size_t i = 0;
    for (; value[i] && i < 63; i++) {
        is_choice = is_choice && (islower((unsigned char)value[i]) ||
                                  isdigit((unsigned char)value[i]) || value[i] == '|');
        words[i] = value[i];
        if (value[i] == '|')
            words[i] = ' ';
    }
    words[is_choice ? i : 0] = '\0';
    return words;
}

const char *completion_name(enum completion completion)
{
    static const char *const names[] = {
        [COMPLETE_NOTHING] = "nothing", [COMPLETE_FILE] = "file",
        [COMPLETE_FOLDER] = "folder",   [COMPLETE_CONFIG] = "config",
        [COMPLETE_SETTING] = "setting", [COMPLETE_KEY] = "key",
        [COMPLETE_MODEL] = "model",     [COMPLETE_HARDWARE] = "hardware",
        [COMPLETE_FORMAT] = "format",   [COMPLETE_FIGURE] = "figure",
        [COMPLETE_COMMAND] = "command", [COMPLETE_TOPIC] = "topic",
    };
    return names[completion];
}

const char *completion_key(size_t i, const char **topic)
{
    static const char *const keys[][2] = {
        {"serving.preset", "presets"},      {"cluster.preset", "routers"},
        {"cluster.links.preset", "links"},  {"model", "models"},
        {"hardware", "hardware"},           {"deployment", "deployments"},
        {"deployment.base", "deployments"}, {"workload.trace", "traces"},
        {"workload.format", "formats"}};
    if (i >= sizeof keys / sizeof *keys)
        return NULL;
    *topic = keys[i][1];
    return keys[i][0];
}

void completion_put_quoted(FILE *out, const char *text, const char *escaped)
{
    fputc('\'', out);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fprintf(out, "%s%c", strchr(escaped, *text) ? "\\" : "", *text);
    fputc('\'', out);
}

bool completion_is_first(size_t i)
{
    const struct command *command = command_at(i);
    const size_t n_chars = strcspn(command->name, " ");
    return i == 0 || strncmp(command_at(i - 1)->name, command->name, n_chars + 1) != 0 ||
           command->name[n_chars] == '\0';
}

void completion_put_first_words(FILE *out)
{
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)); i++)
        if (completion_is_first(i))
            fprintf(out, "%s%.*s", i ? " " : "", (int)strcspn(command->name, " "), command->name);
}

void completion_put_second_words(FILE *out, const char *group)
{
    const struct command *command;
    const char *before = "";
    for (size_t i = 0; (command = command_at(i)); i++)
        if (command_is_of(command, group) && command_n_words(command) == 2) {
            fprintf(out, "%s%s", before, strchr(command->name, ' ') + 1);
            before = " ";
        }
}

void completion_put_topics(FILE *out)
{
    for (const char *c = command_list.arguments; *c && *c != ' '; c++)
        fputc(*c == '|' ? ' ' : *c, out);
}

const char *completion_doc(size_t i, char text[256])
{
    const struct command *command = command_at(i);
    int n_chars = 0;
    if (command_n_words(command) == 1) {
        snprintf(text, 256, "%s", command->doc);
        return text;
    }
    const int n_group = (int)strcspn(command->name, " ") + 1;
    const char *group = command->name;
    for (; command && strncmp(command->name, group, (size_t)n_group) == 0;
         command = command_at(++i))
        n_chars += snprintf(text + n_chars, 256 - (size_t)n_chars, "%s%s", n_chars ? ", " : "",
                            command->name + n_group);
    return text;
}
