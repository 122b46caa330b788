/* Completion for fish. */
#include <string.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/manual.h"

static const char fish_head[] = "function __inflight_list\n"
                                "    set -l words (commandline -opc)\n"
                                "    $words[1] list $argv[1] --names 2>/dev/null\n"
                                "end\n"
                                "\n"
                                "# true behind the words of a command\n"
                                "function __inflight_is\n"
                                "    set -l words (commandline -opc)\n"
                                "    set -l last (math 1 + (count $argv))\n"
                                "    test (count $words) -ge $last\n"
                                "    and test \"$words[2..$last]\" = \"$argv\"\n"
                                "end\n"
                                "\n"
                                "# true where the next word is the n-th\n"
                                "function __inflight_at\n"
                                "    test (count (commandline -opc)) -eq $argv[1]\n"
                                "end\n"
                                "\n"
                                "function __inflight_topic\n"
                                "    set -l words (commandline -opc)\n"
                                "    if test (count $words) -gt 2\n"
                                "        __inflight_list $words[3]\n"
                                "    else\n"
                                "        string split ' ' $__inflight_topics\n"
                                "    end\n"
                                "end\n"
                                "\n"
                                "function __inflight_setting\n"
                                "    set -l key (string split -m 1 = -- (commandline -ct))[1]\n"
                                "    set -l topic\n"
                                "    switch $key\n";

static void put_fish_values(FILE *out, enum completion completion)
{
    switch (completion) {
    case COMPLETE_NOTHING:
        fputs(" -x", out);
        break;
    case COMPLETE_FILE:
        fputs(" -r -F", out);
        break;
    case COMPLETE_FOLDER:
        fputs(" -x -a '(__fish_complete_directories)'", out);
        break;
    case COMPLETE_CONFIG:
        fputs(" -r -F -a '(__inflight_list configs)'", out);
        break;
    case COMPLETE_SETTING:
    case COMPLETE_TOPIC:
        fprintf(out, " -x -a '(__inflight_%s)'", completion_name(completion));
        break;
    case COMPLETE_KEY:
    case COMPLETE_MODEL:
    case COMPLETE_FORMAT:
    case COMPLETE_FIGURE:
        fprintf(out, " -x -a '(__inflight_list %ss)'", completion_name(completion));
        break;
    case COMPLETE_HARDWARE:
        fputs(" -x -a '(__inflight_list hardware)'", out);
        break;
    case COMPLETE_COMMAND:
        fputs(" -x -a '", out);
        completion_put_first_words(out);
        fputs("'", out);
    }
}

static void put_fish_option(FILE *out, const struct command *command,
                            const struct option_spec *option)
{
    char words[64];
    fprintf(out, "complete -c inflight -n '__inflight_is %s' -l %s", command->name,
            option->name + 2);
    if (option->alias)
        fprintf(out, " -s %s", option->alias + 1);
    fputs(" -d ", out);
    completion_put_quoted(out, option->doc, "");
    completion_words(option, words);
    if (*words)
        fprintf(out, " -x -a '%s'", words);
    else if (option->kind != OPTION_FLAG)
        put_fish_values(out, option->completion);
    fputc('\n', out);
}

static void put_fish_names(FILE *out)
{
    const struct command *command;
    char text[256];
    for (size_t i = 0; (command = command_at(i)); i++) {
        const int n_chars = (int)strcspn(command->name, " ");
        if (completion_is_first(i)) {
            fprintf(out, "complete -c inflight -n '__inflight_at 1' -a %.*s -d ", n_chars,
                    command->name);
            completion_put_quoted(out, completion_doc(i, text), "");
            fputc('\n', out);
        }
        if (command_n_words(command) == 1)
            continue;
        fprintf(out, "complete -c inflight -n '__inflight_at 2; and __inflight_is %.*s' -a %s -d ",
                n_chars, command->name, command->name + n_chars + 1);
        completion_put_quoted(out, command->doc, "");
        fputc('\n', out);
    }
}

void completion_write_fish(FILE *out)
{
    const struct command *command;
    const char *key, *topic;
    fputs("# Completion for fish, written by `inflight help --write` of inflight " INFLIGHT_VERSION
          "\nset -g __inflight_topics '",
          out);
    completion_put_topics(out);
    fprintf(out, "'\n\n%s", fish_head);
    for (size_t i = 0; (key = completion_key(i, &topic)); i++)
        fprintf(out, "        case %s\n            set topic %s\n", key, topic);
    fputs(
        "    end\n"
        "    if string match -q -- '*=*' (commandline -ct)\n"
        "        test -n \"$topic\"; and __inflight_list $topic | string replace -r '^' \"$key=\"\n"
        "    else\n"
        "        __inflight_list keys | string replace -r '$' =\n"
        "    end\n"
        "end\n\ncomplete -c inflight -f\n",
        out);
    put_fish_names(out);
    for (size_t i = 0; (command = command_at(i)); i++) {
        for (size_t k = 0; k < command->n_options; k++)
            put_fish_option(out, command, &command->options[k]);
        if (command->completion == COMPLETE_NOTHING)
            continue;
        fprintf(out, "complete -c inflight -n '__inflight_is %s'", command->name);
        put_fish_values(out, command->completion);
        fputc('\n', out);
    }
}
