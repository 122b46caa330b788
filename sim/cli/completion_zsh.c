/* Completion for zsh. */
#include <string.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/manual.h"

static const char zsh_head[] =
    "_inflight_names() {\n"
    "    local -a names\n"
    "    names=(${(f)\"$($_inflight_program list $1 --names 2>/dev/null)\"})\n"
    "    compadd -a names\n"
    "}\n"
    "\n"
    "_inflight_config() {\n"
    "    _inflight_names configs\n"
    "    _files -g '*.yaml'\n"
    "}\n"
    "\n"
    "_inflight_setting() {\n"
    "    local -a names\n"
    "    if compset -P 1 '*='; then\n"
    "        case ${IPREFIX%=} in\n";

static const char zsh_setting_end[] =
    "        esac\n"
    "        return\n"
    "    fi\n"
    "    names=(${(f)\"$($_inflight_program list keys --names 2>/dev/null)\"})\n"
    "    compadd -S = -a names\n"
    "}\n"
    "\n"
    "_inflight_topic() {\n"
    "    if (( CURRENT == 2 )); then\n"
    "        compadd ${=_inflight_topics}\n"
    "    else\n"
    "        _inflight_names $words[2]\n"
    "    fi\n"
    "}\n"
    "\n";

static void put_zsh_action(FILE *out, enum completion completion)
{
    switch (completion) {
    case COMPLETE_NOTHING:
        fputs(" ", out);
        break;
    case COMPLETE_FILE:
        fputs("_files", out);
        break;
    case COMPLETE_FOLDER:
        fputs("_files -/", out);
        break;
    case COMPLETE_CONFIG:
    case COMPLETE_SETTING:
    case COMPLETE_TOPIC:
        fprintf(out, "_inflight_%s", completion_name(completion));
        break;
    case COMPLETE_KEY:
    case COMPLETE_MODEL:
    case COMPLETE_FORMAT:
    case COMPLETE_FIGURE:
        fprintf(out, "_inflight_names %ss", completion_name(completion));
        break;
    case COMPLETE_HARDWARE:
        fputs("_inflight_names hardware", out);
        break;
    case COMPLETE_COMMAND:
        fputs("(", out);
        completion_put_first_words(out);
        fputs(")", out);
    }
}

/* A specification of _arguments: '(-o --output)'{-o,--output}'[doc]:DIR:_files -/'. */
static void put_zsh_option(FILE *out, const struct option_spec *option)
{
    char words[64], text[512];
    const char *again = option->kind == OPTION_LIST ? "*" : "";
    snprintf(text, sizeof text, "[%s]", option->doc);
    fputs(" \\\n            ", out);
    if (option->alias)
        fprintf(out, "'%s(%s %s)'{%s,%s}", again, option->alias, option->name, option->alias,
                option->name);
    else
        fprintf(out, "'%s%s'", again, option->name);
    completion_put_quoted(out, text, ":");
    if (option->kind == OPTION_FLAG)
        return;
    fputs("':", out);
    for (const char *c = option->value; *c; c++)
        fprintf(out, "%s%c", *c == ':' ? "\\" : "", *c);
    completion_words(option, words);
    fputc(':', out);
    if (*words)
        fprintf(out, "(%s)", words);
    else
        put_zsh_action(out, option->completion);
    fputc('\'', out);
}

static void put_zsh_command(FILE *out, const struct command *command)
{
    fprintf(out, "    '%s')\n        _arguments", command->name);
    for (size_t i = 0; i < command->n_options; i++)
        put_zsh_option(out, &command->options[i]);
    fputs(" \\\n            '(-h --help)'{-h,--help}'[print this help]'", out);
    fputs(" \\\n            '*:word:", out);
    put_zsh_action(out, command->completion);
    fputs("' ;;\n", out);
}

/* "run:fly a configuration" for each first word, or for each second word of a group. */
static void put_zsh_described(FILE *out, const char *group)
{
    const struct command *command;
    char text[512], doc[256];
    for (size_t i = 0; (command = command_at(i)); i++) {
        const char *space = strchr(command->name, ' ');
        if (group ? !space || !command_is_of(command, group) : !completion_is_first(i))
            continue;
        if (group)
            snprintf(text, sizeof text, "%s:%s", space + 1, command->doc);
        else
            snprintf(text, sizeof text, "%.*s:%s", (int)strcspn(command->name, " "), command->name,
                     completion_doc(i, doc));
        fputs("            ", out);
        completion_put_quoted(out, text, "");
        fputc('\n', out);
    }
}

static void put_zsh_groups(FILE *out)
{
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)); i++) {
        char group[32];
        if (!completion_is_first(i) || command_n_words(command) == 1)
            continue;
        snprintf(group, sizeof group, "%.*s", (int)strcspn(command->name, " "), command->name);
        fprintf(out, "    if [[ $command == %s ]]; then\n        commands=(\n", group);
        put_zsh_described(out, group);
        fputs("        )\n"
              "        if (( CURRENT == 2 )); then\n"
              "            _describe command commands\n"
              "            return\n"
              "        fi\n"
              "        command+=\" $words[2]\"\n"
              "        shift words\n"
              "        (( CURRENT-- ))\n"
              "    fi\n",
              out);
    }
}

void completion_write_zsh(FILE *out)
{
    const struct command *command;
    const char *key, *topic;
    fputs("#compdef inflight\n"
          "# Completion for zsh, written by `inflight help --write` of inflight " INFLIGHT_VERSION
          "\n_inflight_topics='",
          out);
    completion_put_topics(out);
    fprintf(out, "'\n\n%s", zsh_head);
    for (size_t i = 0; (key = completion_key(i, &topic)); i++)
        fprintf(out, "        %s) _inflight_names %s ;;\n", key, topic);
    fputs(zsh_setting_end, out);
    fputs("_inflight() {\n    local command _inflight_program=$words[1]\n    local -a commands\n"
          "    if (( CURRENT == 2 )); then\n        commands=(\n",
          out);
    put_zsh_described(out, NULL);
    fputs("        )\n        _describe command commands\n        return\n    fi\n"
          "    command=$words[2]\n    shift words\n    (( CURRENT-- ))\n",
          out);
    put_zsh_groups(out);
    fputs("    case $command in\n", out);
    for (size_t i = 0; (command = command_at(i)); i++)
        put_zsh_command(out, command);
    fputs("    esac\n}\n\n_inflight \"$@\"\n", out);
}
