/* Completion for bash. */
#include <string.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/manual.h"

static void put_bash_options(FILE *out)
{
    const struct command *command;
    fputs("_inflight_options() {\n    case $1 in\n", out);
    for (size_t i = 0; (command = command_at(i)); i++) {
        fprintf(out, "    '%s') echo '--help", command->name);
        for (size_t k = 0; k < command->n_options; k++)
            fprintf(out, " %s", command->options[k].name);
        fputs("' ;;\n", out);
    }
    fputs("    esac\n}\n\n", out);
}

/* What stands behind an option, and with no option the command's own words. */
static void put_bash_values(FILE *out)
{
    const struct command *command;
    char words[64];
    fputs("_inflight_takes() {\n    case $1:$2 in\n", out);
    for (size_t i = 0; (command = command_at(i)); i++) {
        for (size_t k = 0; k < command->n_options; k++) {
            const struct option_spec *option = &command->options[k];
            if (option->kind == OPTION_FLAG)
                continue;
            fprintf(out, "    '%s:%s'", command->name, option->name);
            if (option->alias)
                fprintf(out, " | '%s:%s'", command->name, option->alias);
            completion_words(option, words);
            fprintf(out, ") echo '%s' ;;\n", *words ? words : completion_name(option->completion));
        }
        fprintf(out, "    '%s:') echo %s ;;\n", command->name,
                completion_name(command->completion));
    }
    fputs("    esac\n}\n\n", out);
}

static void put_bash_keys(FILE *out)
{
    const char *key, *topic;
    fputs("_inflight_topic_of_key() {\n    case $1 in\n", out);
    for (size_t i = 0; (key = completion_key(i, &topic)); i++)
        fprintf(out, "    %s) echo %s ;;\n", key, topic);
    fputs("    esac\n}\n\n", out);
}

/* COMP_WORDS are cut at "=", too, so the words are taken from COMP_LINE. A reply stands for what
 * is behind the last cut. */
static const char bash_body[] =
    "_inflight_list() {\n"
    "    \"$_inflight_program\" list \"$1\" --names 2>/dev/null\n"
    "}\n"
    "\n"
    "_inflight_reply() {\n"
    "    mapfile -t COMPREPLY < <(compgen \"${@:2}\" -- \"$1\")\n"
    "}\n"
    "\n"
    "_inflight_setting() {\n"
    "    local topic\n"
    "    if [[ $1 != *=* ]]; then\n"
    "        compopt -o nospace 2>/dev/null\n"
    "        _inflight_reply \"$1\" -S = -W \"$(_inflight_list keys)\"\n"
    "        return\n"
    "    fi\n"
    "    topic=$(_inflight_topic_of_key \"${1%%=*}\")\n"
    "    [[ -z $topic ]] || _inflight_reply \"${1#*=}\" -W \"$(_inflight_list \"$topic\")\"\n"
    "    [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=(\"${COMPREPLY[@]/#/${1%%=*}=}\")\n"
    "}\n"
    "\n"
    "_inflight_offer() {\n"
    "    case $1 in\n"
    "    nothing) ;;\n"
    "    file) compopt -o filenames 2>/dev/null; _inflight_reply \"$2\" -f ;;\n"
    "    folder) compopt -o filenames 2>/dev/null; _inflight_reply \"$2\" -d ;;\n"
    "    config)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(\n"
    "            compgen -W \"$(_inflight_list configs)\" -- \"$2\"\n"
    "            compgen -f -X '!*.yaml' -- \"$2\"\n"
    "            compgen -d -- \"$2\"\n"
    "        ) ;;\n"
    "    setting) _inflight_setting \"$2\" ;;\n"
    "    key) _inflight_reply \"$2\" -W \"$(_inflight_list keys)\" ;;\n"
    "    model | format | figure) _inflight_reply \"$2\" -W \"$(_inflight_list \"$1s\")\" ;;\n"
    "    hardware) _inflight_reply \"$2\" -W \"$(_inflight_list hardware)\" ;;\n"
    "    command) _inflight_reply \"$2\" -W \"$_inflight_commands\" ;;\n"
    "    *) _inflight_reply \"$2\" -W \"$1\" ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "_inflight() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} command typed before takes n first=2\n"
    "    local -a words\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line != *[[:space:]] ]] || words+=('')\n"
    "    n=${#words[@]}\n"
    "    typed=${words[n - 1]} before=${words[n - 2]} command=${words[1]}\n"
    "    _inflight_program=${words[0]} COMPREPLY=()\n"
    "    if ((n == 2)); then\n"
    "        _inflight_reply \"$typed\" -W \"$_inflight_commands --help --version\"\n"
    "        return\n"
    "    fi\n"
    "    if [[ -n $(_inflight_second \"$command\") ]]; then\n"
    "        if ((n == 3)); then\n"
    "            _inflight_reply \"$typed\" -W \"$(_inflight_second \"$command\")\"\n"
    "            return\n"
    "        fi\n"
    "        command+=\" ${words[2]}\" first=3\n"
    "    fi\n"
    "    [[ $before != -* ]] || takes=$(_inflight_takes \"$command\" \"$before\")\n"
    "    if [[ -z $takes && $typed == -* ]]; then\n"
    "        _inflight_reply \"$typed\" -W \"$(_inflight_options \"$command\")\"\n"
    "        return\n"
    "    fi\n"
    "    [[ -n $takes ]] || takes=$(_inflight_takes \"$command\" '')\n"
    "    if [[ $takes == topic ]] && ((n > first + 1)); then\n"
    "        takes=$(_inflight_list \"${words[first]}\")\n"
    "    elif [[ $takes == topic ]]; then\n"
    "        takes=$_inflight_topics\n"
    "    elif [[ $takes == command ]] && ((n > first + 1)); then\n"
    "        takes=$(_inflight_second \"${words[first]}\")\n"
    "    fi\n"
    "    _inflight_offer \"$takes\" \"$typed\"\n"
    "}\n"
    "\n"
    "complete -F _inflight inflight\n";

static void put_bash_second(FILE *out)
{
    const struct command *command;
    fputs("_inflight_second() {\n    case $1 in\n", out);
    for (size_t i = 0; (command = command_at(i)); i++) {
        char group[32];
        if (!completion_is_first(i) || command_n_words(command) == 1)
            continue;
        snprintf(group, sizeof group, "%.*s", (int)strcspn(command->name, " "), command->name);
        fprintf(out, "    %s) echo '", group);
        completion_put_second_words(out, group);
        fputs("' ;;\n", out);
    }
    fputs("    esac\n}\n\n", out);
}

void completion_write_bash(FILE *out)
{
    fputs("# Completion for bash, written by `inflight help --write` of inflight " INFLIGHT_VERSION
          "\n_inflight_commands='",
          out);
    completion_put_first_words(out);
    fputs("'\n_inflight_topics='", out);
    completion_put_topics(out);
    fputs("'\n\n", out);
    put_bash_second(out);
    put_bash_options(out);
    put_bash_values(out);
    put_bash_keys(out);
    fputs(bash_body, out);
}
